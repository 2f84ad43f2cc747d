import type { LedgerDatabase } from './ledger-database.ts';

/** Ends a page early: a stored response of an upstream may be a megabyte. */
const MAX_PAGE_CHARS = 1024 * 1024;

/** Fewer than `limit` if long, at least one. For `hasMore`, `rows` yields one more than `limit`. */
export function takePage<Row extends object>(
  rows: Iterable<Row>,
  limit: number,
): { page: Row[]; hasMore: boolean } {
  const page: Row[] = [];
  let chars = 0;
  for (const row of rows) {
    chars += charsOf(row);
    if (page.length === limit || (page.length > 0 && chars > MAX_PAGE_CHARS))
      return { page, hasMore: true };
    page.push(row);
  }
  return { page, hasMore: false };
}

function charsOf(row: object): number {
  let chars = 0;
  for (const value of Object.values(row)) if (typeof value === 'string') chars += value.length;
  return chars;
}

/** The sort keys of a row. The last one is unique. */
export type Position = readonly (number | string)[];

/** A walk along an index. The SQL refers to `parameters` by name. */
export type Walk = {
  /**
   * FROM and WHERE of the rows behind a position. Several ranges have no row in common.
   * A parameter is written as `+@p0`, so that SQLite does not plan a walk again for each value.
   */
  ranges: readonly string[];
  /** SQL expressions: the id of a row, and its sort keys. */
  id: string;
  keys: readonly string[];
  direction: 'ASC' | 'DESC';
  match: string;
  parameters: Readonly<Record<string, unknown>>;
};

/** Some 20 ms of the event loop if SQLite reads from the memory of the system (row search). */
const MAX_EXAMINED = 4_000;

/** Returns the SQL of a walk, with the parameter `rows`. */
export function walkSql({ ranges, id, keys, direction, match }: Walk): string {
  const columns = keys.map((key, index) => `${key} AS k${index}`).join(', ');
  const sorting = keys.map((_, index) => `k${index} ${direction}`).join(', ');
  const all = ranges.map(
    (from) => `SELECT ${id} AS id, ${columns}, (${match}) AS isMatch FROM ${from}`,
  );
  return `${all.join(' UNION ALL ')} ORDER BY ${sorting} LIMIT @rows`;
}

/** At most MAX_EXAMINED rows, so a short page may have a `next`. Call in a snapshot. */
export function findPage<Row extends object>(
  db: LedgerDatabase,
  walk: Walk,
  { limit, read }: { limit: number; read: (id: number) => Row | undefined },
): { page: Row[]; next: Position | null } {
  const positions: Position[] = [];
  let examined = 0;
  let last: Position | null = null;
  function* matching() {
    const parameters = { ...walk.parameters, rows: MAX_EXAMINED };
    for (const found of db.iterate<Examined>(walkSql(walk), parameters)) {
      examined += 1;
      last = walk.keys.map((_, index) => found[`k${index}`] ?? '');
      const row = found.isMatch ? read(found.id) : undefined;
      if (!row) continue;
      positions.push(last);
      yield row;
    }
  }
  const { page, hasMore } = takePage(matching(), limit);
  if (hasMore) return { page, next: positions[page.length - 1] ?? null };
  return { page, next: examined === MAX_EXAMINED ? last : null };
}

type Examined = Record<string, number | string> & { id: number; isMatch: number | null };

import type { LedgerDatabase } from './ledger-database.ts';
import { ReadLimit } from './page.ts';

/** If a source has at most this many rows, no source is counted further. */
const FEW = 100;
/** Between two counts. */
const MAX_COUNT_MS = 5;

/** The sort keys of a row. The last one is unique. */
export type Position = readonly (number | string)[];

/**
 * Ranges of an index that together contain every matching row, each row once. A `from` is the FROM
 * and WHERE of a SELECT.
 */
export type Source = {
  /** All rows of the source. `id`: SQL expression of the id of the row. */
  ranges: readonly { from: string; id: string }[];
  /** The number of rows. Absent: it is counted, up to `maxExamined`. */
  size?: number;
  /**
   * The rows after the position, for an index in the order of the search. `keys`: SQL expressions
   * of the sort keys.
   */
  walk?: readonly { from: string; keys: readonly string[] }[];
};

/** The SQL refers to `parameters` by name. */
export type Search = {
  /** The searched table with its alias, such as "submissions s". */
  table: string;
  /** The id of a row of the table. */
  id: string;
  /** Condition for a row of the table. */
  match: string;
  /** `behind`: condition for the rows after the position. */
  order: { keys: readonly string[]; direction: 'ASC' | 'DESC'; behind: string };
  /** At least one has a `walk`. */
  sources: readonly Source[];
  parameters: Readonly<Record<string, unknown>>;
  /**
   * The number of rows that a page examines. It bounds the time of the page, whatever the page
   * contains.
   */
  maxExamined: number;
  /**
   * A further condition, which SQL does not express. A page ends once it has examined `maxBytes` of
   * its rows.
   */
  inspection?: { inspect: (id: number) => { isMatch: boolean; bytes: number }; maxBytes: number };
};

type Found = { id: number; position: Position };
export type FoundPage = { found: Found[]; next: Position | null };

/**
 * Finds at most `limit` rows in the order of the search. Reads a source with few rows: it walks an
 * index in the order of the search, or gathers and sorts up to `maxExamined` rows. `next`: the
 * position after which the search continues. A page may have fewer than `limit` rows, even none,
 * before `next`. null at the end. Must be called in a snapshot.
 */
export function findBounded(db: LedgerDatabase, search: Search, limit: number): FoundPage {
  const { walk, ranges } = bestSource(db, search);
  const gathered = walk ? undefined : gather(db, search, ranges);
  if (gathered) return take(gathered, { ...search, maxExamined: Number.POSITIVE_INFINITY }, limit);
  return walkIndex(db, search, walk ?? walkOf(search.sources), limit);
}

/**
 * Reads found rows one by one; ends early if they take too long. Then the search continues after
 * `positionAfter` the number of rows that were read.
 */
export function* readFound<T>(
  { found }: FoundPage,
  read: (id: number) => T | undefined,
): Generator<T, void> {
  const reads = new ReadLimit();
  for (const { id } of found) {
    const row = read(id);
    if (row !== undefined) yield row;
    if (reads.isReached()) return;
  }
}

/** Returns the position after the first `rows` found ones; null if nothing follows. */
export function positionAfter({ found, next }: FoundPage, rows: number): Position | null {
  return rows < found.length ? (found[rows - 1]?.position ?? null) : next;
}

/**
 * Returns the source with the fewest rows, up to `maxExamined`, or else one that is walked. Sources
 * that are not counted in time are left out. One count is not interrupted.
 */
function bestSource(db: LedgerDatabase, { sources, parameters, maxExamined }: Search): Source {
  const startedAt = performance.now();
  let best: { source: Source; size: number } = {
    source: { ranges: [], walk: walkOf(sources) },
    size: Infinity,
  };
  const consider = (source: Source, size: number) => {
    if (size <= maxExamined && size < best.size) best = { source, size };
  };
  for (const source of sources) if (source.size !== undefined) consider(source, source.size);
  const uncounted = sources.length === 1 ? [] : sources.filter(({ size }) => size === undefined);
  for (const most of [FEW, maxExamined]) {
    if (best.size <= most) break;
    for (const source of uncounted) {
      if (performance.now() - startedAt > MAX_COUNT_MS) break;
      const bound = Math.min(most, maxExamined, best.size - 1);
      const size = countOf(db, source, { parameters, rows: bound + 1 });
      if (size <= bound) consider(source, size);
    }
  }
  return best.source;
}

/** Returns the number of rows of a source, counted up to `rows`. */
function countOf(
  db: LedgerDatabase,
  { ranges }: Source,
  { parameters, rows }: { parameters: Search['parameters']; rows: number },
): number {
  const all = ranges.map(({ from }) => `SELECT 1 FROM ${from}`).join(' UNION ALL ');
  return Number(db.value(`SELECT count(*) FROM (${all} LIMIT @rows + 0)`, { ...parameters, rows }));
}

function walkOf(sources: Search['sources']): NonNullable<Source['walk']> {
  const walk = sources.find((source) => source.walk)?.walk;
  if (!walk) throw new Error('no source has the order of the search');
  return walk;
}

type Row = Record<string, number | string> & { id: number; isMatch: number | null };

function walkIndex(
  db: LedgerDatabase,
  search: Search,
  walk: NonNullable<Source['walk']>,
  limit: number,
): FoundPage {
  const { id, match, order, parameters, maxExamined } = search;
  const all = walk.map(
    ({ from, keys }) => `SELECT ${id} AS id, ${named(keys)}, (${match}) AS isMatch FROM ${from}`,
  );
  const sql = `${all.join(' UNION ALL ')} ORDER BY ${sorting(order)} LIMIT @rows`;
  return take(db.iterate<Row>(sql, { ...parameters, rows: maxExamined }), search, limit);
}

/**
 * Returns all matching rows of the ranges in the order of the search; undefined if they take too
 * long to read.
 */
function gather(db: LedgerDatabase, search: Search, ranges: Source['ranges']): Row[] | undefined {
  const { table, id, match, order, parameters } = search;
  const all = ranges
    .map((range) => `SELECT ${range.id} AS id FROM ${range.from}`)
    .join(' UNION ALL ');
  const rows = db.iterate<Row>(
    `SELECT ${id} AS id, ${named(order.keys)}, (${order.behind}) AND (${match}) AS isMatch
     FROM (${all}) gathered CROSS JOIN ${table} ON ${id} = gathered.id`,
    parameters,
  );
  const reads = new ReadLimit();
  const found: Row[] = [];
  for (const row of rows) {
    if (row.isMatch) found.push(row);
    if (reads.isReached()) return undefined;
  }
  return found.sort(inOrder(order));
}

/** Takes matching rows until there are `limit`, or until the bounds of the search. */
function take(
  rows: Iterable<Row>,
  { order, maxExamined, inspection }: Search,
  limit: number,
): FoundPage {
  const found: Found[] = [];
  const reads = new ReadLimit();
  let [examined, bytes] = [0, 0];
  let position: Position | null = null;
  for (const row of rows) {
    if (position && ((inspection && bytes >= inspection.maxBytes) || reads.isReached()))
      return { found, next: position };
    examined += 1;
    position = positionOf(row, order);
    if (!row.isMatch) continue;
    const inspected = inspection?.inspect(row.id);
    bytes += inspected?.bytes ?? 0;
    if (inspected?.isMatch === false) continue;
    if (found.length === limit) return { found, next: found.at(-1)?.position ?? null };
    found.push({ id: row.id, position });
  }
  return { found, next: examined === maxExamined ? position : null };
}

/** Compares keys as SQLite does: numbers, or texts of ASCII. */
function inOrder({ keys, direction }: Search['order']): (a: Row, b: Row) => number {
  const sign = direction === 'ASC' ? 1 : -1;
  const names = keys.map((_, index) => `k${index}`);
  return (a, b) => {
    const name = names.find((key) => a[key] !== b[key]);
    if (name === undefined) return 0;
    return (a[name] as number) < (b[name] as number) ? -sign : sign;
  };
}

function named(keys: readonly string[]): string {
  return keys.map((key, index) => `${key} AS k${index}`).join(', ');
}

function sorting({ keys, direction }: Search['order']): string {
  return keys.map((_, index) => `k${index} ${direction}`).join(', ');
}

function positionOf(row: Row, { keys }: Search['order']): Position {
  return keys.map((_, index) => row[`k${index}`] as number | string);
}

import type { LedgerDatabase } from '../ledger/ledger-database.ts';
import { findPage, type Position, type Walk } from '../ledger/page.ts';
import {
  type ChainVerdict,
  STATUSES,
  type Status,
  type Submission,
  uuidPrefix,
} from './submission.ts';
import {
  SELECT_SUBMISSION,
  type StatusCounts,
  type SubmissionRow,
  toSubmission,
  UUID_GLOB,
} from './submission-queries.ts';

/** All conditions apply. Times are epoch ms; `since` includes its time, `until` excludes it. */
export type SubmissionFilter = {
  statuses?: readonly Status[] | undefined;
  chain?: readonly ChainVerdict[] | undefined;
  upstream?: string | undefined;
  /** Values by name, as text. Only values within SEARCHABLE are found. */
  metadata?: Readonly<Record<string, string>> | undefined;
  trackedSince?: number | undefined;
  trackedUntil?: number | undefined;
  endedSince?: number | undefined;
  endedUntil?: number | undefined;
  /** Only ids with this prefix; of UUIDs in any case. */
  prefix?: string | undefined;
  stuck?: true | undefined;
};

/** newest: last accepted first. tracked, ended: latest first. id: smallest first. */
export type SubmissionOrder = 'newest' | 'tracked' | 'ended' | 'id';

/** Returns the order of a list: that of its index. It depends only on the names of conditions. */
export function orderOf(filter: SubmissionFilter): SubmissionOrder {
  return indexOf(filter).order;
}

type Index = {
  order: SubmissionOrder;
  keys: readonly string[];
  ranges: (filter: SubmissionFilter) => readonly string[];
};

/** Returns the index of the condition that usually matches the fewest submissions. */
function indexOf(filter: SubmissionFilter): Index {
  const { prefix, metadata, endedSince, endedUntil, trackedSince, trackedUntil } = filter;
  if (prefix !== undefined) return INDEXES.prefix;
  if (metadata) return INDEXES.metadata;
  if (endedSince !== undefined || endedUntil !== undefined) return INDEXES.ended;
  if (filter.chain) return INDEXES.chain;
  if (filter.statuses) return INDEXES.status;
  if (trackedSince !== undefined || trackedUntil !== undefined) return INDEXES.tracked;
  return filter.upstream === undefined ? INDEXES.all : INDEXES.upstream;
}

const behindTracked = 's.tracked_at >= +@trackedSince AND (s.tracked_at, s.id) < (+@p0, +@p1)';
/** The index of a column and the time of tracking. */
function byValue(
  column: 'chain' | 'status',
  valuesOf: (filter: SubmissionFilter) => readonly string[] | undefined,
): Index {
  return {
    order: 'tracked',
    keys: ['s.tracked_at', 's.id'],
    ranges: (filter) =>
      distinct(valuesOf(filter) ?? []).map(
        (_, i) =>
          `submissions s INDEXED BY submissions_by_${column} WHERE s.${column} = +@${column}${i} AND ${behindTracked}`,
      ),
  };
}

const INDEXES = {
  prefix: {
    order: 'id',
    keys: ['s.submission_id'],
    ranges: ({ prefix = '' }) =>
      prefixesOf(prefix).map(
        (_, i) =>
          `submissions s WHERE s.submission_id >= +@from${i} AND s.submission_id < +@end${i}`,
      ),
  },
  metadata: {
    order: 'newest',
    // With s.id, SQLite would sort the rows.
    keys: ['m.submission'],
    ranges: () => [
      `submission_metadata m CROSS JOIN submissions s ON s.id = m.submission
       WHERE m.key = +@name0 AND m.value = +@value0 AND m.submission < +@p0`,
    ],
  },
  ended: {
    order: 'ended',
    keys: ['s.ended_at', 's.id'],
    ranges: () =>
      ['submissions_ended', 'submissions_ended_watched'].map(
        (index, watched) =>
          `submissions s INDEXED BY ${index} WHERE s.ended_at IS NOT NULL AND s.watched = ${watched}
           AND s.ended_at >= +@endedSince AND (s.ended_at, s.id) < (+@p0, +@p1)`,
      ),
  },
  chain: byValue('chain', ({ chain }) => chain),
  status: byValue('status', ({ statuses }) => statuses),
  tracked: {
    order: 'tracked',
    keys: ['s.tracked_at', 's.id'],
    ranges: () => [`submissions s INDEXED BY submissions_tracked WHERE ${behindTracked}`],
  },
  upstream: {
    order: 'newest',
    keys: ['s.id'],
    ranges: () => [
      'submissions s INDEXED BY submissions_by_upstream WHERE s.upstream = +@upstream AND s.id < +@p0',
    ],
  },
  all: {
    order: 'newest',
    keys: ['s.id'],
    ranges: () => ['submissions s NOT INDEXED WHERE s.id < +@p0'],
  },
} satisfies Record<string, Index>;

/** Returns the walk that continues after a position. */
export function walkOf(filter: SubmissionFilter, after: Position | null | undefined): Walk {
  const { order, keys, ranges } = indexOf(filter);
  const { metadata = {}, prefix, upstream = null, statuses, chain } = filter;
  const { endedSince, endedUntil } = filter;
  const { trackedSince = FIRST, trackedUntil = LAST } = filter;
  const begin = {
    newest: [LAST],
    tracked: [trackedUntil, -1],
    ended: [endedUntil ?? LAST, -1],
    id: [''],
  }[order];
  const [p0 = null, p1 = null] = after ?? begin;
  const names = Object.keys(metadata);
  const inMetadata = names.map((_, index) => ` AND ${hasMetadata(index)}`).join('');
  return {
    ranges: ranges(filter),
    id: 's.id',
    keys,
    direction: order === 'id' ? 'ASC' : 'DESC',
    match: MATCH + inMetadata,
    parameters: {
      ...{ p0, p1, upstream, trackedSince, trackedUntil },
      ...{ endedSince: endedSince ?? FIRST, endedUntil: endedUntil ?? LAST },
      hasEnded: endedSince === undefined && endedUntil === undefined ? 0 : 1,
      statuses: statuses ? JSON.stringify(statuses) : null,
      stuck: filter.stuck ? 1 : null,
      chain: chain ? JSON.stringify(chain) : null,
      ...numbered('status', distinct(statuses ?? [])),
      ...numbered('chain', distinct(chain ?? [])),
      ...numbered('name', names),
      ...numbered('value', Object.values(metadata)),
      ...prefixParameters(prefix, String(p0)),
    },
  };
}

const [FIRST, LAST] = [Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER];

const MATCH = `
  (@stuck IS NULL OR s.stuck = 1 AND s.ended_at IS NULL)
    AND (@statuses IS NULL OR s.status IN (SELECT value FROM json_each(@statuses)))
    AND (@chain IS NULL OR s.chain IN (SELECT value FROM json_each(@chain)))
    AND (@upstream IS NULL OR s.upstream = @upstream)
    AND s.tracked_at >= @trackedSince AND s.tracked_at < @trackedUntil
    AND (@hasEnded = 0 OR (s.ended_at >= @endedSince AND s.ended_at < @endedUntil))
    AND (@from1 IS NULL OR s.submission_id < @end0 AND s.submission_id >= @from0
      OR s.submission_id GLOB '${UUID_GLOB}')`;

const hasMetadata = (index: number) => `EXISTS (SELECT 1 FROM submission_metadata v
  WHERE v.key = +@name${index} AND v.value = +@value${index} AND v.submission = s.id)`;

/** Returns the exact prefix, and that of canonical UUIDs if the prefix has upper case. */
function prefixesOf(prefix: string): string[] {
  return distinct([prefix, uuidPrefix(prefix) ?? prefix]);
}

/**
 * Returns where the ranges of ids with a prefix continue and end. "!" and "~" are the least and the
 * greatest character of an id.
 */
function prefixParameters(
  prefix: string | undefined,
  after: string,
): Record<string, string | null> {
  const parameters: Record<string, string | null> = { from0: null, end0: null, from1: null };
  const prefixes = prefix === undefined ? [] : prefixesOf(prefix);
  for (const [index, start] of prefixes.entries()) {
    parameters[`from${index}`] = after < start ? start : `${after}!`;
    parameters[`end${index}`] = `${start}\x7f`;
  }
  return parameters;
}

function distinct<T>(values: readonly T[]): T[] {
  return [...new Set(values)];
}

function numbered(name: string, values: readonly string[]): Record<string, string> {
  return Object.fromEntries(values.map((value, index) => [`${name}${index}`, value]));
}

/**
 * A page examines a limited number of rows: it may be short although more follow
 * (docs/decisions/0021). Throws LedgerError.
 */
export class SubmissionSearch {
  readonly #db: LedgerDatabase;
  readonly #counts: StatusCounts;

  constructor(database: LedgerDatabase, counts: StatusCounts) {
    this.#db = database;
    this.#counts = counts;
  }

  /** In the order of `orderOf(query)`. `after`: `next` of the previous page; null at the end. */
  list(query: SubmissionFilter & { limit: number; after?: Position | null | undefined }): {
    submissions: Submission[];
    next: Position | null;
  } {
    const read = (id: number) => this.#db.row<SubmissionRow>(BY_ROW, id);
    return this.#db.snapshot(() => {
      const walk = walkOf(query, query.after);
      const { page, next } = findPage(this.#db, walk, { limit: query.limit, read });
      return { submissions: page.map(toSubmission), next };
    });
  }

  count(filter: SubmissionFilter, after?: Position): { count: number; next: Position | null } {
    const { statuses = STATUSES, ...others } = filter;
    const isByStatus =
      after === undefined && Object.values(others).every((condition) => condition === undefined);
    if (isByStatus) {
      const counts = this.#counts.get();
      const count = distinct(statuses).reduce((sum, status) => sum + counts[status], 0);
      return { count, next: null };
    }
    const read = (id: number) => ({ id });
    const { page, next } = this.#db.snapshot(() =>
      findPage(this.#db, walkOf(filter, after), { limit: Number.POSITIVE_INFINITY, read }),
    );
    return { count: page.length, next };
  }

  /** Returns whether there are, or have been, submissions of this upstream. */
  hasUpstream(name: string): boolean {
    return this.#db.value`SELECT 1 FROM upstreams WHERE name = ${name}` !== undefined;
  }
}

/** `+?`: see FIND in submission-queries.ts. */
const BY_ROW = `${SELECT_SUBMISSION} WHERE s.id = +?`;

/** Searches find values at the top level, the first `names` of a submission; sizes in UTF-8. */
export const SEARCHABLE = { names: 32, nameBytes: 128, valueBytes: 256 };

/** Returns why searches cannot find this value; undefined if they can. */
export function unsearchable(name: string, value: string): string | undefined {
  const quoted = JSON.stringify(name.slice(0, 40));
  if (name === '' || Buffer.byteLength(name) > SEARCHABLE.nameBytes)
    return `${quoted}: a name must have 1 to ${SEARCHABLE.nameBytes} bytes`;
  if (Buffer.byteLength(value) > SEARCHABLE.valueBytes)
    return `${quoted}: a value must have at most ${SEARCHABLE.valueBytes} bytes`;
  return undefined;
}

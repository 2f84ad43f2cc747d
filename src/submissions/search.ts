import {
  findBounded,
  type Position,
  positionAfter,
  readFound,
  type Search,
  type Source,
} from '../ledger/bounded-search.ts';
import type { LedgerDatabase } from '../ledger/ledger-database.ts';
import { takePage } from '../ledger/page.ts';
import { parseStored } from '../lib/json.ts';
import { STATUSES, type Status, type Submission, uuidPrefix } from './submission.ts';
import {
  SELECT_SUBMISSION,
  type StatusCounts,
  type SubmissionRow,
  toSubmission,
  UUID_GLOB,
} from './submission-queries.ts';

/**
 * Conditions that all apply. Times are epoch milliseconds; `since` includes its time, `until`
 * excludes it.
 */
export type SubmissionFilter = {
  /** At least one. */
  statuses?: readonly Status[] | undefined;
  upstream?: string | undefined;
  /** Values by name, as text. Only values within SEARCHABLE are found. */
  metadata?: Readonly<Record<string, string>> | undefined;
  trackedSince?: number | undefined;
  trackedUntil?: number | undefined;
  endedSince?: number | undefined;
  endedUntil?: number | undefined;
  /** Only ids with this prefix; of UUIDs in any case. */
  prefix?: string | undefined;
  /**
   * Only those whose id, or a value of whose metadata, contains this text in upper or lower case.
   */
  search?: string | undefined;
};

/**
 * newest: the last accepted first. tracked, ended: the latest of that time first. id: by id, the
 * smallest first.
 */
export type SubmissionOrder = 'newest' | 'tracked' | 'ended' | 'id';

/** Returns the order of a list. It depends only on which conditions there are. */
export function orderOf(filter: SubmissionFilter): SubmissionOrder {
  if (filter.prefix !== undefined) return 'id';
  if (hasEnded(filter)) return 'ended';
  return hasTracked(filter) ? 'tracked' : 'newest';
}

/**
 * All conditions but `search`, which has no index. `after`: the position after which the search
 * continues. `countOf`: returns the number of submissions in the statuses.
 */
function searchOf(
  filter: SubmissionFilter,
  after: Position | undefined,
  countOf: (statuses: readonly Status[]) => number,
): Omit<Search, 'maxExamined' | 'inspection'> {
  const { trackedUntil = LAST, endedUntil = LAST } = filter;
  const order = orderOf(filter);
  const begin = { newest: [LAST], tracked: [trackedUntil, -1], ended: [endedUntil, -1], id: [''] }[
    order
  ];
  const [p0 = null, p1 = null] = after ?? begin;
  const statuses = filter.statuses && [...new Set(filter.statuses)];
  const own = matchOf(filter);
  const ranges = prefixRanges(filter.prefix, order === 'id' ? String(p0) : '');
  return {
    table: 'submissions s',
    id: 's.id',
    match: own.match,
    order: ORDERS[order],
    sources: [
      ...metadataSources(filter, order),
      ...(statuses ? [statusSource(statuses, order, countOf(statuses))] : []),
      ...(hasTracked(filter) ? [order === 'tracked' ? TRACKED : withoutWalk(TRACKED)] : []),
      ...(hasEnded(filter) ? [order === 'ended' ? ENDED : withoutWalk(ENDED)] : []),
      ...(filter.prefix === undefined ? [] : [prefixSource(ranges.length)]),
      ...(order === 'newest' ? [ALL] : []),
    ],
    parameters: {
      ...{ p0, p1 },
      ...own.parameters,
      ...numbered('status', statuses ?? []),
      ...Object.assign({}, ...ranges),
    },
  };
}

/** Returns the condition for a submission `s`, without `search`, and its parameters. */
function matchOf(filter: SubmissionFilter): {
  match: string;
  parameters: Record<string, unknown>;
} {
  const {
    upstream = null,
    trackedSince = FIRST,
    trackedUntil = LAST,
    endedSince = FIRST,
    endedUntil = LAST,
  } = filter;
  const { statuses, metadata = {}, prefix } = filter;
  const values = Object.values(metadata);
  const inMetadata = values.map((_, index) => matchMetadata(index)).join(' AND ');
  return {
    match: `${MATCH} ${inMetadata || 1} END`,
    parameters: {
      ...{ upstream, trackedSince, trackedUntil, endedSince, endedUntil },
      hasEnded: hasEnded(filter) ? 1 : 0,
      statuses: statuses ? JSON.stringify(statuses) : null,
      ...numbered('name', Object.keys(metadata)),
      ...numbered('value', values),
      // As in the stored JSON. Numbers are stored as their texts.
      ...numbered(
        'text',
        values.map((value) => JSON.stringify(value).slice(1, -1)),
      ),
      ...Object.assign(
        { start0: null, end0: null, start1: null, end1: null },
        ...prefixRanges(prefix, ''),
      ),
    },
  };
}

const [FIRST, LAST] = [Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER];

function hasTracked({ trackedSince, trackedUntil }: SubmissionFilter): boolean {
  return trackedSince !== undefined || trackedUntil !== undefined;
}

function hasEnded({ endedSince, endedUntil }: SubmissionFilter): boolean {
  return endedSince !== undefined || endedUntil !== undefined;
}

/** The values of the metadata follow, because looking them up is the most expensive condition. */
const MATCH = `
  CASE WHEN (@statuses IS NULL OR s.status IN (SELECT value FROM json_each(@statuses)))
    AND (@upstream IS NULL OR s.upstream = @upstream)
    AND s.tracked_at >= @trackedSince AND s.tracked_at < @trackedUntil
    AND (@hasEnded = 0 OR (s.ended_at >= @endedSince AND s.ended_at < @endedUntil))
    AND (@start0 IS NULL OR (s.submission_id >= @start0 AND s.submission_id < @end0)
      OR (s.submission_id >= @start1 AND s.submission_id < @end1 AND s.submission_id GLOB '${UUID_GLOB}'))
  THEN`;

const equalMetadata = (index: number) => `m.key = +@name${index} AND m.value = +@value${index}`;

/**
 * Returns the condition for one value of the metadata. The text of the row is searched first,
 * because this takes a tenth of the time of a lookup in the index, which reads pages across the
 * whole file.
 */
const matchMetadata = (index: number) => `
  instr(s.metadata, +@text${index}) > 0 AND EXISTS (
    SELECT 1 FROM submission_metadata m WHERE ${equalMetadata(index)} AND m.submission = s.id)`;

const ORDERS: Record<SubmissionOrder, Search['order']> = {
  newest: { keys: ['s.id'], direction: 'DESC', behind: 's.id < @p0' },
  tracked: {
    keys: ['s.tracked_at', 's.id'],
    direction: 'DESC',
    behind: '(s.tracked_at, s.id) < (@p0, @p1)',
  },
  ended: {
    keys: ['s.ended_at', 's.id'],
    direction: 'DESC',
    behind: '(s.ended_at, s.id) < (@p0, @p1)',
  },
  id: { keys: ['s.submission_id'], direction: 'ASC', behind: 's.submission_id > @p0' },
};

/**
 * The parameters of a walk are written as `+@p0`, so that SQLite does not plan it anew for each of
 * their values.
 */
const ALL: Source = {
  ranges: [],
  size: Number.POSITIVE_INFINITY,
  walk: [{ from: 'submissions s NOT INDEXED WHERE s.id < +@p0', keys: ['s.id'] }],
};

const TRACKED_SINCE =
  'submissions s INDEXED BY submissions_tracked WHERE s.tracked_at >= +@trackedSince';
const TRACKED: Source = {
  ranges: [{ from: `${TRACKED_SINCE} AND s.tracked_at < +@trackedUntil`, id: 's.id' }],
  // The first position is the end of the range.
  walk: [
    { from: `${TRACKED_SINCE} AND (s.tracked_at, s.id) < (+@p0, +@p1)`, keys: ORDERS.tracked.keys },
  ],
};

const ENDED_SINCE = [
  'submissions s INDEXED BY submissions_ended WHERE s.ended_at IS NOT NULL AND s.watched = 0',
  'submissions s INDEXED BY submissions_ended_watched WHERE s.ended_at IS NOT NULL AND s.watched = 1',
].map((from) => `${from} AND s.ended_at >= +@endedSince`);
const ENDED: Source = {
  ranges: ENDED_SINCE.map((from) => ({
    from: `${from} AND s.ended_at < +@endedUntil`,
    id: 's.id',
  })),
  walk: ENDED_SINCE.map((from) => ({
    from: `${from} AND (s.ended_at, s.id) < (+@p0, +@p1)`,
    keys: ORDERS.ended.keys,
  })),
};

function withoutWalk({ ranges }: Source): Source {
  return { ranges };
}

function metadataSources({ metadata = {} }: SubmissionFilter, order: SubmissionOrder): Source[] {
  return Object.keys(metadata).map((_, index) => {
    const equal = equalMetadata(index);
    const joined = 'submission_metadata m CROSS JOIN submissions s ON s.id = m.submission';
    return {
      ranges: [{ from: `submission_metadata m WHERE ${equal}`, id: 'm.submission' }],
      ...(order === 'newest' && {
        walk: [
          { from: `${joined} WHERE ${equal} AND m.submission < +@p0`, keys: ['m.submission'] },
        ],
      }),
    };
  });
}

function statusSource(statuses: readonly Status[], order: SubmissionOrder, size: number): Source {
  const from = statuses.map(
    (_, i) => `submissions s INDEXED BY submissions_by_status WHERE s.status = +@status${i}`,
  );
  return {
    ranges: from.map((range) => ({ from: range, id: 's.id' })),
    size,
    ...(order === 'newest' && {
      walk: from.map((range) => ({ from: `${range} AND s.id < +@p0`, keys: ['s.id'] })),
    }),
  };
}

function prefixSource(ranges: number): Source {
  const from = (start: string) =>
    Array.from(
      { length: ranges },
      (_, i) =>
        `submissions s WHERE s.submission_id >= +@${start}${i} AND s.submission_id < +@end${i}`,
    );
  return {
    ranges: from('start').map((range) => ({ from: range, id: 's.id' })),
    walk: from('from').map((range) => ({ from: range, keys: ORDERS.id.keys })),
  };
}

/**
 * Returns the parameters of the ranges of ids with this prefix: the exact one, and that of
 * canonical UUIDs if the prefix has upper case. `from`: where a range continues after the id
 * `after`. "!" is the least character of an id and "~" the greatest.
 */
function prefixRanges(prefix: string | undefined, after: string): Record<string, string>[] {
  if (prefix === undefined) return [];
  const lower = uuidPrefix(prefix);
  const starts = lower === undefined || lower === prefix ? [prefix] : [prefix, lower];
  return starts.map((start, index) => ({
    [`start${index}`]: start,
    [`from${index}`]: after < start ? start : `${after}!`,
    [`end${index}`]: `${start}\x7f`,
  }));
}

function numbered(name: string, values: readonly string[]): Record<string, string> {
  return Object.fromEntries(values.map((value, index) => [`${name}${index}`, value]));
}

/**
 * Some 20 ms of the event loop if SQLite has to read the rows from the memory of the system (row
 * search).
 */
const MAX_EXAMINED = 4_000;
/** The same for a search for a text, which reads each row twice. */
const MAX_INSPECTED = 2_500;
/**
 * The ids and metadata that a page searches for a text. Large metadata would take longer than the
 * rows.
 */
const MAX_INSPECTED_BYTES = 512 * 1_024;

/**
 * Lists and counts submissions. A page takes a bounded time, however many submissions there are: it
 * may end before `limit` submissions although more follow (docs/decisions/0021). Throws
 * LedgerError.
 */
export class SubmissionSearch {
  readonly #db: LedgerDatabase;
  readonly #counts: StatusCounts;

  constructor(database: LedgerDatabase, counts: StatusCounts) {
    this.#db = database;
    this.#counts = counts;
  }

  /**
   * Returns a page in the order of `orderOf(query)`. `after`: `next` of the previous page; null at
   * the end. `examinedTo`: the time in that order up to which the page examined; null at the end,
   * and in the order of ids.
   */
  list(query: SubmissionFilter & { limit: number; after?: Position | null | undefined }): {
    submissions: Submission[];
    next: Position | null;
    examinedTo: number | null;
  } {
    return this.#db.snapshot(() => {
      const found = this.#find(query, query.after, query.limit);
      const rows = readFound(found, (id) => this.#db.row<SubmissionRow>(BY_ROW, id));
      const { page } = takePage(rows, query.limit);
      const next = positionAfter(found, page.length);
      return {
        submissions: page.map(toSubmission),
        next,
        examinedTo: next && this.#timeOf(query, next),
      };
    });
  }

  /** Returns the number of submissions behind `after` and up to `next`; null: up to the end. */
  count(filter: SubmissionFilter, after?: Position): { count: number; next: Position | null } {
    const { statuses = STATUSES, ...others } = filter;
    const isByStatus =
      after === undefined && Object.values(others).every((condition) => condition === undefined);
    if (isByStatus) return { count: this.#countOf(statuses), next: null };
    return this.#db.snapshot(() => {
      const { found, next } = this.#find(filter, after, Number.POSITIVE_INFINITY);
      return { count: found.length, next };
    });
  }

  /** Returns whether there are, or have been, submissions of this upstream. */
  hasUpstream(name: string): boolean {
    return this.#db.value`SELECT 1 FROM upstreams WHERE name = ${name}` !== undefined;
  }

  #find(filter: SubmissionFilter, after: Position | null | undefined, limit: number) {
    const countOf = (statuses: readonly Status[]) => this.#countOf(statuses);
    const search = searchOf(filter, after ?? undefined, countOf);
    if (filter.search === undefined)
      return findBounded(this.#db, { ...search, maxExamined: MAX_EXAMINED }, limit);
    const inspection = this.#inspectionFor(filter.search);
    return findBounded(this.#db, { ...search, inspection, maxExamined: MAX_INSPECTED }, limit);
  }

  #inspectionFor(text: string): NonNullable<Search['inspection']> {
    const isMatch = textMatcher(text);
    const inspect = (id: number) => {
      const { submissionId, metadata } = this.#db.row<TextRow>(TEXT_BY_ROW, id) ?? NO_TEXT;
      return {
        isMatch: isMatch(submissionId, metadata),
        bytes: submissionId.length + (metadata?.length ?? 0),
      };
    };
    return { inspect, maxBytes: MAX_INSPECTED_BYTES };
  }

  #timeOf(filter: SubmissionFilter, [first = 0]: Position): number | null {
    switch (orderOf(filter)) {
      case 'newest':
        return (
          this.#db.value<number>`SELECT tracked_at FROM submissions WHERE id = ${first}` ?? null
        );
      case 'id':
        return null;
      default:
        return Number(first);
    }
  }

  #countOf(statuses: readonly Status[]): number {
    const counts = this.#counts.get();
    return [...new Set(statuses)].reduce((sum, status) => sum + counts[status], 0);
  }
}

type TextRow = { submissionId: string; metadata: string | null };
const NO_TEXT: TextRow = { submissionId: '', metadata: null };
const TEXT_BY_ROW = 'SELECT submission_id AS submissionId, metadata FROM submissions WHERE id = +?';

/** `+?`: see FIND in submission-queries.ts. */
const BY_ROW = `${SELECT_SUBMISSION} WHERE s.id = +?`;

/**
 * The part of the metadata that searches find: values at the top level, the first `names` of a
 * submission, sizes in UTF-8.
 */
export const SEARCHABLE = { names: 32, nameBytes: 128, valueBytes: 256 };

/**
 * Returns the reason why searches cannot find this value of the metadata; undefined if they can.
 */
export function unsearchable(name: string, value: string): string | undefined {
  const shown = JSON.stringify(name.slice(0, 40));
  if (name === '' || Buffer.byteLength(name) > SEARCHABLE.nameBytes)
    return `${shown}: a name must have 1 to ${SEARCHABLE.nameBytes} bytes`;
  if (Buffer.byteLength(value) > SEARCHABLE.valueBytes)
    return `${shown}: a value must have at most ${SEARCHABLE.valueBytes} bytes`;
  return undefined;
}

/** The longest text of a search. */
export const MAX_SEARCH_CHARS = 128;

/**
 * Returns a function that returns whether an id, or a value of the metadata at any depth, contains
 * the text in upper or lower case. `metadata`: as stored. Compares in upper case, because the lower
 * case of a letter can depend on its neighbors.
 */
export function textMatcher(
  text: string,
): (submissionId: string, metadata: string | null) => boolean {
  const wanted = text.toUpperCase();
  // A value that contains the text contains it in JSON, too, so most metadata need not be parsed.
  const wantedInJson = JSON.stringify(text).slice(1, -1).toUpperCase();
  const contains = (value: unknown): boolean => {
    if (typeof value === 'object' && value !== null) return Object.values(value).some(contains);
    return (typeof value === 'string' ? value : JSON.stringify(value))
      .toUpperCase()
      .includes(wanted);
  };
  const isInMetadata = (json: string) =>
    json.toUpperCase().includes(wantedInJson) &&
    contains(parseStored(json, 'a submission', 'metadata'));
  return (submissionId, metadata) =>
    submissionId.toUpperCase().includes(wanted) || (metadata !== null && isInMetadata(metadata));
}

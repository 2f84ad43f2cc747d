import type { Position, Search, Source } from '../ledger/bounded-search.ts';
import { type Status, uuidPrefix } from './submission.ts';
import { UUID_GLOB } from './submission-rows.ts';

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
export function searchOf(
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
export function matchOf(filter: SubmissionFilter): {
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

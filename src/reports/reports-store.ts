import type { LedgerDatabase } from '../ledger/ledger-database.ts';
import { DurationHistogram } from '../lib/duration-histogram.ts';
import {
  BUDGET_MS,
  BURN_WINDOW_NAMES,
  BURN_WINDOWS,
  type BurnWindow,
  type Objective,
  type ObjectiveCounts,
  type ObjectiveStatus,
} from '../submissions/objective.ts';
import type { FinalChange, OnFinal } from '../submissions/ports.ts';
import { FINAL_STATUSES, Status } from '../submissions/submission.ts';
import {
  addRollUp,
  emptyRollUp,
  groupOf,
  type ReportGroup,
  type RollUp,
  rollUpOf,
} from './roll-up.ts';

export const REPORT_UNITS = { hour: 3_600_000, day: 86_400_000 } as const;
export type ReportUnit = keyof typeof REPORT_UNITS;

/** How long rows are kept. */
const KEPT_MS: Record<ReportUnit, number> = {
  hour: 8 * REPORT_UNITS.day,
  day: 400 * REPORT_UNITS.day,
};
/** Values of one dimension, upstream and day that have a row of their own. The others share one. */
const MAX_GROUPS_PER_DAY = 100;

export type ReportKey = {
  unit: ReportUnit;
  dimension: string;
  start: number;
  upstream: string;
  group: ReportGroup;
};
export type ReportRow = { key: ReportKey; sums: RollUp };

type StoredRow = RollUp['ended'] & {
  unit: ReportUnit;
  dimension: string;
  start: number;
  upstream: string;
  value: string;
  corrected: number;
  requests: number;
  timeToFinality: string;
  lag: string;
  lagsByChain: number;
  fees: string;
  dataBilled: string;
  unbilled: number;
};

/** The sums of reports. Throws LedgerError. */
export class ReportRows {
  readonly #db: LedgerDatabase;

  constructor(database: LedgerDatabase) {
    this.#db = database;
  }

  /**
   * Adds to one row, or to the row of the other values if the day has too many. Must be called
   * inside a transaction.
   */
  add(key: ReportKey, sums: RollUp): void {
    const known = this.#find(key);
    const isNew = !known && key.group.kind === 'value' && key.dimension !== 'upstream';
    if (isNew && this.#groups(key) >= MAX_GROUPS_PER_DAY) {
      this.add({ ...key, group: { kind: 'other' } }, sums);
      return;
    }
    const total = known ?? emptyRollUp();
    addRollUp(total, sums);
    this.#db.run(INSERT, toStored(key, total));
  }

  /** Yields rows of one dimension with `from <= start < until`, in the order of their starts. */
  *read(query: {
    unit: ReportUnit;
    dimension: string;
    from: number;
    until: number;
    /** Undefined: all. */
    upstream: string | undefined;
  }): Generator<ReportRow, void> {
    const parameters = { ...query, upstream: query.upstream ?? null };
    for (const row of this.#db.rows<StoredRow>(SELECT, parameters)) {
      const { unit, dimension, start, upstream, value } = row;
      yield { key: { unit, dimension, start, upstream, group: toGroup(value) }, sums: toSums(row) };
    }
  }

  /** Deletes up to `limit` rows that are no longer kept. Returns whether there may be more. */
  prune(now: number, limit: number): boolean {
    return this.#db.unsyncedTransaction(() => {
      for (const unit of Object.keys(KEPT_MS) as ReportUnit[]) {
        const { changes } = this.#db.run(DELETE_OLD, { unit, before: now - KEPT_MS[unit], limit });
        if (changes > 0) return true;
      }
      return false;
    });
  }

  #find(key: ReportKey): RollUp | undefined {
    const row = this.#db.row<StoredRow>(FIND, { ...key, group: null, value: fromGroup(key.group) });
    return row && toSums(row);
  }

  #groups({ unit, dimension, start, upstream }: ReportKey): number {
    return Number(
      this.#db.value`
        SELECT count(*) FROM report_rows
        WHERE unit = ${unit} AND dimension = ${dimension} AND start = ${start} AND upstream = ${upstream} AND value >= '='`,
    );
  }
}

const METADATA = 'metadata.';

/** Rows of another key that was configured earlier are kept beside those of this one. */
export function metadataDimension(key: string): string {
  return `${METADATA}${key}`;
}

/** Other texts sort before "=", with which values begin. */
function fromGroup(group: ReportGroup): string {
  return group.kind === 'value' ? `=${group.value}` : group.kind === 'none' ? '' : '*';
}

function toGroup(text: string): ReportGroup {
  if (text === '') return { kind: 'none' };
  return text === '*' ? { kind: 'other' } : { kind: 'value', value: text.slice(1) };
}

function toStored(
  key: ReportKey,
  { ended, timeToFinality, lag, fees, dataBilled, ...sums }: RollUp,
): StoredRow {
  const { group, ...rest } = key;
  const texts = { timeToFinality: String(timeToFinality), lag: String(lag), fees: String(fees) };
  return {
    ...rest,
    value: fromGroup(group),
    ...ended,
    ...sums,
    ...texts,
    dataBilled: String(dataBilled),
  };
}

function toSums(row: StoredRow): RollUp {
  return {
    ended: Object.fromEntries(
      FINAL_STATUSES.map((status) => [status, row[status]]),
    ) as RollUp['ended'],
    corrected: row.corrected,
    requests: row.requests,
    timeToFinality: DurationHistogram.parse(row.timeToFinality),
    lag: DurationHistogram.parse(row.lag),
    lagsByChain: row.lagsByChain,
    fees: toAmount(row.fees),
    dataBilled: toAmount(row.dataBilled),
    unbilled: row.unbilled,
  };
}

/** A damaged amount counts as 0. */
function toAmount(text: string): bigint {
  return /^-?\d+$/.test(text) ? BigInt(text) : 0n;
}

const COLUMNS = `unit, dimension, start, upstream, value, ${FINAL_STATUSES.join(', ')}, corrected, requests,
  time_to_finality AS timeToFinality, lag, lags_by_chain AS lagsByChain, fees, data_billed AS dataBilled, unbilled`;

const FIND = `
  SELECT ${COLUMNS} FROM report_rows
  WHERE unit = @unit AND dimension = @dimension AND start = @start AND upstream = @upstream AND value = @value`;

const SELECT = `
  SELECT ${COLUMNS} FROM report_rows
  WHERE unit = @unit AND dimension = @dimension AND start >= @from AND start < @until
    AND (@upstream IS NULL OR upstream = @upstream)
  ORDER BY start, upstream, value`;

const INSERT = `
  INSERT OR REPLACE INTO report_rows (unit, dimension, start, upstream, value, ${FINAL_STATUSES.join(', ')}, corrected, requests,
                                      time_to_finality, lag, lags_by_chain, fees, data_billed, unbilled)
  VALUES (@unit, @dimension, @start, @upstream, @value, ${FINAL_STATUSES.map((status) => `@${status}`).join(', ')},
          @corrected, @requests, @timeToFinality, @lag, @lagsByChain, @fees, @dataBilled, @unbilled)`;

/** The dimensions are found by one search of the primary key each: a scan would read every row. */
const DELETE_OLD = `
  WITH RECURSIVE dimensions (name) AS (
    SELECT min(dimension) FROM report_rows WHERE unit = @unit
    UNION ALL
    SELECT (SELECT min(dimension) FROM report_rows WHERE unit = @unit AND dimension > name)
    FROM dimensions WHERE name IS NOT NULL)
  DELETE FROM report_rows WHERE unit = @unit AND (dimension, start, upstream, value) IN (
    SELECT dimension, start, upstream, value FROM dimensions CROSS JOIN report_rows ON dimension = name
    WHERE unit = @unit AND start < @before LIMIT @limit)`;

const SLICE_MS = 5 * 60_000;
const SLICES_KEPT_MS = 400 * 86_400_000;
/**
 * A submission that begins later than this was tracked while the clock was ahead. It is not
 * counted, and does not delay the others.
 */
const MAX_AHEAD_MS = 86_400_000;

type Counted = {
  id: number;
  upstream: string;
  status: Status;
  notFoundMs: number | null;
  finalizedAt: number | null;
  /**
   * When dawatch received the request to track it; later than `tracked_at` if the client set that.
   */
  startAt: number;
};

/**
 * Counts for each upstream with an objective which submissions were known to be final in time. A
 * submission is counted once, when the time of the objective has passed since it was tracked,
 * whether it has ended or not: an outage is visible while it lasts. Throws LedgerError.
 */
export class ObjectiveSlices {
  readonly #db: LedgerDatabase;

  constructor(database: LedgerDatabase) {
    this.#db = database;
  }

  /** Examines the next `limit` submissions. Returns whether more can be counted now. */
  count(query: { upstream: string; objective: Objective; now: number; limit: number }): boolean {
    const { upstream, objective, now, limit } = query;
    const after = this.#db
      .value<number>`SELECT objective_through FROM upstreams WHERE name = ${upstream}`;
    // Reading is cheaper than a transaction, and usually little is new.
    const rows = after === undefined ? [] : this.#db.rows<Counted>(NEXT, { after, limit });
    if (rows.length === 0) return false;
    return this.#db.unsyncedTransaction(() => {
      const isOpen = (row: Counted) =>
        limitOf(row, objective) > now && row.startAt <= now + MAX_AHEAD_MS;
      const firstOpen = rows.findIndex((row) => row.upstream === upstream && isOpen(row));
      const counted = firstOpen < 0 ? rows : rows.slice(0, firstOpen);
      const slices = new Map<number, ObjectiveCounts>();
      for (const row of counted) {
        const isCounted = row.upstream === upstream && row.startAt <= now + MAX_AHEAD_MS;
        const isGood = isCounted ? inTime(row, objective) : undefined;
        if (isGood === undefined) continue;
        const start = Math.floor(limitOf(row, objective) / SLICE_MS) * SLICE_MS;
        const slice = slices.get(start) ?? { good: 0, bad: 0 };
        slices.set(start, slice);
        slice[isGood ? 'good' : 'bad'] += 1;
      }
      for (const [start, { good, bad }] of slices)
        this.#db.run`
          INSERT INTO objective_slices (upstream, start, good, bad) VALUES (${upstream}, ${start}, ${good}, ${bad})
          ON CONFLICT DO UPDATE SET good = good + excluded.good, bad = bad + excluded.bad`;
      const last = counted.at(-1);
      if (last)
        this.#db.run`UPDATE upstreams SET objective_through = ${last.id} WHERE name = ${upstream}`;
      return counted.length === limit;
    });
  }

  /**
   * Returns how the upstreams meet their objectives. Windows contain the slices that overlap with
   * them.
   */
  status(objectives: ReadonlyMap<string, Objective>, now: number): ObjectiveStatus[] {
    return [...objectives].map(([upstream, objective]) => {
      const since = (ms: number) =>
        this.sum({ upstream, from: now - ms, until: Number.MAX_SAFE_INTEGER });
      const windows = Object.fromEntries(
        BURN_WINDOW_NAMES.map((name) => [name, since(BURN_WINDOWS[name])]),
      );
      return {
        upstream,
        objective,
        budget: since(BUDGET_MS),
        windows: windows as Record<BurnWindow, ObjectiveCounts>,
      };
    });
  }

  /** Returns the counts of one upstream in the slices that overlap with a period. */
  sum({
    upstream,
    from,
    until,
  }: {
    upstream: string;
    from: number;
    until: number;
  }): ObjectiveCounts {
    return this.#db.row<ObjectiveCounts>`
      SELECT coalesce(sum(good), 0) AS good, coalesce(sum(bad), 0) AS bad FROM objective_slices
      WHERE upstream = ${upstream} AND start > ${from - SLICE_MS} AND start < ${until}` as ObjectiveCounts;
  }

  /**
   * Returns the counts of one upstream in periods of `unitMs` that begin at `start`, without those
   * that are empty.
   */
  byPeriod(query: { upstream: string; from: number; until: number; unitMs: number }) {
    return this.#db.rows<ObjectiveCounts & { start: number }>(
      `SELECT start - start % @unitMs AS start, sum(good) AS good, sum(bad) AS bad FROM objective_slices
       WHERE upstream = @upstream AND start >= @from AND start < @until GROUP BY 1`,
      query,
    );
  }

  /**
   * Deletes up to `limit` slices of an upstream that are no longer kept. Returns whether there may
   * be more.
   */
  prune(upstream: string, now: number, limit: number): boolean {
    return this.#db.unsyncedTransaction(() => {
      const { changes } = this.#db.run`
        DELETE FROM objective_slices WHERE upstream = ${upstream} AND start IN (
          SELECT start FROM objective_slices WHERE upstream = ${upstream} AND start < ${now - SLICES_KEPT_MS} LIMIT ${limit})`;
      return changes === limit;
    });
  }
}

function limitOf({ startAt }: Counted, { withinMs }: Objective): number {
  return startAt + withinMs;
}

/**
 * Returns whether a submission was known in time; undefined if it does not count: its id is invalid
 * or not known to the upstream, or a client cancelled it.
 */
function inTime(row: Counted, objective: Objective): boolean | undefined {
  const { status, finalizedAt, notFoundMs } = row;
  if (finalizedAt !== null) return finalizedAt <= limitOf(row, objective);
  if (status === Status.cancelled || status === Status.rejected || status === Status.unknown)
    return undefined;
  return status === Status.tracking && notFoundMs !== null ? undefined : false;
}

const NEXT = `
  SELECT s.id, s.upstream, s.status, s.not_found_ms AS notFoundMs, s.finalized_at AS finalizedAt,
         max(s.tracked_at, coalesce(h.at, s.tracked_at)) AS startAt
  FROM submissions s LEFT JOIN history h ON h.submission = s.id AND h.version = 1
  WHERE s.id > @after ORDER BY s.id LIMIT @limit + 0`;

/** Rows of one transaction, which takes two or three milliseconds while its pages are in memory. */
const JUDGED_PER_STEP = 500;
const DELETED_PER_STEP = 50;
/** How often the maintenance runs. */
const JUDGE_EVERY_MS = 60_000;
const PRUNE_EVERY_MS = 3_600_000;

/** What reports count. */
export type ReportSettings = {
  /** The key of `metadata` by whose values submissions are grouped; null: none. */
  metadataKey: string | null;
  /** By upstream. */
  objectives: ReadonlyMap<string, Objective>;
};

/**
 * Sums over submissions by the hour and the day in which they ended, and how many met the
 * objectives. Throws LedgerError.
 */
export class Reports {
  readonly settings: ReportSettings;
  readonly rows: ReportRows;
  readonly objectives: ObjectiveSlices;
  readonly #db: LedgerDatabase;
  #pruneAt = Number.NEGATIVE_INFINITY;

  constructor(database: LedgerDatabase, settings: ReportSettings) {
    this.#db = database;
    this.settings = settings;
    this.rows = new ReportRows(database);
    this.objectives = new ObjectiveSlices(database);
  }

  /**
   * Adds final changes to the sums, in the transaction that makes them. Reads and writes each row
   * once, however many of the changes it contains.
   */
  readonly count: OnFinal = (changes) => {
    const sums = new Map<string, { key: ReportKey; sums: RollUp }>();
    for (const change of changes) {
      const { credential, countedPolls } = this.#db.row<Recorded>(RECORDED, {
        id: change.id,
        version: change.after.version,
      }) as Recorded;
      const rollUp = rollUpOf(change, countedPolls);
      for (const key of keysOf(change, credential, this.settings.metadataKey)) {
        const name = JSON.stringify(key);
        const row = sums.get(name);
        if (row) addRollUp(row.sums, rollUp);
        else {
          const total = emptyRollUp();
          addRollUp(total, rollUp);
          sums.set(name, { key, sums: total });
        }
      }
    }
    for (const { key, sums: added } of sums.values()) this.rows.add(key, added);
  };

  objectiveStatus(now: number): ObjectiveStatus[] {
    return this.objectives.status(this.settings.objectives, now);
  }

  /**
   * How long an ended submission must stay: until it is judged. If those that ended in time were
   * deleted before, the others alone would spend the error budget.
   */
  get minAgeMs(): number {
    const withinMs = this.settings.objectives
      .values()
      .map((objective) => objective.withinMs + JUDGE_EVERY_MS);
    return Math.max(0, ...withinMs);
  }

  /**
   * Judges submissions whose time is over, and deletes rows that are no longer kept, in steps of
   * some milliseconds.
   */
  *maintain(now: () => number): Generator<void> {
    const { objectives } = this.settings;
    for (const [upstream, objective] of objectives)
      while (this.objectives.count({ upstream, objective, now: now(), limit: JUDGED_PER_STEP }))
        yield;
    if (now() < this.#pruneAt) return;
    this.#pruneAt = now() + PRUNE_EVERY_MS;
    while (this.rows.prune(now(), DELETED_PER_STEP)) yield;
    for (const upstream of objectives.keys())
      while (this.objectives.prune(upstream, now(), DELETED_PER_STEP)) yield;
  }
}

/** Yields the rows that contain a change. */
function* keysOf(
  { after: { upstream, metadata }, at }: FinalChange,
  credential: number | null,
  metadataKey: string | null,
): Generator<ReportKey, void> {
  const none: ReportGroup = { kind: 'none' };
  const valued = (value: string): ReportGroup => ({ kind: 'value', value });
  const day = { unit: 'day', start: at - (at % REPORT_UNITS.day), upstream } as const;
  const all = { dimension: 'upstream', group: valued('') };
  yield { ...day, unit: 'hour', start: at - (at % REPORT_UNITS.hour), ...all };
  yield { ...day, ...all };
  const tracker = credential === null ? none : valued(String(credential));
  yield { ...day, dimension: 'credential', group: tracker };
  if (metadataKey !== null)
    yield {
      ...day,
      dimension: metadataDimension(metadataKey),
      group: groupOf(metadata, metadataKey),
    };
}

/** `countedPolls`: those that an earlier end or correction of the submission has counted. */
type Recorded = { credential: number | null; countedPolls: number };

const FINAL = FINAL_STATUSES.map((status) => `'${status}'`).join(', ');

/** A client's changes of options are in the history, too; they have `changes`. */
const RECORDED = `
  SELECT s.credential, coalesce((
    SELECT h.polls FROM history h
    WHERE h.submission = s.id AND h.version < @version AND h.status IN (${FINAL}) AND h.changes IS NULL
    ORDER BY h.version DESC LIMIT 1), 0) AS countedPolls
  FROM submissions s WHERE s.id = @id`;

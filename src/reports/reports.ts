import type { LedgerDatabase } from '../ledger/ledger-database.ts';
import { dataOf } from '../submissions/classify.ts';
import type { Objective, ObjectiveStatus } from '../submissions/objective.ts';
import type { FinalChange, OnFinal } from '../submissions/ports.ts';
import { FINAL_STATUSES, Status } from '../submissions/submission.ts';
import { ObjectiveSlices } from './objective-slices-store.ts';
import {
  metadataDimension,
  REPORT_UNITS,
  type ReportKey,
  ReportRows,
} from './report-rows-store.ts';
import {
  addRollUp,
  billingOf,
  emptyRollUp,
  type FinalStatus,
  groupOf,
  type ReportGroup,
  type RollUp,
} from './roll-up.ts';

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
        const known = sums.get(name);
        if (known) addRollUp(known.sums, rollUp);
        else {
          const own = emptyRollUp();
          addRollUp(own, rollUp);
          sums.set(name, { key, sums: own });
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

/** Returns what one change adds. A submission that was tracked again counts once for each end. */
function rollUpOf({ before, after, at, lagMs }: FinalChange, countedPolls: number): RollUp {
  const sums = emptyRollUp();
  const status = after.status as FinalStatus;
  sums.requests = after.polls - countedPolls;
  if (before.status === status) sums.corrected = 1;
  else sums.ended[status] = 1;
  if (status !== Status.finalized) return sums;
  const billing = billingOf(dataOf(after.envelope));
  if (before.status === status) {
    const earlier = billingOf(dataOf(before.envelope));
    sums.fees = (billing.fees ?? 0n) - (earlier.fees ?? 0n);
    sums.dataBilled = (billing.dataBilled ?? 0n) - (earlier.dataBilled ?? 0n);
    sums.unbilled = unbilled(billing) - unbilled(earlier);
    return sums;
  }
  sums.timeToFinality.add(at - after.trackedAt);
  if (lagMs !== null) sums.lag.add(lagMs);
  sums.fees = billing.fees ?? 0n;
  sums.dataBilled = billing.dataBilled ?? 0n;
  sums.unbilled = unbilled(billing);
  return sums;
}

function unbilled({ fees, dataBilled }: ReturnType<typeof billingOf>): number {
  return fees === undefined || dataBilled === undefined ? 1 : 0;
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

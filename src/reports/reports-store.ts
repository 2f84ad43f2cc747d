import type { LedgerDatabase } from '../ledger/ledger-database.ts';
import { storedObject } from '../lib/stored.ts';
import { dataOf } from '../submissions/classify.ts';
import { FINAL_STATUSES, Status } from '../submissions/submission.ts';
import {
  metadataDimension,
  REPORT_UNITS,
  type ReportKey,
  ReportRows,
  type ReportUnit,
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

/** A row of history with a final status, and its submission. */
type FinalChange = {
  at: number;
  version: number;
  status: FinalStatus;
  previousStatus: Status | null;
  /** Null in rows that were written before this column, like the next. */
  polls: number | null;
  lagMs: number | null;
  envelope: string | null;
  submission: number;
  upstream: string;
  credential: number | null;
  metadata: string | null;
  trackedAt: number;
  pollsNow: number;
};

/** The final change of a submission before another one, if there was any. */
type Earlier = { status: FinalStatus; polls: number | null; envelope: string | null };

/**
 * Reports: sums over submissions by the hour and the day in which they ended, derived from the
 * history in the order in which it was written. How far they were derived is stored with them, so
 * that each change is counted exactly once. Throws LedgerError.
 */
export class Reports {
  readonly rows: ReportRows;
  readonly #db: LedgerDatabase;

  constructor(database: LedgerDatabase) {
    this.#db = database;
    this.rows = new ReportRows(database);
  }

  /**
   * Counts the next `limit` rows of history. `metadataKey`: the key by whose values submissions are
   * grouped; null: they are not. Returns whether there may be more.
   */
  count({
    metadataKey,
    now,
    limit,
  }: {
    metadataKey: string | null;
    now: number;
    limit: number;
  }): boolean {
    // Reading is cheaper than a transaction, and usually nothing is new.
    if (this.countedUntil() === undefined) return false;
    return this.#db.unsyncedTransaction(() => {
      const after = this.countedThrough();
      const { through, count } = this.#db.row<{ through: number | null; count: number }>(
        NEXT_HISTORY,
        {
          after,
          limit,
        },
      ) as { through: number | null; count: number };
      if (through === null) return false;
      const sums = new Map<string, { key: ReportKey; sums: RollUp }>();
      for (const change of this.#db.rows<FinalChange>(FINAL_CHANGES, { after, through })) {
        const rollUp = this.#rollUpOf(change);
        for (const key of keysOf(change, metadataKey, now)) {
          const name = JSON.stringify(key);
          const known = sums.get(name);
          if (!known) sums.set(name, { key, sums: emptyRollUp() });
          addRollUp((known ?? (sums.get(name) as { sums: RollUp })).sums, rollUp);
        }
      }
      for (const { key, sums: added } of sums.values()) this.rows.add(key, added);
      this.#db.run`UPDATE meta SET value = ${String(through)} WHERE key = 'reports_through'`;
      return count === limit;
    });
  }

  /** Returns the sequence number of the newest row of history that was counted. */
  countedThrough(): number {
    return Number(this.#db.value("SELECT value FROM meta WHERE key = 'reports_through'") ?? 0);
  }

  /** Returns the time of the first change that was not counted; undefined if all were. */
  countedUntil(): number | undefined {
    return this.#db
      .value<number>`SELECT at FROM history WHERE seq > ${this.countedThrough()} ORDER BY seq LIMIT 1`;
  }

  /** Deletes up to `limit` rows that are no longer kept. Returns whether there may be more. */
  prune(now: number, limit: number): boolean {
    return this.#db.unsyncedTransaction(() => this.rows.prune(now, limit));
  }

  /** A submission that was tracked again after its end counts once for each end. */
  #rollUpOf(change: FinalChange): RollUp {
    const { status, previousStatus, at, version, submission, polls, pollsNow, lagMs } = change;
    const sums = emptyRollUp();
    const earlier = this.#db.row<Earlier>(EARLIER, { submission, version });
    sums.requests = Math.max(0, (polls ?? (earlier ? 0 : pollsNow)) - (earlier?.polls ?? 0));
    if (previousStatus === status) sums.corrected = 1;
    else sums.ended[status] = 1;
    if (status === Status.finalized && previousStatus !== status) {
      // A finalized submission is never tracked again, so this is when tracking began the last
      // time.
      sums.timeToFinality.add(at - change.trackedAt);
      if (lagMs !== null) sums.lag.add(lagMs);
    }
    if (status === Status.finalized) addBilling(sums, change.envelope, earlier);
    return sums;
  }
}

/** Adds what the upstream billed; for a correction, the difference. */
function addBilling(sums: RollUp, envelope: string | null, earlier: Earlier | undefined): void {
  const billing = billingOf(dataOf(envelope));
  const before =
    earlier?.status === Status.finalized ? billingOf(dataOf(earlier.envelope)) : undefined;
  sums.fees = (billing.fees ?? 0n) - (before?.fees ?? 0n);
  sums.dataBilled = (billing.dataBilled ?? 0n) - (before?.dataBilled ?? 0n);
  const isUnbilled = ({ fees, dataBilled }: typeof billing) =>
    fees === undefined || dataBilled === undefined;
  sums.unbilled = Number(isUnbilled(billing)) - Number(before !== undefined && isUnbilled(before));
}

function* keysOf(
  { at, upstream, credential, metadata }: FinalChange,
  metadataKey: string | null,
  now: number,
): Generator<ReportKey, void> {
  // A time in the future was written by a clock that was ahead.
  const startOf = (unit: ReportUnit) =>
    Math.floor(Math.min(at, now) / REPORT_UNITS[unit]) * REPORT_UNITS[unit];
  const valued = (value: string): ReportGroup => ({ kind: 'value', value });
  const own = { dimension: 'upstream', upstream, group: valued('') };
  yield { unit: 'hour', start: startOf('hour'), ...own };
  const day = { unit: 'day', start: startOf('day') } as const;
  yield { ...day, ...own };
  const credentialGroup =
    credential === null ? ({ kind: 'none' } as const) : valued(String(credential));
  yield { ...day, dimension: 'credential', upstream, group: credentialGroup };
  if (metadataKey !== null)
    yield {
      ...day,
      dimension: metadataDimension(metadataKey),
      upstream,
      group: groupOf(storedObject(metadata, 'a submission', 'metadata'), metadataKey),
    };
}

const FINAL = FINAL_STATUSES.map((status) => `'${status}'`).join(', ');

const NEXT_HISTORY = `
  SELECT max(seq) AS through, count(*) AS count
  FROM (SELECT seq FROM history WHERE seq > @after ORDER BY seq LIMIT @limit + 0)`;

/** Without changes of options by clients, which change no status. */
const FINAL_CHANGES = `
  SELECT h.at, h.version, h.status, h.previous_status AS previousStatus, h.polls, h.lag_ms AS lagMs, h.response AS envelope,
         s.id AS submission, s.upstream, s.credential, s.metadata, s.tracked_at AS trackedAt, s.polls AS pollsNow
  FROM history h JOIN submissions s ON s.id = h.submission
  WHERE h.seq > @after AND h.seq <= @through AND h.status IN (${FINAL}) AND h.changes IS NULL
  ORDER BY h.seq`;

const EARLIER = `
  SELECT status, polls, response AS envelope FROM history
  WHERE submission = +@submission AND version < @version AND status IN (${FINAL}) ORDER BY version DESC LIMIT 1`;

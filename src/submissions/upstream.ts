import type { LedgerDatabase } from '../ledger/ledger-database.ts';
import type { Observation } from './classify.ts';
import { type Delay, MAX_DELAYS } from './delay.ts';
import type { UpstreamEventType } from './event-types.ts';

/** The recorded part of an outage clock. Times are epoch milliseconds. */
export type PauseRecord = {
  /** Total duration of the past outages and pauses. */
  outageMs: number;
  /** The current pause, which is not part of `outageMs`. */
  pausedSince: number | null;
  pausedUntil: number | null;
};

/** The recorded state of an upstream. Times are epoch milliseconds. */
export type UpstreamRecord = PauseRecord & {
  state: BreakerState;
  /** Start of the current outage; null: there is none. */
  outSince: number | null;
  /** Until when a process may have been polling. */
  pollingUntil: number | null;
  /** What the scheduler has learned, in the scheduler's own format. */
  snapshot: string | null;
};

/**
 * A change of an upstream's circuit breaker. `at` is epoch milliseconds. `reason`: of the outage,
 * or of the one that ended after `lastedMs`.
 */
export type UpstreamChange = {
  upstream: string;
  at: number;
  event: UpstreamEventType;
  reason: string;
  lastedMs: number;
  record: Pick<UpstreamRecord, 'state' | 'outSince' | 'outageMs'>;
};

/** The circuit breaker of an upstream: `up` is closed, every other state is open. */
export const BreakerState = {
  up: 'up',
  /** The upstream fails: only probes are sent. */
  down: 'down',
  /** The upstream refuses our credentials: only slow probes are sent. */
  unauthorized: 'unauthorized',
} as const;
export type BreakerState = (typeof BreakerState)[keyof typeof BreakerState];

/**
 * The states of an upstream in every response, metric and page. `probing`: it is down, and a
 * request that tests it is in flight.
 */
export const UPSTREAM_STATES = ['up', 'down', 'probing', 'unauthorized'] as const;
export type UpstreamState = (typeof UPSTREAM_STATES)[number];

/** Whether the upstream returned the submission, in any state. */
export function isSeen(observation: Observation): boolean {
  return (
    observation.kind === 'pending' ||
    observation.kind === 'error' ||
    observation.kind === 'finalized'
  );
}

/**
 * SQL expression: the outage clock of a row of `upstreams` at @now, in milliseconds. See
 * polling/time-limits.ts.
 */
const OUTAGE_MS = `outage_ms + coalesce(max(0, @now - out_since), 0)
  + coalesce(max(0, min(@now, paused_until) - paused_since), 0)`;

/**
 * What each upstream keeps across restarts: its outage, its outage clock, the fencing of its polls,
 * and the learned pacing.
 */
export class UpstreamStore {
  readonly #db: LedgerDatabase;

  constructor(database: LedgerDatabase) {
    this.#db = database;
  }

  /**
   * Returns the record of an upstream, and creates it if there is none. Must be called inside a
   * transaction.
   */
  get(name: string): UpstreamRecord {
    this.#db.run`INSERT INTO upstreams (name) VALUES (${name}) ON CONFLICT DO NOTHING`;
    return this.#db.row<UpstreamRecord>`
      SELECT state, out_since AS outSince, outage_ms AS outageMs, paused_since AS pausedSince,
             paused_until AS pausedUntil, polling_until AS pollingUntil,
             (SELECT value FROM meta WHERE key = 'pacing:' || name) AS snapshot
      FROM upstreams WHERE name = ${name}` as UpstreamRecord;
  }

  /** Returns the reading of the outage clock at `now`, in milliseconds. */
  outageMs(name: string, now: number): number {
    const sql = `SELECT ${OUTAGE_MS} FROM upstreams WHERE name = @name`;
    const outageMs = this.#db.value<number>(sql, { name, now });
    if (outageMs === undefined) throw new Error(`no upstream is named ${name}`);
    return outageMs;
  }

  /**
   * Records the beginning or the end of an outage. `outageMs` includes the pause before it, which
   * is cleared.
   */
  setOutage(
    name: string,
    { state, outSince, outageMs }: Pick<UpstreamRecord, 'state' | 'outSince' | 'outageMs'>,
  ): void {
    this.#db.run`
      UPDATE upstreams
      SET state = ${state}, out_since = ${outSince}, outage_ms = ${outageMs}, paused_since = NULL, paused_until = NULL
      WHERE name = ${name}`;
  }

  /** Records the outage clock while there is no outage. */
  setPause(name: string, { outageMs, pausedSince, pausedUntil }: PauseRecord): void {
    this.#db.run`
      UPDATE upstreams SET outage_ms = ${outageMs}, paused_since = ${pausedSince}, paused_until = ${pausedUntil}
      WHERE name = ${name}`;
  }

  /** Adds delays, or replaces those that began at the same time for the same cause. */
  setDelays(upstream: string, delays: readonly Delay[]): void {
    for (const { cause, reason, beganAt, endedAt } of delays)
      this.#db.run`
        INSERT INTO delays (upstream, cause, began_at, ended_at, reason)
        VALUES (${upstream}, ${cause}, ${beganAt}, ${endedAt}, ${reason})
        ON CONFLICT DO UPDATE SET ended_at = excluded.ended_at, reason = excluded.reason`;
    this.#db.run`
      DELETE FROM delays WHERE upstream = ${upstream} AND began_at <= (
        SELECT began_at FROM delays WHERE upstream = ${upstream} ORDER BY began_at DESC LIMIT 1 OFFSET ${MAX_DELAYS})`;
  }

  /** Lists the delays of an upstream, oldest first. */
  delays(upstream: string): Delay[] {
    return this.#db.rows<Delay>`
      SELECT cause, reason, began_at AS beganAt, ended_at AS endedAt
      FROM delays WHERE upstream = ${upstream} ORDER BY began_at`;
  }

  /**
   * Records until when this process may send polls, and a snapshot of the pacing; null leaves the
   * snapshot as it is.
   */
  setPolling(name: string, until: number, snapshot: string | null): void {
    this.#db.run`UPDATE upstreams SET polling_until = ${until} WHERE name = ${name}`;
    if (snapshot === null) return;
    this.#db.run`
      INSERT INTO meta (key, value) VALUES (${`pacing:${name}`}, ${snapshot})
      ON CONFLICT DO UPDATE SET value = excluded.value`;
  }
}

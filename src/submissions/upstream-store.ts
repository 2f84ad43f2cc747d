import type { LedgerDatabase } from '../ledger/ledger-database.ts';
import type { PauseRecord, UpstreamRecord } from './ports.ts';

/**
 * SQL expression: the outage clock of a row of `upstreams` at @now, in milliseconds. See
 * watch/outage-clock.ts.
 */
export const OUTAGE_MS = `outage_ms + coalesce(max(0, @now - out_since), 0)
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

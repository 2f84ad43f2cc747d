import type { LedgerDatabase } from '../file/ledger-database.ts';

/** Epoch milliseconds; null: never, as far as known. */
export type ChannelResult = { lastSuccessAt: number | null; lastFailureAt: number | null };

/** When each channel last accepted and last failed an attempt, also after its deliveries are deleted. Throws LedgerError. */
export class ChannelResults {
  readonly #db: LedgerDatabase;

  constructor(database: LedgerDatabase) {
    this.#db = database;
  }

  /** Must be called inside a transaction. `at`: the end of the attempt. */
  record(channel: string, { isSuccess, at }: { isSuccess: boolean; at: number }): void {
    this.#db.run`
      INSERT INTO channel_results (channel, last_success_at, last_failure_at)
      VALUES (${channel}, ${isSuccess ? at : null}, ${isSuccess ? null : at})
      ON CONFLICT (channel) DO UPDATE SET
        last_success_at = coalesce(excluded.last_success_at, last_success_at),
        last_failure_at = coalesce(excluded.last_failure_at, last_failure_at)`;
  }

  get(channel: string): ChannelResult {
    const found = this.#db.row<ChannelResult>`
      SELECT last_success_at AS lastSuccessAt, last_failure_at AS lastFailureAt
      FROM channel_results WHERE channel = ${channel}`;
    return found ?? { lastSuccessAt: null, lastFailureAt: null };
  }
}

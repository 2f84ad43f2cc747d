import type { LedgerDatabase } from '../ledger/ledger-database.ts';

/** Epoch milliseconds; null: never since this is recorded. */
export type ChannelResult = { lastSuccessAt: number | null; lastFailureAt: number | null };

/**
 * The times of the last success and the last failure of each channel. They outlive its deliveries.
 * Throws LedgerError.
 */
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

import type { LedgerDatabase } from '../ledger/ledger-database.ts';
import type { ChangedSubmissions } from './changed-submissions.ts';
import type { OptionChanges, Status, Submission } from './submission.ts';

type HistoryChange = {
  previousStatus: Status | null;
  at: number;
  /** Upper bound of the time since it became final, in milliseconds, if the change finalizes it. */
  lagMs?: number | null;
  /** The options that a client changed. */
  changes?: OptionChanges | null;
};

/** The append-only history of submissions. */
export class History {
  readonly #db: LedgerDatabase;
  readonly #changed: ChangedSubmissions;

  constructor(database: LedgerDatabase, changed: ChangedSubmissions) {
    this.#db = database;
    this.#changed = changed;
  }

  /**
   * Adds one row: the submission after a change. `id`: of its row. Must be called inside a
   * transaction.
   */
  add(
    id: number,
    after: Submission,
    { previousStatus, at, lagMs = null, changes = null }: HistoryChange,
  ): void {
    const { submissionId, version, status, upstreamState, error, envelope, polls } = after;
    this.#changed.add(submissionId);
    this.#db.run`
      INSERT INTO history (submission, version, at, status, previous_status, upstream_state, error, response, changes, polls,
                           lag_ms)
      VALUES (${id}, ${version}, ${at}, ${status}, ${previousStatus}, ${upstreamState}, ${error}, ${envelope},
              ${changes && JSON.stringify(changes)}, ${polls}, ${lagMs})`;
  }
}

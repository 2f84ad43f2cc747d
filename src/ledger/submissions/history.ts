import type { OptionChanges, Status, Submission } from '../../domain/submission.ts';
import type { CommittedChanges, LedgerDatabase } from '../file/ledger-database.ts';

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
  readonly #changed: CommittedChanges<string>;

  /** `changed`: gets the ids of changed submissions. */
  constructor(database: LedgerDatabase, changed: CommittedChanges<string>) {
    this.#db = database;
    this.#changed = changed;
  }

  /** Adds one row: the submission after a change. `id`: of its row. Must be called inside a transaction. */
  add(id: number, after: Submission, { previousStatus, at, lagMs = null, changes = null }: HistoryChange): void {
    const { submissionId, version, status, upstreamState, error, envelope, polls } = after;
    this.#changed.add(submissionId);
    this.#db.run`
      INSERT INTO history (submission, version, at, status, previous_status, upstream_state, error, answer, changes, polls,
                           lag_ms)
      VALUES (${id}, ${version}, ${at}, ${status}, ${previousStatus}, ${upstreamState}, ${error}, ${envelope},
              ${changes && JSON.stringify(changes)}, ${polls}, ${lagMs})`;
  }
}

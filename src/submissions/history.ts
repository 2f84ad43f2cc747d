import { CommittedChanges, type LedgerDatabase } from '../ledger/ledger-database.ts';
import type { OptionChanges, Status, Submission } from './submission.ts';

type HistoryChange = {
  previousStatus: Status | null;
  at: number;
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
  add(id: number, after: Submission, { previousStatus, at, changes = null }: HistoryChange): void {
    const { submissionId, version, status, upstreamState, error, envelope, polls } = after;
    this.#changed.add(submissionId);
    this.#db.run`
      INSERT INTO history (submission, version, at, status, previous_status, upstream_state, error, response, changes, polls)
      VALUES (${id}, ${version}, ${at}, ${status}, ${previousStatus}, ${upstreamState}, ${error}, ${envelope},
              ${changes && JSON.stringify(changes)}, ${polls})`;
  }
}

/** Knows the submissions whose changes are committed, and not on the disk yet. */
export class ChangedSubmissions {
  readonly #changes: CommittedChanges<string>;
  /** Number of such changes by submission id. */
  readonly #unsynced = new Map<string, number>();

  constructor(database: LedgerDatabase) {
    this.#changes = new CommittedChanges(database);
    this.#changes.onCommitted((ids) => {
      for (const id of ids) this.#unsynced.set(id, (this.#unsynced.get(id) ?? 0) + 1);
    });
    this.#changes.onDurable((ids) => {
      for (const id of ids) {
        const left = (this.#unsynced.get(id) ?? 0) - 1;
        if (left > 0) this.#unsynced.set(id, left);
        else this.#unsynced.delete(id);
      }
    });
  }

  /** Must be called inside the transaction of the change. */
  add(submissionId: string): void {
    this.#changes.add(submissionId);
  }

  isUnsynced(submissionId: string): boolean {
    return this.#unsynced.has(submissionId);
  }
}

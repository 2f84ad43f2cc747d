import { CommittedChanges, type LedgerDatabase } from '../ledger/ledger-database.ts';

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

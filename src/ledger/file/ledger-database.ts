import type Database from 'better-sqlite3';
import { guarded } from './errors.ts';

/** Everything that is written goes through here: on the disk when `run` returns, not at all when it throws. */
export class LedgerDatabase {
  readonly db: Database.Database;
  readonly file: string;
  readonly #transaction: Database.Transaction<(work: () => unknown) => unknown>;
  #isReading = false;
  readonly #afterwards: ((committed: boolean, durationMs: number) => void)[] = [];

  constructor(db: Database.Database, file: string) {
    this.db = db;
    this.file = file;
    this.#transaction = db.transaction((work: () => unknown) => work());
  }

  /** Called after each transaction, whether it was committed or rolled back, with how long it took. */
  onEnd(listener: (committed: boolean, durationMs: number) => void): void {
    this.#afterwards.push(listener);
  }

  /** Throws LedgerError. Inside of another one it is part of that. */
  transaction<T>(work: () => T): T {
    if (this.#isReading) throw new Error('nothing is written within a snapshot: it would be committed unheard');
    if (this.db.inTransaction) return work();
    const startedAt = performance.now();
    let committed = false;
    try {
      const result = guarded(this.file, () => this.#transaction.immediate(work) as T);
      committed = true;
      return result;
    } finally {
      const durationMs = performance.now() - startedAt;
      for (const end of this.#afterwards) apart(() => end(committed, durationMs));
    }
  }

  /** The same without waiting for the disk: a power cut may undo it, a kill can't. For what would only be done again. */
  unsyncedTransaction<T>(work: () => T): T {
    if (this.db.inTransaction) return this.transaction(work);
    this.db.pragma('synchronous = NORMAL');
    try {
      return this.transaction(work);
    } finally {
      this.db.pragma('synchronous = FULL');
    }
  }

  /** Reads several times, as of one moment: each statement by itself would lock and unlock the file. Throws LedgerError. */
  snapshot<T>(work: () => T): T {
    if (this.db.inTransaction) return work();
    this.#isReading = true;
    try {
      return guarded(this.file, () => this.#transaction.deferred(work) as T);
    } finally {
      this.#isReading = false;
    }
  }

  /** Reads outside of a transaction. Throws LedgerError. */
  read<T>(work: () => T): T {
    return guarded(this.file, work);
  }
}

/** What fails afterwards must not look as if the transaction had: it is a fault of ours, and ends the process as one. */
function apart(work: () => void): void {
  try {
    work();
  } catch (error) {
    setImmediate(() => {
      throw error;
    });
  }
}

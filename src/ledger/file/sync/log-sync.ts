import { closeSync, fdatasync, fdatasyncSync, openSync } from 'node:fs';
import type Database from 'better-sqlite3';
import { guarded, toLedgerError } from '../errors.ts';
import { Checkpoints, type LogCopy } from './checkpoints.ts';

/**
 * Syncs the write-ahead log of a ledger to the disk in another thread, so that a slow disk does not stop the event loop. Commits
 * that are made during a sync share the next one. See docs/decisions/0026.
 *
 * A failed sync is final: the system may have dropped the data that it could not write, and a second sync would then succeed
 * although the data is lost.
 */
export class LogSync {
  readonly #file: string;
  readonly #fd: number;
  readonly #checkpoints: Checkpoints;
  readonly #onFailed: (error: unknown) => void;
  /** Covers what was committed before it began. */
  #running: PromiseWithResolvers<void> | undefined;
  /** Covers what was committed since then. */
  #next: PromiseWithResolvers<void> | undefined;
  #failure: unknown;
  #isClosed = false;

  /** From now on, commits of `db` do not wait for the disk. `onFailed`: the process must end, and start again from the file. */
  constructor(db: Database.Database, onFailed: (error: unknown) => void) {
    this.#file = db.name;
    this.#onFailed = onFailed;
    this.#fd = guarded(db.name, () => openSync(`${db.name}-wal`, 'r'));
    this.#checkpoints = new Checkpoints(db);
    db.pragma('synchronous = NORMAL');
  }

  /** Must be called after each commit that has to reach the disk. */
  committed(): void {
    if (this.#next) return;
    this.#next = Promise.withResolvers();
    // Whoever does not wait for the disk does not handle the error either.
    this.#next.promise.catch(() => undefined);
    if (!this.#running) this.#start();
  }

  /** Copies the log to the ledger in another thread. Must be called after each commit that does not have to reach the disk. */
  copyLog(): LogCopy {
    return this.#checkpoints.runIfNeeded();
  }

  /** Resolves when everything that was committed before this call is on the disk; undefined if it is. Rejects with LedgerError. */
  whenDurable(): Promise<void> | undefined {
    if (this.#failure !== undefined) return Promise.reject(this.#failure);
    return (this.#next ?? this.#running)?.promise;
  }

  /** Syncs what is left, and blocks until it is on the disk. Throws LedgerError. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    try {
      if (this.#running) fdatasyncSync(this.#fd);
    } catch (error) {
      throw toLedgerError(this.#file, error);
    } finally {
      // The thread of a running sync still uses the descriptor. Only its end shows whether the disk took everything.
      if (!this.#running) closeSync(this.#fd);
    }
  }

  #start(): void {
    const running = this.#next;
    this.#running = running;
    this.#next = undefined;
    fdatasync(this.#fd, (error) => {
      this.#running = undefined;
      if (this.#isClosed) closeSync(this.#fd);
      if (error) return this.#fail(toLedgerError(this.#file, error), running);
      running?.resolve();
      if (this.#isClosed) {
        this.#next?.resolve();
        return;
      }
      if (this.#next) this.#start();
      this.#checkpoints.runIfNeeded();
    });
  }

  #fail(error: unknown, running: PromiseWithResolvers<void> | undefined): void {
    this.#failure = error;
    running?.reject(error);
    this.#next?.reject(error);
    this.#onFailed(error);
  }
}

import { closeSync, fdatasync, fdatasyncSync, openSync } from 'node:fs';
import type Database from 'better-sqlite3';
import { Checkpoints } from './checkpoints.ts';
import { guarded, type LedgerError } from './errors.ts';
import { markFailedSync } from './recovery.ts';

export type DeferredSync = {
  /** Called if a sync fails; must end the process, which then restarts from the file. */
  onFailed: (error: unknown) => void;
};

/**
 * Syncs the write-ahead log of a ledger to the disk in another thread, so that a slow disk does not
 * stop the event loop. Commits that are made during a sync share the next one. See
 * docs/decisions/0026.
 *
 * A failed sync is final: the system may have dropped the data that it could not write, and a
 * second sync would then succeed although the data is lost.
 */
export class LogSync {
  readonly #file: string;
  readonly #fd: number;
  readonly #checkpoints: Checkpoints;
  readonly #onFailed: (error: unknown) => void;
  /** The sync in progress. It covers all commits before its start. */
  #running: PromiseWithResolvers<void> | undefined;
  /** The next sync. It covers the commits since the start of the running one. */
  #next: PromiseWithResolvers<void> | undefined;
  /** Start of the sync in progress, in monotonic milliseconds. */
  #startedAt = 0;
  #failure: LedgerError | undefined;
  #isClosed = false;

  /** Turns off the sync of each commit of `db`. */
  constructor(db: Database.Database, { onFailed }: DeferredSync) {
    this.#file = db.name;
    this.#onFailed = onFailed;
    this.#checkpoints = new Checkpoints(db, (error) => this.fail(error));
    db.pragma('synchronous = NORMAL');
    // Last, because nothing closes the descriptor if this constructor throws.
    this.#fd = guarded(db.name, () => openSync(`${db.name}-wal`, 'r'));
  }

  /**
   * Requests a sync. Must be called after each commit that must be on the disk before it is
   * acknowledged.
   */
  committed(): void {
    if (this.#next || this.#failure !== undefined) return;
    this.#next = Promise.withResolvers();
    // `onFailed` handles a failed sync. Without this handler, a rejection that no caller awaits
    // would be an unhandled rejection.
    this.#next.promise.catch(() => undefined);
    if (!this.#running) this.#start();
  }

  /**
   * Copies the log to the ledger in another thread. Must be called after each commit that is not
   * synced.
   */
  copyLog(): void {
    this.#checkpoints.run();
  }

  /**
   * Resolves when all commits before this call are on the disk; undefined if they are already.
   * Rejects with LedgerError.
   */
  whenDurable(): Promise<void> | undefined {
    if (this.#failure !== undefined) return Promise.reject(this.#failure);
    return (this.#next ?? this.#running)?.promise;
  }

  /**
   * Start of the sync in progress, in milliseconds of `performance.now()`; undefined if there is
   * none.
   */
  get pendingSince(): number | undefined {
    return this.#running && this.#startedAt;
  }

  /** Must be called when the connection is closed, and not before. */
  release(): void {
    this.#checkpoints.release();
  }

  /** Syncs the remaining commits, and blocks until they are on the disk. Throws LedgerError. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    try {
      if (this.#running) fdatasyncSync(this.#fd);
    } catch (error) {
      // The system reports an error to one sync only: the running one may succeed.
      throw this.fail(error);
    } finally {
      // A running sync still uses the descriptor, and reports only at its end whether the disk
      // stored the data. It closes the descriptor.
      if (!this.#running) closeSync(this.#fd);
      this.#checkpoints.close();
    }
  }

  #start(): void {
    const running = this.#next;
    this.#running = running;
    this.#startedAt = performance.now();
    this.#next = undefined;
    fdatasync(this.#fd, (error) => {
      if (this.#isClosed) closeSync(this.#fd);
      if (error) this.fail(error);
      this.#running = undefined;
      if (this.#failure !== undefined) return;
      running?.resolve();
      if (this.#isClosed) {
        this.#next?.resolve();
        return;
      }
      if (this.#next) this.#start();
      this.#checkpoints.run();
    });
  }

  /**
   * Must be called if a sync has failed. Leaves the marker for the next start, and ends the
   * process.
   */
  fail(error: unknown): LedgerError {
    if (this.#failure) return this.#failure;
    this.#failure = markFailedSync(this.#file, error);
    this.#running?.reject(this.#failure);
    this.#next?.reject(this.#failure);
    this.#onFailed(this.#failure);
    return this.#failure;
  }
}

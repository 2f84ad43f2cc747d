import { closeSync, fdatasync, fdatasyncSync, openSync } from 'node:fs';
import type Database from 'better-sqlite3';
import { guarded, isFailedSync, type LedgerError } from './errors.ts';
import { markFailedSync } from './recovery.ts';

export type DeferredSync = {
  /** Called if a sync fails; must end the process, which then restarts from the file. */
  onFailed: (error: unknown) => void;
};

/** The fewest pages (4 KiB each) for which a checkpoint starts: the default of SQLite. */
const MIN_PAGES = 1_000;
/** Pause after a checkpoint that failed, or that a reader prevented from copying the whole log. */
const RETRY_MS = 1_000;

/**
 * Syncs the write-ahead log of a ledger to the disk in another thread, so that a slow disk does not
 * stop the event loop. Commits that are made during a sync share the next one. See
 * docs/decisions/0026.
 *
 * A failed sync is final: the system may have dropped the data that it could not write, and a
 * second sync would then succeed although the data is lost.
 */
export class LogSync {
  readonly #fd: number;
  readonly #db: Database.Database;
  readonly #logState: Database.Statement<[], [busy: number, pages: number, copied: number]>;
  readonly #onFailed: (error: unknown) => void;
  /** The sync in progress. It covers all commits before its start. */
  #running: PromiseWithResolvers<void> | undefined;
  /** The next sync. It covers the commits since the start of the running one. */
  #next: PromiseWithResolvers<void> | undefined;
  /** Start of the sync in progress, in monotonic milliseconds. */
  #startedAt = 0;
  #failure: LedgerError | undefined;
  #isClosed = false;
  #nextCheckpointAt = 0;

  /** Turns off the sync of each commit of `db`, and the checkpoints of SQLite. */
  constructor(db: Database.Database, { onFailed }: DeferredSync) {
    this.#db = db;
    this.#onFailed = onFailed;
    db.pragma('synchronous = NORMAL');
    // SQLite ignores failed syncs of these checkpoints.
    db.pragma('wal_autocheckpoint = 0');
    // SQLite prepares a pragma again at each execution: objects would get new properties each time.
    this.#logState = db
      .prepare<[], [busy: number, pages: number, copied: number]>('PRAGMA wal_checkpoint(NOOP)')
      .raw();
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
   * Copies the log to the ledger if it is long, so that the next commit can begin it again. Must be
   * called after each commit that is not synced. An error that is no failed sync, such as a full
   * disk or a read in progress, only defers it. So does a sync in progress: if the disk hangs, the
   * event loop must not wait for it, too.
   */
  copyLog(): void {
    if (this.#running || performance.now() < this.#nextCheckpointAt) return;
    try {
      if (this.#uncopiedPages() < MIN_PAGES) return;
      this.#db.pragma('wal_checkpoint(PASSIVE)');
      if (this.#uncopiedPages() > 0) this.#nextCheckpointAt = performance.now() + RETRY_MS;
    } catch (error) {
      if (isFailedSync(error)) this.fail(error);
      this.#nextCheckpointAt = performance.now() + RETRY_MS;
    }
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
    }
  }

  #uncopiedPages(): number {
    const [, pages, copied] = this.#logState.get() ?? [0, 0, 0];
    return pages - copied;
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
      this.copyLog();
      if (this.#next && !this.#failure) this.#start();
    });
  }

  /**
   * Must be called if a sync has failed. Leaves the marker for the next start, and ends the
   * process.
   */
  fail(error: unknown): LedgerError {
    if (this.#failure) return this.#failure;
    this.#failure = markFailedSync(this.#db.name, error);
    this.#running?.reject(this.#failure);
    this.#next?.reject(this.#failure);
    this.#onFailed(this.#failure);
    return this.#failure;
  }
}

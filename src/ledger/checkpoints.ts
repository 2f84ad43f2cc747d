import { closeSync, openSync } from 'node:fs';
import type Database from 'better-sqlite3';
import { isInDiskThread, requestDisk } from './disk-requests.ts';
import { isFailedSync } from './failed-sync.ts';

/** Minimum number of pages of the log (4 KiB each) for a checkpoint; the default of SQLite. */
const PAGES = 1_000;
/**
 * Size at which the log is restarted from its beginning. This must not run during a write, so it
 * runs on the event loop. It is below the size at which the maintenance shortens the log
 * (maintenance/space.ts).
 */
const MAX_LOG_PAGES = 12_288;
/**
 * Largest number of pages that are copied on the event loop, unless the log has this size: with a
 * slow disk under permanent load, it would grow without end.
 */
const MAX_PAGES_AT_ONCE = 4_000;
const URGENT_LOG_PAGES = 4 * MAX_LOG_PAGES;
/** Pause after a checkpoint that failed, or that a reader prevented from copying the whole log. */
const RETRY_MS = 1_000;

type LogState = { log: number; checkpointed: number };
/** The row of `PRAGMA wal_checkpoint`. */
type CheckpointRow = [busy: number, log: number, checkpointed: number];

/**
 * copied: little is left, so that a checkpoint on the event loop is short. copying: the thread uses
 * the ledger. held: a reader, or a full disk, prevents more.
 */
export type LogCopy = 'copied' | 'copying' | 'held';

/**
 * Copies the write-ahead log to the ledger in another thread, because a checkpoint waits for the
 * disk. Retries failed checkpoints.
 */
export class Checkpoints {
  readonly #read: Database.Statement<[], CheckpointRow>;
  readonly #db: Database.Database;
  readonly #onFailedSync: (error: unknown) => void;
  /** The file of the ledger, opened for the first checkpoint. */
  #descriptor: number | undefined;
  #isRunning = false;
  #blockedUntil = 0;

  /** `onFailedSync`: called if the ledger could not be synced; must end the process. */
  constructor(db: Database.Database, onFailedSync: (error: unknown) => void) {
    this.#db = db;
    this.#onFailedSync = onFailedSync;
    db.pragma('wal_autocheckpoint = 0');
    // SQLite prepares a pragma again at each execution, so that the properties of an object would
    // be generated each time.
    this.#read = db.prepare<[], CheckpointRow>('PRAGMA wal_checkpoint(NOOP)').raw();
  }

  /**
   * Starts a checkpoint if enough of the log is not yet copied. Called after each commit or sync;
   * without calls, the log grows.
   */
  runIfNeeded(): LogCopy {
    if (this.#isRunning) return 'copying';
    if (performance.now() < this.#blockedUntil) return 'held';
    let state: LogCopy = 'held';
    this.#orLater(() => {
      const { log, checkpointed } = this.#state();
      state = log - checkpointed < PAGES ? 'copied' : 'copying';
      // A read of the thread keeps the log from being truncated, and ends soon.
      if (state === 'copied' && isInDiskThread(this.#db.name)) state = 'copying';
      else if (state === 'copying') this.#start({ log, checkpointed });
    });
    return state;
  }

  #start({ log, checkpointed }: LogState): void {
    this.#descriptor ??= openSync(this.#db.name, 'r');
    const request = {
      kind: 'checkpoint',
      file: this.#db.name,
      descriptor: this.#descriptor,
    } as const;
    requestDisk(request, ({ error, failedSync }) => {
      this.#isRunning = false;
      if (!this.#db.open) return;
      if (failedSync) this.#onFailedSync(Object.assign(new Error(failedSync.message), failedSync));
      else if (error === undefined) this.#orLater(() => this.#ended({ log, checkpointed }));
      else this.#blockedUntil = performance.now() + RETRY_MS;
    });
    this.#isRunning = true;
  }

  /**
   * Must be called when the connection is closed, and not before: closing any descriptor of a file
   * releases all locks of the process on it, also those of SQLite.
   */
  release(): void {
    // The thread still uses the ledger. When it has ended, the ledger may be open again: the
    // descriptor is never closed then.
    if (isInDiskThread(this.#db.name) || this.#descriptor === undefined) return;
    closeSync(this.#descriptor);
    this.#descriptor = undefined;
  }

  #state(): LogState {
    const [, log, checkpointed] = this.#read.get() as CheckpointRow;
    return { log, checkpointed };
  }

  /**
   * `before`: the log when the checkpoint began. If it is shorter now, it was copied completely and
   * restarted.
   */
  #ended(before: LogState): void {
    const { log, checkpointed } = this.#state();
    const [copied, left] = [before.log - before.checkpointed, log - checkpointed];
    if (log >= before.log && checkpointed < before.log)
      this.#blockedUntil = performance.now() + RETRY_MS;
    // Much may have been written while a long log was copied. The thread copies that, too, as long
    // as each round leaves less.
    else if (left >= PAGES && left < copied / 2) this.runIfNeeded();
    // After a checkpoint of the whole log, SQLite writes the next commit to its beginning.
    else if (log >= (left < MAX_PAGES_AT_ONCE ? MAX_LOG_PAGES : URGENT_LOG_PAGES))
      this.#db.pragma('wal_checkpoint(PASSIVE)');
  }

  /**
   * Runs work of a checkpoint. A failed sync ends the process. Any other error, such as a full disk
   * or a read in progress, only defers the checkpoint.
   */
  #orLater(work: () => void): void {
    try {
      if (this.#db.open) work();
    } catch (error) {
      if (isFailedSync(error)) this.#onFailedSync(error);
      this.#blockedUntil = performance.now() + RETRY_MS;
    }
  }
}

import { closeSync, fdatasync, fdatasyncSync, openSync } from 'node:fs';
import { extname, join } from 'node:path';
import { Worker } from 'node:worker_threads';
import type Database from 'better-sqlite3';
import { guarded, isFailedSync, type LedgerError } from './errors.ts';
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

/** The thread is a source file in a checkout, and compiled in the package. */
const THREAD = join(import.meta.dirname, `checkpoint-thread${extname(import.meta.filename)}`);

/** The fewest pages (4 KiB each) for which a checkpoint starts: the default of SQLite. */
const MIN_PAGES = 1_000;
/** The size at which the log begins again: 48 MiB. */
const RESTART_PAGES = 12_288;
/**
 * The most pages that the event loop copies then. A log of `URGENT_PAGES` is copied in any case:
 * with a slow disk under permanent load, it would grow without end.
 */
const MAX_PAGES_AT_ONCE = 4_000;
const URGENT_PAGES = 4 * RESTART_PAGES;
/** Pause after a checkpoint that failed, or that a reader prevented from copying the whole log. */
const RETRY_MS = 1_000;
/** The longest wait for the thread at the end. */
const MAX_CLOSE_MS = 10_000;

/**
 * `ledger`: descriptor of the file. `closed`: set and notified once the thread has closed its
 * connection.
 */
export type ThreadData = { file: string; ledger: number; closed: Int32Array };
export type CheckpointResult = {
  error?: { message: string; code: string | undefined };
  isFailedSync?: boolean;
};

/** Pages of the log, and how many of them are not copied to the ledger. */
type LogState = { pages: number; left: number };

/**
 * Copies the write-ahead log to the ledger in another thread, because the copies and their sync
 * take longer than a response may.
 */
class Checkpoints {
  readonly #db: Database.Database;
  readonly #onFailedSync: (error: unknown) => void;
  readonly #state: Database.Statement<[], [busy: number, pages: number, copied: number]>;
  readonly #closed = new Int32Array(new SharedArrayBuffer(4));
  /** The file of the ledger, opened for the thread. */
  #ledger: number | undefined;
  #thread: Worker | undefined;
  /** The log when the running checkpoint began. */
  #running: LogState | undefined;
  #retryAt = 0;

  /** `onFailedSync`: called if a file could not be synced; must end the process. */
  constructor(db: Database.Database, onFailedSync: (error: unknown) => void) {
    this.#db = db;
    this.#onFailedSync = onFailedSync;
    db.pragma('wal_autocheckpoint = 0');
    // SQLite prepares a pragma again at each execution: objects would get new properties each time.
    this.#state = db
      .prepare<[], [busy: number, pages: number, copied: number]>('PRAGMA wal_checkpoint(NOOP)')
      .raw();
  }

  /** Copies the log if it is long. Must be called after each commit or sync. */
  run(): void {
    if (this.#running || performance.now() < this.#retryAt) return;
    this.#attempt(() => {
      const log = this.#read();
      if (log.left >= MIN_PAGES) this.#start(log);
      else if (log.pages >= RESTART_PAGES) this.#restart();
    });
  }

  /** Stops the thread. The connection must be closed after this call, and before `release`. */
  close(): void {
    if (!this.#thread) return;
    this.#thread.postMessage('close');
    Atomics.wait(this.#closed, 0, 0, MAX_CLOSE_MS);
  }

  /**
   * Must be called when the connection is closed, and not before: closing any descriptor of a file
   * releases all locks of the process on it, also those of SQLite.
   */
  release(): void {
    if (this.#ledger !== undefined) closeSync(this.#ledger);
  }

  #read(): LogState {
    const [, pages, copied] = this.#state.get() ?? [0, 0, 0];
    return { pages, left: pages - copied };
  }

  #start(log: LogState): void {
    this.#thread ??= this.#startThread();
    this.#thread.postMessage('checkpoint');
    this.#running = log;
  }

  #ended(before: LogState): void {
    const { pages, left } = this.#read();
    const isHeld = pages >= before.pages && pages - left < before.pages;
    if (isHeld) this.#retryAt = performance.now() + RETRY_MS;
    else if (pages >= (left < MAX_PAGES_AT_ONCE ? RESTART_PAGES : URGENT_PAGES)) this.#restart();
    // What was written meanwhile is copied, too.
    else this.run();
  }

  /**
   * Copies the rest of the log. While the event loop does that, nothing is committed, so that the
   * next commit can begin the log again, unless a reader needs it.
   */
  #restart(): void {
    this.#retryAt = performance.now() + RETRY_MS;
    this.#db.pragma('wal_checkpoint(PASSIVE)');
  }

  /** An error that is no failed sync, such as a full disk or a read in progress, only defers it. */
  #attempt(work: () => void): void {
    try {
      if (this.#db.open) work();
    } catch (error) {
      if (isFailedSync(error)) this.#onFailedSync(error);
      this.#retryAt = performance.now() + RETRY_MS;
    }
  }

  #startThread(): Worker {
    this.#ledger ??= openSync(this.#db.name, 'r');
    const workerData: ThreadData = {
      file: this.#db.name,
      ledger: this.#ledger,
      closed: this.#closed,
    };
    // Without the cache, the thread of a checkout loads the type stripper (row `million`).
    const { NODE_COMPILE_CACHE = '' } = process.env;
    const thread = new Worker(THREAD, { env: { NODE_COMPILE_CACHE }, execArgv: [], workerData });
    thread.on('message', ({ error, isFailedSync }: CheckpointResult) => {
      const before = this.#running;
      this.#running = undefined;
      if (isFailedSync) this.#onFailedSync(Object.assign(new Error(error?.message), error));
      else if (before) this.#attempt(() => this.#ended(before));
    });
    // The event `exit` follows.
    thread.on('error', () => undefined);
    thread.on('exit', () => {
      this.#thread = undefined;
      this.#running = undefined;
      this.#retryAt = performance.now() + RETRY_MS;
    });
    // Last, because adding a listener makes the thread keep the process running.
    thread.unref();
    return thread;
  }
}

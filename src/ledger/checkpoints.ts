import { closeSync, openSync } from 'node:fs';
import { extname, join } from 'node:path';
import { Worker } from 'node:worker_threads';
import type Database from 'better-sqlite3';
import { isFailedSync } from './errors.ts';

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
export class Checkpoints {
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

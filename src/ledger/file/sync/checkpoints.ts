import { extname, join } from 'node:path';
import { Worker } from 'node:worker_threads';
import type Database from 'better-sqlite3';

/** Pages of the log (4 KiB each) that are copied to the ledger together: the default of SQLite. */
const PAGES = 1_000;
/** Size at which the log is begun again. SQLite can do that only while nothing is written, so it happens on the event loop. */
const MAX_LOG_PAGES = 16_000;
/** How long a checkpoint is not repeated after it failed. */
const RETRY_MS = 1_000;

/** The thread is a source file in a checkout, and compiled in the package. */
const THREAD = join(import.meta.dirname, `checkpoint-thread${extname(import.meta.filename)}`);

type LogState = { log: number; checkpointed: number };

/** Copies the write-ahead log to the ledger in another thread, because that syncs the disk. A failed checkpoint is repeated. */
export class Checkpoints {
  readonly #state: Database.Statement<[], LogState>;
  readonly #db: Database.Database;
  #isRunning = false;
  #blockedUntil = 0;

  constructor(db: Database.Database) {
    this.#db = db;
    db.pragma('wal_autocheckpoint = 0');
    this.#state = db.prepare('PRAGMA wal_checkpoint(NOOP)');
  }

  /** Must be called again and again. */
  runIfNeeded(): void {
    if (this.#isRunning || performance.now() < this.#blockedUntil) return;
    this.#orLater(() => {
      const { log, checkpointed } = this.#state.get() as LogState;
      if (log - checkpointed < PAGES) return;
      checkpointInThread(this.#db.name, (error) => {
        this.#isRunning = false;
        if (error === undefined) this.#orLater(() => this.#restartLog());
        else this.#blockedUntil = performance.now() + RETRY_MS;
      });
      this.#isRunning = true;
    });
  }

  /** After a checkpoint of the whole log, SQLite writes the next commit to its beginning. */
  #restartLog(): void {
    const { log } = this.#state.get() as LogState;
    if (log >= MAX_LOG_PAGES) this.#db.pragma('wal_checkpoint(PASSIVE)');
  }

  /** Nothing is lost without a checkpoint: a full disk, or a read in progress, only defers it. */
  #orLater(work: () => void): void {
    try {
      if (this.#db.open) work();
    } catch {
      this.#blockedUntil = performance.now() + RETRY_MS;
    }
  }
}

/** `error` undefined: it worked. */
type Reply = { id: number; error: string | undefined };

let thread: Worker | undefined;
let newestId = 0;
const waiting = new Map<number, (error: string | undefined) => void>();

/** All ledgers of a process share a thread, which starts at its first checkpoint and does not keep the process running. */
function checkpointInThread(file: string, onEnd: (error: string | undefined) => void): void {
  thread ??= startThread();
  newestId += 1;
  waiting.set(newestId, onEnd);
  thread.postMessage({ id: newestId, file });
}

function startThread(): Worker {
  const started = new Worker(THREAD, { env: {}, execArgv: [] });
  started.on('message', ({ id, error }: Reply) => {
    const onEnd = waiting.get(id);
    waiting.delete(id);
    onEnd?.(error);
  });
  // An error is followed by the exit.
  started.on('error', () => undefined);
  started.on('exit', () => {
    thread = undefined;
    const all = [...waiting.values()];
    waiting.clear();
    for (const onEnd of all) onEnd('the thread has ended');
  });
  // After the listeners, which would keep the process running.
  started.unref();
  return started;
}

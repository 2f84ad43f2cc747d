import { extname, join } from 'node:path';
import { Worker } from 'node:worker_threads';
import type Database from 'better-sqlite3';

/** Minimum number of pages of the log (4 KiB each) for a checkpoint; the default of SQLite. */
const PAGES = 1_000;
/** Size at which the log is restarted from its beginning. This must not run during a write, so it runs on the event loop. */
const MAX_LOG_PAGES = 16_000;
/** Pause after a checkpoint that failed, or copied nothing because a reader needs the earlier content. */
const RETRY_MS = 1_000;

/** The thread is a source file in a checkout, and compiled in the package. */
const THREAD = join(import.meta.dirname, `checkpoint-thread${extname(import.meta.filename)}`);

type LogState = { log: number; checkpointed: number };

/** Copies the write-ahead log to the ledger in another thread, because a checkpoint waits for the disk. Retries failed checkpoints. */
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

  /** Starts a checkpoint if enough of the log is not yet copied. Called after each sync of the log; without calls, the log grows. */
  runIfNeeded(): void {
    if (this.#isRunning || performance.now() < this.#blockedUntil) return;
    this.#orLater(() => {
      const { log, checkpointed } = this.#state.get() as LogState;
      if (log - checkpointed < PAGES) return;
      checkpointInThread(this.#db.name, (error) => {
        this.#isRunning = false;
        this.#orLater(() => this.#ended(error, checkpointed));
      });
      this.#isRunning = true;
    });
  }

  /** Makes SQLite write the next commit to the beginning of a large log, which requires a checkpoint of the whole log. */
  #ended(error: string | undefined, checkpointedBefore: number): void {
    const { log, checkpointed } = this.#state.get() as LogState;
    if (error !== undefined || checkpointed === checkpointedBefore) this.#blockedUntil = performance.now() + RETRY_MS;
    else if (log >= MAX_LOG_PAGES) this.#db.pragma('wal_checkpoint(PASSIVE)');
  }

  /** Runs work of a checkpoint. An error, such as a full disk or a read in progress, only defers the checkpoint and loses nothing. */
  #orLater(work: () => void): void {
    try {
      if (this.#db.open) work();
    } catch {
      this.#blockedUntil = performance.now() + RETRY_MS;
    }
  }
}

/** `error`: undefined after a successful checkpoint. */
type Reply = { id: number; error: string | undefined };

let thread: Worker | undefined;
let newestId = 0;
const waiting = new Map<number, (error: string | undefined) => void>();

/** Runs a checkpoint in the thread that all ledgers of the process share. The thread starts at the first checkpoint and does not keep the process running. */
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
  // The event `exit`, which follows, reports the failure.
  started.on('error', () => undefined);
  started.on('exit', () => {
    thread = undefined;
    const all = [...waiting.values()];
    waiting.clear();
    for (const onEnd of all) onEnd('the thread has ended');
  });
  // After the listeners are added, because adding a listener makes the thread keep the process running.
  started.unref();
  return started;
}

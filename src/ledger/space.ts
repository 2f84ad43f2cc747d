import type { LogCopy } from './checkpoints.ts';
import { guarded, LedgerError } from './errors.ts';
import type { LedgerDatabase } from './ledger-database.ts';
import { cutLog } from './log-file.ts';
import { probe, withoutWaiting } from './open.ts';

/**
 * A log keeps this size, see file/sync/checkpoints.ts. A larger log is, or was, in use by a reader.
 */
const MAX_WAL_BYTES = 64 * 1024 * 1024;
/**
 * Takes the system three milliseconds. SQLite, with `journal_size_limit`, would truncate gigabytes
 * at once, inside a commit.
 */
const CUT_BYTES = 16 * 1024 * 1024;
/** This many free pages, or a tenth of the file if that is more, are kept for future writes. */
const MIN_FREE_PAGES = 256;
/** The value of `PRAGMA auto_vacuum` for INCREMENTAL. */
const INCREMENTAL = 2;

/** The disk space of the ledger. Throws LedgerError. */
export class Space {
  readonly #db: LedgerDatabase;
  readonly #stats: { walBytes(): number };

  constructor(database: LedgerDatabase, stats: { walBytes(): number }) {
    this.#db = database;
    this.#stats = stats;
  }

  /**
   * Shortens a large log by a step without waiting for readers, after another thread has copied
   * most of it. Returns `copied` if the log is not large any more, `copying` until then, and `held`
   * if another connection prevents it.
   */
  checkpoint(now: number): LogCopy {
    if (!this.#isLogLarge()) return 'copied';
    const state = this.#db.copyLog();
    if (state !== 'copied') return state;
    return this.#shortenLog(now);
  }

  #shortenLog(now: number): LogCopy {
    const { connection, file } = this.#db;
    try {
      const shorten = () => this.#cut() || (this.#restartLog(now) && this.#cut());
      if (!guarded(file, () => withoutWaiting(connection, shorten))) return 'held';
    } catch (error) {
      // Another connection is writing.
      if (error instanceof LedgerError && error.problem === 'locked') return 'held';
      throw error;
    }
    return this.#isLogLarge() ? 'copying' : 'copied';
  }

  #isLogLarge(): boolean {
    return this.#stats.walBytes() > MAX_WAL_BYTES;
  }

  #cut(): boolean {
    return cutLog(this.#db.connection, { toBytes: MAX_WAL_BYTES, stepBytes: CUT_BYTES });
  }

  /**
   * Copies the rest of the log, and begins it again with a commit. Returns whether no reader
   * prevented it.
   */
  #restartLog(now: number): boolean {
    const { connection } = this.#db;
    if (!this.#db.checkpoint('RESTART')) return false;
    this.#db.unsyncedTransaction(() => probe(connection, now));
    return true;
  }

  /**
   * Returns up to `pages` free pages to the file system if there are many. Returns whether more can
   * be returned.
   */
  shrink(pages: number): boolean {
    const { connection, file } = this.#db;
    return guarded(file, () => {
      if (this.#pragma('auto_vacuum') !== INCREMENTAL) return false;
      const spare = () =>
        this.#pragma('freelist_count') - Math.max(MIN_FREE_PAGES, this.#pragma('page_count') / 10);
      if (spare() <= 0) return false;
      connection.pragma(`incremental_vacuum(${pages})`);
      return spare() > 0;
    });
  }

  #pragma(name: string): number {
    return Number(this.#db.connection.pragma(name, { simple: true }));
  }
}

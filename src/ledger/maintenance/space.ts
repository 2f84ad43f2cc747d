import { guarded } from '../file/errors.ts';
import type { LedgerDatabase } from '../file/ledger-database.ts';
import { withoutWaiting } from '../file/open.ts';
import type { LogCopy } from '../file/sync/checkpoints.ts';
import type { LedgerStats } from '../stats/ledger-stats.ts';

/** journal_size_limit: a log keeps this size after a checkpoint, see file/sync/checkpoints.ts. A larger log is in use by a reader. */
const MAX_WAL_BYTES = 64 * 1024 * 1024;
/** This many free pages, or a tenth of the file if that is more, are kept for future writes. */
const MIN_FREE_PAGES = 256;
/** The value of `PRAGMA auto_vacuum` for INCREMENTAL. */
const INCREMENTAL = 2;

/** The disk space of the ledger. Throws LedgerError. */
export class Space {
  readonly #db: LedgerDatabase;
  readonly #stats: LedgerStats;

  constructor(database: LedgerDatabase, stats: LedgerStats) {
    this.#db = database;
    this.#stats = stats;
  }

  /**
   * Truncates a large log without waiting for readers, after another thread has copied most of it. Returns `copied` if the log is
   * not large any more, `copying` until then, and `held` if a reader prevents it.
   */
  checkpoint(): LogCopy {
    const { connection, file } = this.#db;
    const isLarge = () => this.#stats.bytes().wal > MAX_WAL_BYTES;
    if (!isLarge()) return 'copied';
    const state = this.#db.copyLog();
    if (state !== 'copied') return state;
    guarded(file, () => withoutWaiting(connection, () => connection.pragma('wal_checkpoint(TRUNCATE)')));
    return isLarge() ? 'held' : 'copied';
  }

  /** Returns up to `pages` free pages to the file system if there are many. Returns whether more can be returned. */
  shrink(pages: number): boolean {
    const { connection, file } = this.#db;
    return guarded(file, () => {
      if (this.#pragma('auto_vacuum') !== INCREMENTAL) return false;
      const spare = () => this.#pragma('freelist_count') - Math.max(MIN_FREE_PAGES, this.#pragma('page_count') / 10);
      if (spare() <= 0) return false;
      connection.pragma(`incremental_vacuum(${pages})`);
      return spare() > 0;
    });
  }

  #pragma(name: string): number {
    return Number(this.#db.connection.pragma(name, { simple: true }));
  }
}

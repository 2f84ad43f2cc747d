import { guarded } from './errors.ts';
import type { LedgerDatabase } from './ledger-database.ts';
import { MAX_LOG_BYTES, probe } from './open.ts';

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
   * Whether the log is so large that nothing more should be deleted: a reader keeps it, or it is
   * being copied. The commit of this call shortens it if it was copied.
   */
  isLogLarge(now: number): boolean {
    const isLarge = () => this.#stats.walBytes() > MAX_LOG_BYTES;
    if (!isLarge()) return false;
    const { connection } = this.#db;
    this.#db.unsyncedTransaction(() => probe(connection, now));
    return isLarge();
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

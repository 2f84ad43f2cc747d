import type Database from 'better-sqlite3';
import { guarded } from '../file/errors.ts';
import type { LedgerStats } from '../stats/ledger-stats.ts';

/** SQLite empties the log by itself from 4 MiB on; with four times as much, something has kept it from that. */
const LARGE_WAL_BYTES = 16 * 1024 * 1024;
/** As much as stays of a log that is written anew (journal_size_limit): with more, somebody reads what it holds. */
const HELD_WAL_BYTES = 64 * 1024 * 1024;
/** Fewer free pages than this, or than a tenth of the file, are left for what is written next. */
const FEW_FREE_PAGES = 256;

/** What the ledger takes on the disk. Throws LedgerError. */
export class Space {
  readonly #db: Database.Database;
  readonly #file: string;
  readonly #figures: LedgerStats;

  constructor(db: Database.Database, file: string, figures: LedgerStats) {
    this.#db = db;
    this.#file = file;
    this.#figures = figures;
  }

  /**
   * Empties a log that has grown large, unless somebody still reads what it holds: nobody is waited for. False: somebody does,
   * and it is very large by now.
   */
  checkpoint(): boolean {
    if (this.#figures.bytes().wal < LARGE_WAL_BYTES) return true;
    guarded(this.#file, () => {
      const waitMs = this.#db.pragma('busy_timeout', { simple: true });
      this.#db.pragma('busy_timeout = 0');
      try {
        this.#db.pragma('wal_checkpoint(TRUNCATE)');
      } finally {
        this.#db.pragma(`busy_timeout = ${waitMs}`);
      }
    });
    return this.#figures.bytes().wal <= HELD_WAL_BYTES;
  }

  /** Gives up to `pages` free pages back to the file system, where there are many. Whether there is more to give back. */
  shrink(pages: number): boolean {
    return guarded(this.#file, () => {
      if (this.#number('auto_vacuum') !== INCREMENTAL) return false;
      const spare = () => this.#number('freelist_count') - Math.max(FEW_FREE_PAGES, this.#number('page_count') / 10);
      if (spare() <= 0) return false;
      this.#db.pragma(`incremental_vacuum(${pages})`);
      return spare() > 0;
    });
  }

  #number(pragma: string): number {
    return Number(this.#db.pragma(pragma, { simple: true }));
  }
}

/** What SQLite answers for `auto_vacuum = INCREMENTAL`. */
const INCREMENTAL = 2;

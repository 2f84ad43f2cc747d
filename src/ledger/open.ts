import { mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import Database from 'better-sqlite3';
import { guarded, LedgerError } from './errors.ts';
import { migrate } from './migrations.ts';

export type OpenOptions = {
  /** Path of the SQLite file; its folder is made if it doesn't exist. */
  file: string;
  now: number;
  /** The most pages (4 KiB each) the file may have: a full disk at will. */
  maxPages?: number;
};

/**
 * Opens the file for one server: locked against a second one, checked, migrated, and proved writable.
 * Throws LedgerError; a file that can't be used is left as it is.
 */
export function openDatabase(options: OpenOptions): { db: Database.Database; close: () => void } {
  const { file } = options;
  return guarded(file, () => {
    mkdirSync(dirname(file), { recursive: true });
    const lock = acquireLock(`${file}.lock`);
    try {
      const db = new Database(file);
      try {
        prepare(db, options);
      } catch (error) {
        db.close();
        throw error;
      }
      return {
        db,
        close: () => {
          db.close();
          lock.close();
        },
      };
    } catch (error) {
      lock.close();
      throw error;
    }
  });
}

/** An exclusive transaction on a file beside the ledger: the system ends it with the process, however that dies. */
function acquireLock(file: string): Database.Database {
  const lock = new Database(file, { timeout: 0 });
  try {
    lock.exec('BEGIN EXCLUSIVE');
    return lock;
  } catch (error) {
    lock.close();
    throw error;
  }
}

function prepare(db: Database.Database, { file, now, maxPages }: OpenOptions): void {
  // quick_check comes first: nothing may be written to a file that is not sound.
  const verdict = db.pragma('quick_check(1)', { simple: true });
  if (verdict !== 'ok') throw new LedgerError('corrupt', `${file} is damaged (${verdict}); it was left as it is`);
  db.pragma('journal_mode = WAL');
  db.pragma('synchronous = FULL');
  db.pragma('foreign_keys = ON');
  db.pragma('journal_size_limit = 67108864');
  migrate(db, file);
  if (maxPages !== undefined) db.pragma(`max_page_count = ${maxPages}`);
  probe(db, now);
}

/** A real write, so that a read-only or full disk is known before anything is acknowledged. */
function probe(db: Database.Database, now: number): void {
  db.prepare(
    "INSERT INTO meta (key, value) VALUES ('opened_at', ?) ON CONFLICT DO UPDATE SET value = excluded.value",
  ).run(String(now));
}

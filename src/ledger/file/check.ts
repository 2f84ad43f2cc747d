import Database from 'better-sqlite3';
import { guarded, LedgerError } from './errors.ts';
import { assertOwnSchema, isDawatchDatabase } from './migrations.ts';

/**
 * Reads all of a ledger that nobody uses and says how large it is. Throws LedgerError, about the file as `name`, if it is
 * damaged, no ledger, or of a newer dawatch.
 */
export function checkLedger(file: string, name: string): { bytes: number; submissions: number } {
  return guarded(name, () => {
    const db = new Database(file, { fileMustExist: true });
    try {
      assertOwnSchema(db, name);
      if (!isDawatchDatabase(db)) throw new LedgerError('foreign', `${name} is empty: it is no ledger`);
      const verdict = db.pragma('integrity_check(1)', { simple: true });
      if (verdict !== 'ok') throw new LedgerError('corrupt', `${name} is damaged (${verdict})`);
      const dangling = db.pragma('foreign_key_check') as unknown[];
      if (dangling.length > 0)
        throw new LedgerError(
          'corrupt',
          `${name} is damaged (${dangling.length} rows refer to others that are missing)`,
        );
      const bytes = db.prepare('SELECT page_count * page_size FROM pragma_page_count, pragma_page_size').pluck().get();
      return {
        bytes: Number(bytes),
        submissions: Number(db.prepare('SELECT count(*) FROM submissions').pluck().get()),
      };
    } finally {
      db.close();
    }
  });
}

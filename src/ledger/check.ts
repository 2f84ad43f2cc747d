import Database from 'better-sqlite3';
import { guarded, LedgerError } from './errors.ts';
import { assertLedger } from './schema.ts';

/**
 * Checks a complete ledger file that is not in use, and returns its size. Throws LedgerError, with
 * the file called `name`, if it is damaged, not a ledger, or of a newer dawatch.
 */
export function verifyLedger(file: string, name: string): { bytes: number; submissions: number } {
  return guarded(name, () => {
    const db = new Database(file, { fileMustExist: true });
    try {
      assertLedger(db, name);
      assertUndamaged(db, name);
      const pragma = (name: string) => Number(db.pragma(name, { simple: true }));
      const submissions = Number(db.prepare('SELECT count(*) FROM submissions').pluck().get());
      return { bytes: pragma('page_count') * pragma('page_size'), submissions };
    } finally {
      db.close();
    }
  });
}

/** Reads all of an open file. Throws LedgerError, with the file called `name`, if it is damaged. */
export function assertUndamaged(db: Database.Database, name: string): void {
  const verdict = db.pragma('integrity_check(1)', { simple: true });
  if (verdict !== 'ok') throw new LedgerError('corrupt', `${name} is damaged (${verdict})`);
  const dangling = db.pragma('foreign_key_check') as unknown[];
  if (dangling.length > 0)
    throw new LedgerError(
      'corrupt',
      `${name} is damaged (${dangling.length} rows refer to missing rows)`,
    );
}

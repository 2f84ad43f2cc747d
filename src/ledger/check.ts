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

/**
 * Columns that contain JSON. SQLite does not verify constraints of a connection that only reads.
 */
const JSON_COLUMNS = [
  ['submissions', 'submission_id', 'metadata'],
  ['history', 'seq', 'response'],
  ['history', 'seq', 'changes'],
  ['outbox', 'id', 'detail'],
  ['webhooks', 'webhook_id', 'types'],
  ['webhooks', 'webhook_id', 'metadata'],
] as const;

/**
 * Reads all of a ledger that a server may be using, and blocks meanwhile, which may take minutes.
 * Throws LedgerError if it is damaged or cannot be read.
 */
export function assertIntact(file: string): void {
  guarded(file, () => {
    const db = new Database(file, { readonly: true, fileMustExist: true });
    try {
      assertUndamaged(db, file);
      for (const [table, key, column] of JSON_COLUMNS) {
        const row = db
          .prepare(`SELECT ${key} FROM ${table} WHERE json_valid(${column}) = 0 LIMIT 1`)
          .pluck()
          .get();
        if (row !== undefined)
          throw new LedgerError(
            'corrupt',
            `${file} is damaged (the ${column} of ${row} in ${table} is not JSON)`,
          );
      }
    } finally {
      db.close();
    }
  });
}

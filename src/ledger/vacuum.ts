import { existsSync, statSync } from 'node:fs';
import { guarded, LedgerError } from './errors.ts';
import { openDatabase } from './open.ts';

/**
 * Writes the file anew without its free pages, in the form from which they can be given back later without this. Bytes
 * before and after. Throws LedgerError: there is none, a server has it, the disk is full; then it is as it was.
 */
export function vacuumLedger(file: string, now: number): { before: number; after: number } {
  if (!existsSync(file)) throw new LedgerError('read_only', `there is no ledger at ${file}`);
  const { db, close } = openDatabase({ file, now });
  try {
    const before = statSync(db.name).size;
    guarded(file, () => {
      db.pragma('auto_vacuum = INCREMENTAL');
      db.exec('VACUUM');
      db.pragma('wal_checkpoint(TRUNCATE)');
    });
    return { before, after: statSync(db.name).size };
  } finally {
    close();
  }
}

import { statSync } from 'node:fs';
import { guarded } from '../file/errors.ts';
import { existingLedgerPath, openDatabase } from '../file/open.ts';

/**
 * Writes the file anew without its free pages, in the form from which they can be given back later without this. Bytes
 * before and after. Throws LedgerError: there is none, a server has it, the disk is full; then it is as it was.
 */
export function vacuumLedger(file: string, now: number): { before: number; after: number } {
  guarded(file, () => existingLedgerPath(file));
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

import { statSync } from 'node:fs';
import { guarded } from './errors.ts';
import { existingLedgerPath, openDatabase } from './open.ts';
import { markingFailedSync } from './recovery.ts';

/**
 * Rewrites a ledger without its free pages, so that later ones can be returned to the file system.
 * Returns its size before and after, in bytes. Throws LedgerError, and leaves the ledger unchanged,
 * if it is missing or in use or the disk is full.
 */
export function vacuumLedger(file: string, now: number): { before: number; after: number } {
  guarded(file, () => existingLedgerPath(file));
  const { db, close } = openDatabase({ file, now });
  try {
    const before = statSync(db.name).size;
    const vacuum = () => {
      db.pragma('auto_vacuum = INCREMENTAL');
      db.exec('VACUUM');
      db.pragma('wal_checkpoint(TRUNCATE)');
    };
    guarded(file, () => markingFailedSync(db.name, vacuum));
    return { before, after: statSync(db.name).size };
  } finally {
    close();
  }
}

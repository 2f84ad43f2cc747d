import { statSync } from 'node:fs';
import { guarded } from '../file/errors.ts';
import { existingLedgerPath, openBeside, openDatabase } from '../file/open.ts';

/**
 * Rewrites a ledger without its free pages, so that later ones can be returned to the file system. Returns its size before and
 * after, in bytes. Throws LedgerError, and leaves the ledger unchanged, if it is missing or in use or the disk is full.
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

/** The largest ledger that is rewritten beside a server, in bytes: the server waits with its writes, for about a second. */
const MAX_BESIDE_BYTES = 64 * 1024 * 1024;

/**
 * Rewrites a ledger without its free pages and the unused space in its pages while a server uses it. Returns false, and leaves the
 * ledger unchanged, if it is larger than `maxBytes`. Throws LedgerError.
 */
export function vacuumBeside(file: string, now: number, maxBytes = MAX_BESIDE_BYTES): boolean {
  const { database, close } = openBeside({ file, now });
  try {
    const { connection } = database;
    const size = (name: string) => Number(connection.pragma(name, { simple: true }));
    if (size('page_count') * size('page_size') > maxBytes) return false;
    guarded(file, () => {
      connection.exec('VACUUM');
      connection.pragma('wal_checkpoint(TRUNCATE)');
    });
    return true;
  } finally {
    close();
  }
}

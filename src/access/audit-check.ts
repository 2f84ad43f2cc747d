import { guarded, LedgerError } from '../ledger/errors.ts';
import { LedgerDatabase } from '../ledger/ledger-database.ts';
import { connectBeside, existingLedgerPath, openSnapshot, repairLog } from '../ledger/open.ts';
import { assertCurrentLedger, assertLedger, schemaOf } from '../ledger/schema.ts';
import type { Actor } from '../lib/actor.ts';
import { type ChainCheck, checkChain, type StoredEntry } from './audit-chain.ts';
import { type AuditedAction, AuditTrail, SELECT_ENTRY } from './audit-store.ts';

/**
 * Checks the chain of the audit in a ledger or a backup, as of one moment and in constant memory,
 * while a server may be writing. Changes nothing. Throws LedgerError.
 */
export async function checkAudit(file: string, expectedHead?: string): Promise<ChainCheck> {
  const db = openSnapshot(file);
  try {
    guarded(file, () => assertCurrentLedger(db, file));
    const entries = new LedgerDatabase(db, file).iterate<StoredEntry>(
      `${SELECT_ENTRY} ORDER BY a.seq`,
    );
    return await checkChain(entries, expectedHead);
  } finally {
    db.close();
  }
}

/**
 * Stores an entry for a command that only reads. Returns false and changes nothing if the ledger
 * cannot be written, or has an earlier schema, as a replaced ledger may have. Throws LedgerError
 * for other problems.
 */
export function appendBeside(
  file: string,
  actor: Actor,
  at: number,
  entry: AuditedAction,
): boolean {
  try {
    return guarded(file, () => {
      const path = existingLedgerPath(file);
      repairLog(path, file);
      const { db, close } = connectBeside(path);
      try {
        assertLedger(db, file);
        const { found, needed } = schemaOf(db);
        if (found !== needed) return false;
        new AuditTrail(new LedgerDatabase(db, file)).append(actor, at, entry);
        return true;
      } finally {
        close();
      }
    });
  } catch (error) {
    if (error instanceof LedgerError && error.problem === 'read_only') return false;
    throw error;
  }
}

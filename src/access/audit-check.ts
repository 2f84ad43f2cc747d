import { guarded } from '../ledger/errors.ts';
import { LedgerDatabase } from '../ledger/ledger-database.ts';
import { openSnapshot } from '../ledger/open.ts';
import { assertCurrentLedger } from '../ledger/schema.ts';
import { type ChainCheck, checkChain, type StoredEntry } from './audit-chain.ts';
import { SELECT_ENTRY } from './audit-store.ts';

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

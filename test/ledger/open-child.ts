// Opens a ledger, reports the result, and keeps the ledger open until it is killed.
import { LedgerError } from '../../src/ledger/errors.ts';
import { openDatabase } from '../../src/ledger/open.ts';

try {
  const ledger = openDatabase({ file: process.argv[2] ?? '', now: 0 });
  // Keeps a reference: an unreferenced ledger would be collected together with its lock.
  process.on('disconnect', () => ledger.close());
  process.send?.({ opened: true });
} catch (error) {
  const problem = error instanceof LedgerError ? error.problem : 'no LedgerError';
  process.send?.({ opened: false, problem, message: String(error) });
}

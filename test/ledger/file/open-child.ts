// Opens the ledger it is given and says how that went; holds it until it is killed.
import { LedgerError } from '../../../src/ledger/file/errors.ts';
import { Ledger } from '../../../src/ledger/ledger.ts';

try {
  const ledger = new Ledger({ file: process.argv[2] ?? '', now: 0 });
  // Keeps a reference: an unreferenced ledger is collected, and its lock with it.
  process.on('disconnect', () => ledger.close());
  process.send?.({ opened: true });
} catch (error) {
  const problem = error instanceof LedgerError ? error.problem : 'no LedgerError';
  process.send?.({ opened: false, problem, message: String(error) });
}

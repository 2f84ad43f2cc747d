// Backs a ledger up and prints the result. With an argument to stop, it pauses in the middle until
// it is killed.

import { LedgerError } from '../../src/ledger/errors.ts';
import { backupLedger } from '../../src/ledger/restore.ts';

const [ledger = '', target = '', stop] = process.argv.slice(2);
try {
  await backupLedger(ledger, target, {
    onStep() {
      if (!stop) return;
      process.send?.({ half: true });
      // Sent messages leave the process before the thread blocks.
      setImmediate(() => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0));
    },
  });
  process.send?.({ done: true });
} catch (error) {
  process.send?.({
    problem: error instanceof LedgerError ? error.problem : 'none',
    message: String(error),
  });
}

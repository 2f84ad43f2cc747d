// Restores one backup after another, and announces each before it begins. Runs until it is killed.
import { restoreLedger } from '../../src/ledger/restore.ts';

const [file = '', ...backups] = process.argv.slice(2);
for (let turn = 0; ; turn++) {
  const backup = backups[turn % backups.length] ?? '';
  process.send?.(backup);
  restoreLedger({ file, backup, now: Date.now() });
  await new Promise((resolve) => setImmediate(resolve));
}

import type { Command } from 'commander';
import { ledgerOf, type SettingsOptions, withSettings } from '../cli/settings-file.ts';
import { vacuumLedger } from '../ledger/vacuum.ts';

export function addVacuum(program: Command): void {
  withSettings(program.command('vacuum'))
    .description('Rewrite the ledger without unused space. The server must be stopped.')
    .option('--json', 'print JSON')
    .addHelpText(
      'after',
      '\nNeeds free disk space of the size of the ledger, and the same again for temporary files (in SQLITE_TMPDIR, otherwise /var/tmp or /tmp).\n' +
        'One run is enough: afterwards the server releases unused space by itself.\n\nExample:\n  dawatch vacuum',
    )
    .action((options: SettingsOptions & { json?: boolean }) => {
      const ledger = ledgerOf(options);
      if (process.stderr.isTTY) process.stderr.write('verifying, then rewriting …\n');
      const { before, after } = vacuumLedger(ledger, Date.now());
      const text = options.json
        ? JSON.stringify({ before, after })
        : `${ledger}: ${before} → ${after} bytes`;
      process.stdout.write(`${text}\n`);
    });
}

import type { Command } from 'commander';
import { vacuumLedger } from '../../../ledger/maintenance/vacuum.ts';
import { ledgerOf, type SettingsOptions, withSettings } from '../../input/settings-file.ts';

export function addVacuum(program: Command): void {
  withSettings(program.command('vacuum'))
    .description('Write the ledger anew without free space in it. The server must be stopped.')
    .option('--json', 'print JSON')
    .addHelpText(
      'after',
      '\nNeeds as much room as the ledger, and as much again for temporary files (in SQLITE_TMPDIR, else /var/tmp or /tmp).\n' +
        'Once is enough: from then on a server gives space back by itself.\n\nExample:\n  dawatch vacuum',
    )
    .action((options: SettingsOptions & { json?: boolean }) => {
      const ledger = ledgerOf(options);
      if (process.stderr.isTTY) process.stderr.write('checking, then writing anew …\n');
      const { before, after } = vacuumLedger(ledger, Date.now());
      const text = options.json ? JSON.stringify({ before, after }) : `${ledger}: ${before} → ${after} bytes`;
      process.stdout.write(`${text}\n`);
    });
}

import type { Command } from 'commander';
import { createProgress } from '../cli/output.ts';
import { ledgerOf, type SettingsOptions, withSettings } from '../cli/settings-file.ts';

export function addBackup(program: Command): void {
  withSettings(program.command('backup'))
    .description('Copy the ledger to a file and verify the copy. The server can keep running.')
    .argument('<file>', 'path of the backup; must not exist')
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  dawatch backup backups/dawatch-$(date +%F).db')
    .action(async (file: string, options: SettingsOptions & { json?: boolean }) => {
      const ledger = ledgerOf(options);
      const { backupLedger } = await import('../ledger/backup.ts');
      const progress = createProgress(100, 'copying', process.stderr);
      const { bytes } = await backupLedger(ledger, file, (step) => {
        if (step.kind === 'checking') progress.advance(100, '%, checking the copy');
        else progress.advance(Math.floor((100 * step.done) / Math.max(1, step.total)), '%');
      }).finally(() => progress.stop());
      const text = options.json
        ? JSON.stringify({ file, bytes })
        : `${ledger} → ${file}, ${bytes} bytes, checked`;
      process.stdout.write(`${text}\n`);
    });
}

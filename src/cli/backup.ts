import type { Command } from 'commander';
import { loadConfig } from '../config.ts';
import { backupLedger } from '../ledger/backup.ts';

export function addBackup(program: Command): void {
  program
    .command('backup')
    .description('Copy the ledger to a file while the server goes on, and check the copy.')
    .argument('<file>', 'where to put it; must not exist yet')
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  dawatch backup backups/dawatch-$(date +%F).db')
    .action(async (file: string, options: { json?: boolean }) => {
      const { config } = loadConfig({ env: process.env });
      const { bytes } = await backupLedger(config.database, file);
      const text = options.json
        ? JSON.stringify({ file, bytes })
        : `${config.database} → ${file}, ${bytes} bytes, checked`;
      process.stdout.write(`${text}\n`);
    });
}

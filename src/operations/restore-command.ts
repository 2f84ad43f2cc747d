import type { Command } from 'commander';
import { plural, toJson } from '../cli/output.ts';
import { ledgerOf, type SettingsOptions, withSettings } from '../cli/settings-file.ts';
import { restoreLedger } from '../ledger/restore.ts';

export function addRestore(program: Command): void {
  withSettings(program.command('restore'))
    .description(
      'Replace the ledger by a backup after verifying the backup. The server must be stopped.',
    )
    .argument('<file>', 'a backup made by `dawatch backup`; it is not changed')
    .option('--json', 'print JSON')
    .addHelpText(
      'after',
      '\nThe replaced ledger is kept in the same directory.\n\nExample:\n  dawatch restore backups/dawatch-2026-01-02.db',
    )
    .action((file: string, options: SettingsOptions & { json?: boolean }) => {
      const ledger = ledgerOf(options);
      const onStep = (step: string) => process.stderr.isTTY && process.stderr.write(`${step} …\n`);
      const restored = restoreLedger({ file: ledger, backup: file, now: Date.now(), onStep });
      const { bytes, submissions, replacedFile } = restored;
      const before = replacedFile === null ? '' : `\nprevious ledger: ${replacedFile}`;
      const text = `${file} → ${ledger}, ${bytes} bytes, ${plural(submissions, 'submission')}; verified${before}`;
      process.stdout.write(
        `${options.json ? toJson({ file, bytes, submissions, kept: replacedFile }) : text}\n`,
      );
    });
}

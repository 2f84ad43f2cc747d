import type { Command } from 'commander';
import { restoreLedger } from '../../../ledger/maintenance/restore.ts';
import { ledgerOf, type SettingsOptions, withSettings } from '../../input/settings-file.ts';
import { toJson } from '../../output/json.ts';
import { submissions as count } from '../../submissions.ts';

export function addRestore(program: Command): void {
  withSettings(program.command('restore'))
    .description('Put a backup in the place of the ledger, after it was checked. The server must be stopped.')
    .argument('<file>', 'a backup, made by `dawatch backup`; it stays as it is')
    .option('--json', 'print JSON')
    .addHelpText(
      'after',
      '\nThe ledger that is replaced is kept beside the new one.\n\nExample:\n  dawatch restore backups/dawatch-2026-01-02.db',
    )
    .action((file: string, options: SettingsOptions & { json?: boolean }) => {
      const ledger = ledgerOf(options);
      const onStep = (step: string) => process.stderr.isTTY && process.stderr.write(`${step} …\n`);
      const restored = restoreLedger({ file: ledger, backup: file, now: Date.now(), onStep });
      const { bytes, submissions, replacedFile } = restored;
      const before = replacedFile === null ? '' : `\nthe ledger before it: ${replacedFile}`;
      const text = `${file} → ${ledger}, ${bytes} bytes, ${count(submissions)}, checked${before}`;
      process.stdout.write(`${options.json ? toJson({ file, ...restored }) : text}\n`);
    });
}

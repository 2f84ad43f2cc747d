import type { Command } from 'commander';
import { checkPrimary } from '../ledger/primary.ts';
import { restoreLedger } from '../ledger/restore.ts';
import { CommandError, ExitCode } from './exit.ts';
import { createProgress, plural, toJson } from './output.ts';
import { ledgerOf, type SettingsOptions, withSettings } from './settings-file.ts';

type BackupOptions = SettingsOptions & { json?: boolean; verify: boolean };

export function addBackup(program: Command): void {
  withSettings(program.command('backup'))
    .description('Copy the ledger to a file and check the copy.')
    .argument('<file>', 'path of the backup; must not exist')
    .option(
      '--verify',
      'rehearse the restore: open and migrate the copy, and compare its rows',
      false,
    )
    .option('--json', 'print JSON')
    .addHelpText(
      'after',
      '\nSQLite does not notice a changed bit inside a value. A file system with checksums does.\n\nExample:\n  dawatch backup --verify backups/dawatch-$(date +%F).db',
    )
    .action(async (file: string, options: BackupOptions) => {
      const ledger = ledgerOf(options);
      const { backupLedger } = await import('../ledger/restore.ts');
      const progress = createProgress(100, 'copying', process.stderr);
      const { bytes, submissions } = await backupLedger(ledger, file, {
        verify: options.verify,
        onStep(step) {
          if (step.kind === 'checking') progress.advance(100, '%, checking the copy');
          else progress.advance(Math.floor((100 * step.done) / Math.max(1, step.total)), '%');
        },
      }).finally(() => progress.stop());
      const checked = options.verify ? 'structure checked, restore rehearsed' : 'structure checked';
      const text = options.json
        ? JSON.stringify({ file, bytes, submissions })
        : `${ledger} → ${file}, ${bytes} bytes, ${plural(submissions, 'submission')}; ${checked}`;
      process.stdout.write(`${text}\n`);
    });
}

export function addRestore(program: Command): void {
  withSettings(program.command('restore'))
    .description('Replace the ledger by a checked backup. The server must be stopped.')
    .argument('<file>', 'a backup made by `dawatch backup`; it is not changed')
    .option('--json', 'print JSON')
    .addHelpText(
      'after',
      '\nThe replaced ledger is kept in the same directory.\n\nExample:\n  dawatch restore backups/dawatch-2026-01-02.db',
    )
    .action((file: string, options: SettingsOptions & { json?: boolean }) => {
      const ledger = ledgerOf(options);
      if (process.stderr.isTTY) process.stderr.write('copying, verifying, then replacing …\n');
      const restored = restoreLedger({ file: ledger, backup: file, now: Date.now() });
      const { bytes, submissions, replacedFile } = restored;
      const before = replacedFile === null ? '' : `\nprevious ledger: ${replacedFile}`;
      const text = `${file} → ${ledger}, ${bytes} bytes, ${plural(submissions, 'submission')}; structure checked${before}`;
      process.stdout.write(
        `${options.json ? toJson({ file, bytes, submissions, kept: replacedFile }) : text}\n`,
      );
    });
}

/**
 * Throws CommandError unless this server continues the replica. `claim`: the file `….primary`,
 * restored from it.
 */
export function checkClaim(ledger: string, claim: string): void {
  const { kind, primary } = checkPrimary(ledger, claim);
  if (kind === 'superseded')
    throw new CommandError(
      `another server continues the replica of ${ledger} since ${new Date(primary.since).toISOString()}, as generation ` +
        `${primary.generation}. Keep this server and its Litestream stopped, or move the folder of the ledger away, so that ` +
        'the ledger is restored from the replica',
      ExitCode.server,
    );
  if (kind === 'not_restored')
    throw new CommandError(
      `there is no ledger at ${ledger}, but a replica of generation ${primary.generation}: restore the ledger before the start ` +
        '(is the path of its replica right?). To begin with an empty ledger, choose another path for both replicas',
      ExitCode.server,
    );
  const state = primary ? `generation ${primary.generation} of the replica` : 'no replica yet';
  process.stdout.write(`${ledger} may be served: ${state}\n`);
}

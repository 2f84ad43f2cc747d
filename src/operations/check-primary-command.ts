import type { Command } from 'commander';
import { CommandError, ExitCode } from '../cli/exit.ts';
import { ledgerOf, type SettingsOptions, withSettings } from '../cli/settings-file.ts';
import { checkPrimary } from '../ledger/primary.ts';

export function addCheckPrimary(program: Command): void {
  withSettings(program.command('check-primary'))
    .description(
      'Check that no other server continues the replica of the ledger. Run it before Litestream starts.',
    )
    .argument(
      '<file>',
      'the ledger’s file `….primary`, restored from its replica; a missing file means no replica',
    )
    .addHelpText(
      'after',
      `
Exits with code 5 if another server continues the replica, or the ledger was not restored. The server and Litestream must not be
started then.

Example:
  litestream restore -if-replica-exists -o /run/dawatch/primary.db /var/lib/dawatch/dawatch.db.primary
  dawatch check-primary /run/dawatch/primary.db`,
    )
    .action((file: string, options: SettingsOptions) => {
      const ledger = ledgerOf(options);
      const { kind, primary } = checkPrimary(ledger, file);
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
    });
}

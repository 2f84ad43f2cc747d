import type { Command } from 'commander';
import { type ConnectOptions, requestAsAdmin, withAdmin } from '../cli/connect.ts';
import { toJson } from '../cli/json.ts';

export function addReload(program: Command): void {
  withAdmin(program.command('reload'))
    .description(
      'Let the server apply changed settings without a restart: keys, budgets, channels, routes, log level.',
    )
    .option('--json', 'print JSON, as returned by the HTTP interface')
    .addHelpText(
      'after',
      `
Example:
  dawatch reload

The server reads its settings file and secret files again and applies all changes, or none: if a setting is invalid or needs a
restart, it names the setting and continues as before. Workers, and servers whose admin token has changed, reload on SIGHUP.`,
    )
    .action(async (options: ConnectOptions & { json?: boolean }) => {
      const result = await requestAsAdmin(options, (client) => client.reload());
      const { changes } = result;
      const text = changes.length === 0 ? 'nothing has changed' : `applied: ${changes.join(', ')}`;
      process.stdout.write(`${options.json ? toJson(result) : text}\n`);
    });
}

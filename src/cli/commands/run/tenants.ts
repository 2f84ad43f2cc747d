import type { Command } from 'commander';
import { type ConnectOptions, requestAsOperator, withAddress } from '../../connect.ts';
import { toJson } from '../../output/json.ts';
import { table } from '../../output/table.ts';

const HEAD = ['name', 'open', 'max open', 'requests/min', 'weight', 'finalized', 'waiting', 'dead', 'ledger'];

export function addTenants(program: Command): void {
  withAddress(program.command('tenants'))
    .description('List the tenants of the settings with their quotas and counts.')
    .option('--json', 'print JSON, as returned by the HTTP interface')
    .addHelpText(
      'after',
      `
The token is read from DAWATCH_ADMIN_TOKEN, needs the role operator or admin, and must not belong to a tenant. Tenants are created in the settings (\`tenants\`).

Example:
  dawatch tenants`,
    )
    .action(async (options: ConnectOptions & { json?: boolean }) => {
      const all = await requestAsOperator(options, (client) => client.tenants());
      const rows = all.tenants.map(({ name, open, max_open, requests_per_minute, weight, ...state }) =>
        [name, open, max_open ?? '-', requests_per_minute ?? '-', weight, state.submissions.finalized]
          .concat(state.deliveries.waiting, state.deliveries.dead, state.ledger)
          .map(String),
      );
      process.stdout.write(options.json ? `${toJson(all)}\n` : table([HEAD, ...rows]));
    });
}

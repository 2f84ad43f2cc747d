import type { Command } from 'commander';
import { printable } from '../monitor/printable.ts';
import { askWithToken, type ConnectOptions, withAddress } from './connect.ts';
import { parseCount } from './count.ts';
import { table } from './table.ts';

const VARIABLES = ['DAWATCH_ADMIN_TOKEN'] as const;
const COLUMNS = ['at', 'caller', 'token', 'action', 'outcome', 'email', 'detail'];

export function addAudit(program: Command): void {
  withAddress(program.command('audit'))
    .description('Show who looked up which users, newest first. E-mail addresses are masked.')
    .option('--limit <count>', 'at most so many, 1 to 1000', parseCount, 20)
    .option('--json', 'print JSON, as the HTTP interface answers')
    .addHelpText('after', '\nThe token is taken from DAWATCH_ADMIN_TOKEN.\n\nExample:\n  dawatch audit --limit 100')
    .action(async ({ limit, ...options }: ConnectOptions & { limit: number; json?: boolean }) => {
      const page = await askWithToken(options, VARIABLES, (client) => client.audit({ limit }));
      const rows = page.entries.map(({ at, caller, credential_id, action, outcome, email_masked, detail }) =>
        [at, caller, String(credential_id ?? '-'), action, outcome, email_masked ?? '-', detail ?? ''].map((text) =>
          printable(text),
        ),
      );
      process.stdout.write(options.json ? `${JSON.stringify(page)}\n` : table([COLUMNS, ...rows]));
    });
}

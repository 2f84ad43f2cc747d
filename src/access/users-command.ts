import type { Command } from 'commander';
import { type ConnectOptions, requestWithToken, withAddress } from '../cli/connect.ts';
import { parseCount } from '../cli/input.ts';
import { table, toJson } from '../cli/output.ts';
import type { User } from '../client/index.ts';
import { escapeText } from '../lib/text.ts';

type Options = ConnectOptions & { json?: boolean };

const TOKEN = {
  variables: ['DAWATCH_TOKEN', 'DAWATCH_ADMIN_TOKEN'],
  advice:
    'create one with `dawatch token create --role user --name …`; a server that forwards Authorization needs a token of the upstream',
};
const HELP = `
The token is read from DAWATCH_TOKEN, otherwise from DAWATCH_ADMIN_TOKEN. It is a token of dawatch (\`dawatch token create\`),
or a token of the upstream if the server is configured to forward it.`;
const COLUMNS = ['id', 'name', 'email', 'app_id', 'assigned_wallet'];

export function addUsers(program: Command): void {
  const users = program
    .command('users')
    .description('Look up users of the upstream. Every lookup is audited.');
  addGet(users);
  addList(users);
}

function addGet(users: Command): void {
  withAddress(users.command('get'))
    .description('Show the user with this name and e-mail address.')
    .requiredOption('--name <name>', 'name of the user')
    .requiredOption('--email <email>', 'e-mail address of the user')
    .option('--json', 'print JSON, as returned by the upstream')
    .addHelpText(
      'after',
      `\nExample:\n  dawatch users get --name "Ada Example" --email ada@example.com\n${HELP}`,
    )
    .action(async ({ name, email, ...options }: Options & { name: string; email: string }) => {
      const user = await requestWithToken(options, TOKEN, (client) =>
        client.getUser({ name, email }),
      );
      print(options, user, () =>
        table(Object.entries(user).map(([field, value]) => [escapeText(field), cell(value)])),
      );
    });
}

function addList(users: Command): void {
  withAddress(users.command('list'))
    .description('List users in the order of the upstream.')
    .requiredOption('--limit <count>', 'maximum number of users, from 1 to 1000', parseCount)
    .option('--json', 'print a JSON array, as returned by the upstream')
    .addHelpText(
      'after',
      `\nExample:\n  dawatch users list --limit 100 --json | jq '.[].email'\n${HELP}`,
    )
    .action(async ({ limit, ...options }: Options & { limit: number }) => {
      const list = await requestWithToken(options, TOKEN, (client) => client.listUsers(limit));
      print(options, list, () =>
        table([COLUMNS, ...list.map((user) => COLUMNS.map((name) => cell(user[name])))]),
      );
    });
}

function print(options: Options, result: User | User[], toText: () => string): void {
  process.stdout.write(options.json ? `${toJson(result)}\n` : toText());
}

function cell(value: unknown): string {
  if (value === undefined || value === null) return '-';
  return escapeText(typeof value === 'string' ? value : JSON.stringify(value));
}

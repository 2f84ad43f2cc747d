import type { Command } from 'commander';
import type { User } from '../../../client/client.ts';
import { escapeText } from '../../../domain/text.ts';
import { type ConnectOptions, requestWithToken, withAddress } from '../../connect.ts';
import { parseCount } from '../../output/count.ts';
import { toJson } from '../../output/json.ts';
import { table } from '../../output/table.ts';

type Options = ConnectOptions & { json?: boolean };

const TOKEN = {
  variables: ['DAWATCH_TOKEN', 'DAWATCH_ADMIN_TOKEN'],
  advice: '`dawatch token create --role user --name …` makes one; a server that forwards wants one of the upstream',
};
const HELP = `
The token is taken from DAWATCH_TOKEN, or else DAWATCH_ADMIN_TOKEN. It is one of dawatch (\`dawatch token create\`), or the
upstream's own where the server has none and forwards it.`;
const COLUMNS = ['id', 'name', 'email', 'app_id', 'assigned_wallet'];

export function addUsers(program: Command): void {
  const users = program.command('users').description("Look up the upstream's users. Every lookup is audited.");
  addGet(users);
  addList(users);
}

function addGet(users: Command): void {
  withAddress(users.command('get'))
    .description('Show the user of this name and e-mail address.')
    .requiredOption('--name <name>', "the user's name")
    .requiredOption('--email <email>', "the user's e-mail address")
    .option('--json', 'print JSON, as the upstream has it')
    .addHelpText('after', `\nExample:\n  dawatch users get --name "Ada Example" --email ada@example.com\n${HELP}`)
    .action(async ({ name, email, ...options }: Options & { name: string; email: string }) => {
      const user = await requestWithToken(options, TOKEN, (client) => client.getUser({ name, email }));
      print(options, user, () => table(Object.entries(user).map(([field, value]) => [escapeText(field), cell(value)])));
    });
}

function addList(users: Command): void {
  withAddress(users.command('list'))
    .description('List users, at most so many, in the order of the upstream.')
    .requiredOption(
      '--limit <count>',
      "at most so many, from 1; the server's setting users.max_limit (1000 by default) is the ceiling",
      parseCount,
    )
    .option('--json', 'print a JSON array, as the upstream has it')
    .addHelpText('after', `\nExample:\n  dawatch users list --limit 100 --json | jq '.[].email'\n${HELP}`)
    .action(async ({ limit, ...options }: Options & { limit: number }) => {
      const list = await requestWithToken(options, TOKEN, (client) => client.listUsers(limit));
      print(options, list, () => table([COLUMNS, ...list.map((user) => COLUMNS.map((name) => cell(user[name])))]));
    });
}

function print(options: Options, answer: User | User[], toText: () => string): void {
  process.stdout.write(options.json ? `${toJson(answer)}\n` : toText());
}

function cell(value: unknown): string {
  if (value === undefined || value === null) return '-';
  return escapeText(typeof value === 'string' ? value : JSON.stringify(value));
}

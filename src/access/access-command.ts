import { userInfo } from 'node:os';
import { type Command, Option } from 'commander';
import {
  type ConnectOptions,
  requestAsAdmin,
  requestWithToken,
  withAddress,
  withAdmin,
} from '../cli/connect.ts';
import { CommandError, ExitCode } from '../cli/exit.ts';
import { parseAhead, parseCount } from '../cli/input.ts';
import { table, toJson } from '../cli/output.ts';
import { ledgerOf, type SettingsOptions, withSettings } from '../cli/settings-file.ts';
import type { Credential, DawatchClient, User } from '../client/index.ts';
import { openBeside } from '../ledger/open.ts';
import type { Actor } from '../lib/actor.ts';
import { escapeText } from '../lib/text.ts';
import { ROLES, type Role } from './access.ts';
import { AuditTrail } from './audit-store.ts';
import {
  CredentialStore,
  createCredential,
  MAX_CREDENTIALS,
  nameProblem,
} from './credentials-store.ts';

const NEVER = 'never';
const PAGE = 1_000;

export function addToken(program: Command): void {
  const token = program
    .command('token')
    .description('Create, list and revoke the tokens of clients.');
  addCreate(token);
  addList(token);
  addRevoke(token);
}

type CreateOptions = SettingsOptions & {
  role: Role;
  name: string;
  expires?: (now: number) => number;
};

function addCreate(token: Command): void {
  withSettings(token.command('create'))
    .description('Create a token in the ledger and print it. It cannot be shown again.')
    .addOption(
      new Option(
        '--role <role>',
        'service: submissions; user: lookup of one user; operator: reads submissions, webhooks, deliveries, channels and mutes; admin: everything',
      )
        .choices(ROLES)
        .makeOptionMandatory(),
    )
    .requiredOption(
      '--name <name>',
      'name of the client, 1 to 64 characters; appears in the audit',
      parseName,
    )
    .option(
      '--expires <time>',
      'when it expires: 90d (from now), or 2027-01-02T03:04:05Z (default: never)',
      parseAhead,
    )
    .addHelpText(
      'after',
      '\nExample:\n  DAWATCH_API_KEY=$(dawatch token create --role service --name billing)',
    )
    .action((options: CreateOptions) => {
      const { role, name } = options;
      const now = Date.now();
      const expiresAt = options.expires?.(now) ?? null;
      if (expiresAt !== null && expiresAt <= now)
        throw new CommandError('--expires must be in the future', ExitCode.usage);
      const { database, close } = openBeside({ file: ledgerOf(options), now });
      try {
        const ledger = {
          credentials: new CredentialStore(database),
          audit: new AuditTrail(database),
        };
        if (ledger.credentials.isFull())
          throw new CommandError(
            `there are ${MAX_CREDENTIALS} tokens that are not revoked: revoke some of them first`,
            ExitCode.usage,
          );
        const credential = { role, name, expiresAt };
        const { record, secret } = createCredential(ledger, { actor: actor(), now, credential });
        const message = `token ${record.id}, ${role}, "${name}": save it now, it cannot be shown again`;
        process.stderr.write(`${escapeText(message)}\n`);
        // Alone on stdout, so that a variable can take it.
        process.stdout.write(`${secret}\n`);
      } finally {
        close();
      }
    });
}

type ListOptions = ConnectOptions & { json?: boolean };

function addList(token: Command): void {
  withAdmin(token.command('list'))
    .description('List all tokens with role, name, last use and expiry.')
    .option('--json', 'print a JSON array')
    .addHelpText(
      'after',
      '\nCredentials set with DAWATCH_SERVICE_KEY and DAWATCH_ADMIN_TOKEN are not in the ledger and not listed.',
    )
    .action(async (options: ListOptions) => {
      const rows = await requestAsAdmin(options, listAll);
      process.stdout.write(options.json ? `${toJson(rows)}\n` : tokenTable(rows));
    });
}

async function listAll({ credentials }: DawatchClient): Promise<Credential[]> {
  const all: Credential[] = [];
  for (let cursor: string | undefined; ; ) {
    const page = await credentials.list({ limit: PAGE, ...(cursor !== undefined && { cursor }) });
    all.push(...page.credentials);
    if (page.next_cursor === null) return all;
    cursor = page.next_cursor;
  }
}

function tokenTable(rows: readonly Credential[]): string {
  const cells = rows.map((row) =>
    [
      String(row.id),
      row.role,
      row.person ?? row.name,
      row.created_at,
      row.last_used_at ?? NEVER,
      row.expires_at ?? NEVER,
      row.revoked_at ?? '-',
    ].map((text) => escapeText(text)),
  );
  return table([['id', 'role', 'name', 'created', 'last used', 'expires', 'revoked'], ...cells]);
}

function addRevoke(token: Command): void {
  withAdmin(token.command('revoke'))
    .description('Revoke a token: the next request with it is refused.')
    .argument('<id>', 'number of the token, from `dawatch token list`', parseCount)
    .addHelpText('after', '\nExample:\n  dawatch token revoke 3')
    .action(async (id: number, options: ConnectOptions) => {
      await requestAsAdmin(options, ({ credentials }) => credentials.revoke(id));
      process.stderr.write(`token ${id} is revoked\n`);
    });
}

function parseName(name: string): string {
  const problem = nameProblem(name);
  if (problem !== undefined) throw new CommandError(`--name ${problem}`, ExitCode.usage);
  return name;
}

/** Returns the user of the system who runs the command, for the audit. */
function actor(): Actor {
  let user: string;
  try {
    user = userInfo().username;
  } catch {
    // A container may run under an id that has no name.
    user = String(process.getuid?.() ?? 'unknown');
  }
  return { name: `cli:${user}`, credentialId: null, address: null };
}

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
  addUserGet(users);
  addUserList(users);
}

function addUserGet(users: Command): void {
  withAddress(users.command('get'))
    .description('Show the user with this name and e-mail address.')
    .requiredOption('--name <name>', 'name of the user')
    .requiredOption('--email <email>', 'e-mail address of the user')
    .option('--json', 'print JSON, as returned by the upstream')
    .addHelpText(
      'after',
      `\nExample:\n  dawatch users get --name "Ada Example" --email ada@example.com\n${HELP}`,
    )
    .action(async ({ name, email, ...options }: ListOptions & { name: string; email: string }) => {
      const user = await requestWithToken(options, TOKEN, (client) =>
        client.getUser({ name, email }),
      );
      print(options, user, () =>
        table(Object.entries(user).map(([field, value]) => [escapeText(field), cell(value)])),
      );
    });
}

function addUserList(users: Command): void {
  withAddress(users.command('list'))
    .description('List users in the order of the upstream.')
    .option('--limit <count>', 'maximum number of users, from 1 to 1000', parseCount, 100)
    .option('--json', 'print a JSON array, as returned by the upstream')
    .addHelpText(
      'after',
      `\nExample:\n  dawatch users list --limit 100 --json | jq '.[].email'\n${HELP}`,
    )
    .action(async ({ limit, ...options }: ListOptions & { limit: number }) => {
      const list = await requestWithToken(options, TOKEN, (client) => client.listUsers(limit));
      print(options, list, () =>
        table([COLUMNS, ...list.map((user) => COLUMNS.map((name) => cell(user[name])))]),
      );
    });
}

function print(options: ListOptions, result: User | User[], toText: () => string): void {
  process.stdout.write(options.json ? `${toJson(result)}\n` : toText());
}

function cell(value: unknown): string {
  if (value === undefined || value === null) return '-';
  return escapeText(typeof value === 'string' ? value : JSON.stringify(value));
}

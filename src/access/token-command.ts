import { userInfo } from 'node:os';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { type ConnectOptions, requestAsAdmin, withAdmin } from '../cli/connect.ts';
import { CommandError, ExitCode } from '../cli/exit.ts';
import { durationOption, numberFrom, parseAhead } from '../cli/input.ts';
import { table, toJson } from '../cli/output.ts';
import { ledgerOf, type SettingsOptions, withSettings } from '../cli/settings-file.ts';
import type { Credential, DawatchClient } from '../client/index.ts';
import { openBeside } from '../ledger/open.ts';
import type { Actor } from '../lib/actor.ts';
import { escapeText } from '../lib/text.ts';
import {
  type Rights,
  ROLES,
  type Role,
  rightsOfRole,
  rightsOfScopes,
  SCOPES,
  type Scope,
} from './access.ts';
import { AuditTrail } from './audit-store.ts';
import { DAY_S, MAX_OVERLAP_S, nameProblem } from './credential-changes.ts';
import { CredentialStore, createCredential, MAX_CREDENTIALS } from './credentials-store.ts';

/** Returns the expiry for the current time, both in epoch milliseconds; null: never. */
type Expiry = (now: number) => number | null;

const NEVER = 'never';
const PAGE = 1_000;

export function addToken(program: Command): void {
  const token = program
    .command('token')
    .description(
      'Create, list, rotate and revoke the tokens of clients. `create` works on the ledger, the others need a server.',
    );
  addCreate(token);
  addList(token);
  addUpdate(token);
  addRotate(token);
  addRevoke(token);
  addReadmit(token);
}

type CreateOptions = SettingsOptions & {
  role?: Role;
  scopes?: Scope[];
  name: string;
  expires?: Expiry;
};

function addCreate(token: Command): void {
  withSettings(token.command('create'))
    .description(
      'Create a token in the ledger and print it, whether a server runs or not. It cannot be shown again, because only its hash is stored.',
    )
    .addOption(
      new Option(
        '--role <role>',
        'service: submissions; user: lookup of one user; operator: reads submissions, webhooks, deliveries, channels and mutes; admin: everything',
      ).choices(ROLES),
    )
    .option(
      '--scopes <scopes>',
      `instead of a role, separated by commas: ${SCOPES.join(', ')}`,
      parseScopes,
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
      const { name, expires } = options;
      const rights = rightsIn(options);
      const now = Date.now();
      const credential = { rights, name, expiresAt: expires ? futureTime(expires, now) : null };
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
        const { record, secret } = createCredential(ledger, { actor: actor(), now, credential });
        printSecret({ ...record, secret }, rights.role ?? [...rights.scopes].join(' '));
      } finally {
        close();
      }
    });
}

function addList(token: Command): void {
  withAdmin(token.command('list'))
    .description(
      'List all tokens with role, name, last use and expiry, but not the tokens themselves.',
    )
    .option('--json', 'print a JSON array')
    .addHelpText(
      'after',
      '\nCredentials set with DAWATCH_API_KEY and DAWATCH_ADMIN_TOKEN are not in the ledger and not listed.',
    )
    .action(async (options: ConnectOptions & { json?: boolean }) => {
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

/** Returns a table of tokens. The last use is followed by that of each replaced secret. */
function tokenTable(rows: readonly Credential[]): string {
  const cells = rows.map((row) => [
    String(row.id),
    escapeText(row.role ?? row.scopes.join(' ')),
    escapeText(row.person ?? row.name),
    escapeText(row.created_at),
    [
      row.last_used_at ?? NEVER,
      ...row.replaced_secrets.map((old) => `replaced: ${old.last_used_at ?? NEVER}`),
    ]
      .map((text) => escapeText(text))
      .join('; '),
    escapeText(row.expires_at ?? NEVER),
    escapeText(row.revoked_at ?? '-'),
  ]);
  return table([['id', 'role', 'name', 'created', 'last used', 'expires', 'revoked'], ...cells]);
}

function addUpdate(token: Command): void {
  withId(token, 'update')
    .description(
      'Change the name or the expiry of a token. A later expiry makes an expired token valid again.',
    )
    .option('--name <name>', 'name of the client, 1 to 64 characters', parseName)
    .option(
      '--expires <time>',
      `when it expires: 90d (from now), 2027-01-02T03:04:05Z, or ${NEVER}`,
      (text): Expiry => (text === NEVER ? () => null : parseAhead(text)),
    )
    .addHelpText('after', '\nExample:\n  dawatch token update 3 --expires 90d')
    .action(async (id: number, options: ConnectOptions & { name?: string; expires?: Expiry }) => {
      const { name, expires } = options;
      if (name === undefined && expires === undefined)
        throw new CommandError('--name or --expires is required', ExitCode.usage);
      const at = expires && futureTime(expires, Date.now());
      const patch = {
        ...(name !== undefined && { name }),
        ...(at !== undefined && { expires_at: at === null ? null : new Date(at).toISOString() }),
      };
      const credential = await requestAsAdmin(options, ({ credentials }) =>
        credentials.update(id, patch),
      );
      const { expires_at } = credential;
      print(credential, expires_at === null ? 'does not expire' : `expires at ${expires_at}`);
    });
}

function addRotate(token: Command): void {
  const limits = { least: '0s', most: `${MAX_OVERLAP_S / DAY_S}d`, fallback: '24h' };
  withId(token, 'rotate')
    .description(
      'Replace a token and print the new one, which cannot be shown again. The old token is accepted during the overlap. Tokens of earlier rotations end at the same time at the latest.',
    )
    .addOption(durationOption('--overlap', 'how long the old token is accepted', limits))
    .addHelpText('after', '\nExample:\n  DAWATCH_API_KEY=$(dawatch token rotate 3 --overlap 2h)')
    .action(async (id: number, options: ConnectOptions & { overlap: number }) => {
      const overlap_s = Math.ceil(options.overlap / 1_000);
      const rotated = await requestAsAdmin(options, ({ credentials }) =>
        credentials.rotate(id, { overlap_s }),
      );
      const until = rotated.replaced_secrets[0]?.valid_until;
      printSecret(
        rotated,
        until === undefined ? 'the old one is refused' : `the old one until ${until}`,
      );
    });
}

function addRevoke(token: Command): void {
  withId(token, 'revoke')
    .description('Revoke a token: the next request with it is refused.')
    .addHelpText('after', '\nExample:\n  dawatch token revoke 3')
    .action(async (id: number, options: ConnectOptions) => {
      await requestAsAdmin(options, ({ credentials }) => credentials.revoke(id));
      process.stderr.write(`token ${id} is revoked\n`);
    });
}

function addReadmit(token: Command): void {
  withId(token, 'readmit')
    .description('Make the revoked token of a person who signs in by OpenID Connect valid again.')
    .addHelpText('after', '\nExample:\n  dawatch token readmit 3')
    .action(async (id: number, options: ConnectOptions) => {
      print(
        await requestAsAdmin(options, ({ credentials }) => credentials.readmit(id)),
        'is admitted',
      );
    });
}

function withId(token: Command, name: string): Command {
  return withAdmin(token.command(name)).argument(
    '<id>',
    'number of the token, from `dawatch token list`',
    numberFrom('dawatch token list'),
  );
}

function rightsIn({ role, scopes }: { role?: Role; scopes?: Scope[] }): Rights {
  if (role !== undefined && scopes === undefined) return rightsOfRole(role);
  if (scopes !== undefined && role === undefined) return rightsOfScopes(scopes);
  throw new CommandError('either --role or --scopes is required, and not both', ExitCode.usage);
}

function parseName(name: string): string {
  const problem = nameProblem(name);
  if (problem !== undefined) throw new CommandError(`--name ${problem}`, ExitCode.usage);
  return name;
}

function parseScopes(text: string): Scope[] {
  return text.split(',').map((name) => {
    const scope = SCOPES.find((known) => known === name.trim());
    if (!scope) throw new InvalidArgumentError(`Allowed scopes are ${SCOPES.join(', ')}.`);
    return scope;
  });
}

function futureTime(expires: Expiry, now: number): number | null {
  const expiresAt = expires(now);
  if (expiresAt !== null && expiresAt <= now)
    throw new CommandError('--expires must be in the future', ExitCode.usage);
  return expiresAt;
}

function print({ id, name }: { id: number; name: string }, what: string): void {
  process.stderr.write(`${escapeText(`token ${id}, "${name}", ${what}`)}\n`);
}

/** Prints the secret alone on stdout, so that a variable can take it. */
function printSecret(
  { id, name, secret }: { id: number; name: string; secret: string },
  what: string,
): void {
  const message = `token ${id}, ${what}, "${name}": save it now, it cannot be shown again`;
  process.stderr.write(`${escapeText(message)}\n`);
  process.stdout.write(`${escapeText(secret)}\n`);
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

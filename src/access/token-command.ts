import { type Command, InvalidArgumentError, Option } from 'commander';
import { commandActor } from '../cli/actor.ts';
import { durationOption } from '../cli/duration.ts';
import { CommandError, ExitCode } from '../cli/exit.ts';
import { toJson } from '../cli/json.ts';
import { numberFrom } from '../cli/numbers.ts';
import { ledgerOf, type SettingsOptions, withSettings } from '../cli/settings-file.ts';
import { parseAhead } from '../cli/since.ts';
import { table } from '../cli/table.ts';
import { openBeside } from '../ledger/open.ts';
import { escapeText } from '../lib/text.ts';
import { AuditTrail } from './audit-store.ts';
import {
  type CredentialRefusal,
  DAY_S,
  MAX_OVERLAP_S,
  nameProblem,
  readmitPerson,
  revokeCredential,
  rotateCredential,
  updateCredential,
} from './credential-changes.ts';
import { toCredentialBody } from './credentials-routes.ts';
import {
  type CredentialLedger,
  type CredentialRecord,
  CredentialStore,
  createCredential,
} from './credentials-store.ts';
import {
  type Rights,
  ROLES,
  type Role,
  rightsOfRole,
  rightsOfScopes,
  SCOPES,
  type Scope,
} from './scopes.ts';

type Row = ReturnType<typeof toCredentialBody>;

/** Returns a table of tokens. */
export function tokenTable(rows: readonly Row[]): string {
  const cells = rows.map((row) => [
    String(row.id),
    row.role ?? row.scopes.join(' '),
    escapeText(row.person ?? row.name),
    row.created_at,
    lastUseOf(row),
    row.expires_at ?? 'never',
    row.revoked_at ?? '-',
  ]);
  return table([['id', 'role', 'name', 'created', 'last used', 'expires', 'revoked'], ...cells]);
}

/** Returns the time of the last use, and that of replaced tokens that are still accepted. */
function lastUseOf({ last_used_at, replaced_secrets }: Row): string {
  const uses = replaced_secrets.map((old) => `; replaced: ${old.last_used_at ?? 'never'}`);
  return `${last_used_at ?? 'never'}${uses.join('')}`;
}

/** Returns the expiry for the current time, both in epoch milliseconds; null: never. */
type Expiry = (now: number) => number | null;

const NEVER = 'never';

export function addToken(program: Command): void {
  const token = program
    .command('token')
    .description(
      'Create, list, rotate and revoke the tokens of clients. Works on the ledger, also while the server runs.',
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
      'Create a token and print it. It cannot be shown again, because only its hash is stored.',
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
      const { record, secret } = onLedger(options, (ledger) =>
        createCredential(ledger, { actor: commandActor(), now, credential }),
      );
      const what = rights.role ?? [...rights.scopes].join(' ');
      printSecret(record, secret, what);
    });
}

function addList(token: Command): void {
  withSettings(token.command('list'))
    .description(
      'List all tokens with role, name, last use and expiry, but not the tokens themselves.',
    )
    .option('--json', 'print a JSON array')
    .addHelpText(
      'after',
      '\nCredentials set with DAWATCH_API_KEY and DAWATCH_ADMIN_TOKEN are not in the ledger and not listed.',
    )
    .action((options: SettingsOptions & { json?: boolean }) => {
      const now = Date.now();
      const rows = onLedger(options, ({ credentials }) =>
        credentials.list().map((record) =>
          toCredentialBody(record, {
            replaced: credentials.replacedSecrets(record.id, now),
            now,
          }),
        ),
      );
      process.stdout.write(options.json ? `${toJson(rows, 2)}\n` : tokenTable(rows));
    });
}

function addUpdate(token: Command): void {
  withForce(withId(token, 'update'))
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
    .action(
      (id: number, options: SettingsOptions & Force & { name?: string; expires?: Expiry }) => {
        const { name, expires, force: isLastAllowed = false } = options;
        if (name === undefined && expires === undefined)
          throw new CommandError('--name or --expires is required', ExitCode.usage);
        const now = Date.now();
        const patch = { name, expiresAt: expires && futureTime(expires, now) };
        const result = onLedger(options, (ledger) =>
          updateCredential(ledger, { actor: commandActor(), now, id, patch, isLastAllowed }),
        );
        if (result.kind !== 'updated') throw refused(id, result);
        const { expiresAt } = result.record;
        const expiry =
          expiresAt === null
            ? 'does not expire'
            : `expires at ${new Date(expiresAt).toISOString()}`;
        process.stderr.write(`${titleOf(result.record)}, ${expiry}\n`);
      },
    );
}

function addRotate(token: Command): void {
  const limits = { least: '0s', most: `${MAX_OVERLAP_S / DAY_S}d`, fallback: '24h' };
  withId(token, 'rotate')
    .description(
      'Replace a token and print the new one, which cannot be shown again. The old token is accepted during the overlap. Tokens of earlier rotations end at the same time at the latest.',
    )
    .addOption(durationOption('--overlap', 'how long the old token is accepted', limits))
    .addHelpText('after', '\nExample:\n  DAWATCH_API_KEY=$(dawatch token rotate 3 --overlap 2h)')
    .action((id: number, options: SettingsOptions & { overlap: number }) => {
      const now = Date.now();
      const overlapS = Math.ceil(options.overlap / 1_000);
      const result = onLedger(options, (ledger) =>
        rotateCredential(ledger, { actor: commandActor(), now, id, overlapS }),
      );
      if (result.kind !== 'rotated') throw refused(id, result);
      const until = new Date(now + overlapS * 1_000).toISOString();
      printSecret(
        result.record,
        result.secret,
        overlapS === 0 ? 'the old one is refused' : `the old one until ${until}`,
      );
    });
}

function addRevoke(token: Command): void {
  withForce(withId(token, 'revoke'))
    .description('Revoke a token, so that requests with it are refused, also by a running server.')
    .addHelpText('after', '\nExample:\n  dawatch token revoke 3')
    .action((id: number, options: SettingsOptions & Force) => {
      const change = {
        actor: commandActor(),
        now: Date.now(),
        id,
        isLastAllowed: options.force ?? false,
      };
      const result = onLedger(options, (ledger) => revokeCredential(ledger, change));
      if (result.kind !== 'revoked') throw refused(id, result);
      process.stderr.write(
        `${titleOf(result.record)}, ${result.wasRevoked ? 'was already' : 'is'} revoked\n`,
      );
    });
}

function addReadmit(token: Command): void {
  withId(token, 'readmit')
    .description('Make the revoked token of a person who signs in by OpenID Connect valid again.')
    .addHelpText('after', '\nExample:\n  dawatch token readmit 3')
    .action((id: number, options: SettingsOptions) => {
      const result = onLedger(options, (ledger) =>
        readmitPerson(ledger, { actor: commandActor(), now: Date.now(), id }),
      );
      if (result.kind !== 'admitted') throw refused(id, result);
      process.stderr.write(
        `${titleOf(result.record)}, ${result.wasRevoked ? 'is admitted again' : 'was not revoked'}\n`,
      );
    });
}

type Force = { force?: boolean };

function withId(token: Command, name: string): Command {
  return withSettings(token.command(name)).argument(
    '<id>',
    'number of the token, from `dawatch token list`',
    numberFrom('dawatch token list'),
  );
}

function withForce(command: Command): Command {
  return command.option(
    '--force',
    'also if the ledger then has no other valid token with the scope admin',
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

function titleOf({ id, name }: CredentialRecord): string {
  return `token ${id}, "${escapeText(name)}"`;
}

/** Prints the secret alone on stdout, so that a variable can take it. */
function printSecret(record: CredentialRecord, secret: string, what: string): void {
  const { id, name } = record;
  process.stderr.write(
    `token ${id}, ${what}, "${escapeText(name)}": save it now, it cannot be shown again\n`,
  );
  process.stdout.write(`${secret}\n`);
}

function refused(id: number, { kind }: CredentialRefusal): CommandError {
  const reasons = {
    unknown: `there is no token ${id}: \`dawatch token list\` shows them`,
    is_revoked: `token ${id} is revoked`,
    has_expired: `token ${id} has expired: set a later expiry with \`dawatch token update ${id} --expires …\` first`,
    person: `token ${id} belongs to a person who signs in at the provider: it can only be revoked, and admitted again`,
    not_person: `token ${id} belongs to no person who signs in at the provider`,
    last_admin: `token ${id} is the last one of the ledger with the scope admin that stays valid: create another one first, or use --force`,
  };
  return new CommandError(reasons[kind], ExitCode.usage);
}

function onLedger<T>(options: SettingsOptions, work: (ledger: CredentialLedger) => T): T {
  const { database, close } = openBeside({ file: ledgerOf(options), now: Date.now() });
  try {
    return work({ credentials: new CredentialStore(database), audit: new AuditTrail(database) });
  } finally {
    close();
  }
}

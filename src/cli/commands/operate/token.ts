import { type Command, Option } from 'commander';
import { ROLES, type Role } from '../../../domain/access/scopes.ts';
import { escapeText } from '../../../domain/text.ts';
import { sha256 } from '../../../http/access/access.ts';
import { makeToken, storeToken } from '../../../http/access/credentials.ts';

import { AuditTrail } from '../../../ledger/access/audit.ts';
import { type CredentialRecord, CredentialStore } from '../../../ledger/access/credentials.ts';
import { openBeside } from '../../../ledger/file/open.ts';
import { commandActor } from '../../actor.ts';
import { CommandError, ExitCode } from '../../exit.ts';
import { numberFrom } from '../../input/numbers.ts';
import { ledgerOf, type SettingsOptions, withSettings } from '../../input/settings-file.ts';
import { toJson } from '../../output/json.ts';
import { table } from '../../output/table.ts';

/** 1 to 64 printable characters; spaces only between them. */
const NAME_PATTERN = /^(?! )[^\p{C}\p{Zl}\p{Zp}]{1,64}(?<! )$/u;

/** Names that the audit uses for callers without a token in the ledger. */
const RESERVED_NAME = /^(?:forwarded|DAWATCH_|cli:|SIGHUP$|dawatch$)/i;

export function addToken(program: Command): void {
  const token = program
    .command('token')
    .description('Create, list and revoke the tokens of clients. Works on the ledger, also while the server runs.');
  addCreate(token);
  addList(token);
  addRevoke(token);
}

function addCreate(token: Command): void {
  withSettings(token.command('create'))
    .description('Create a token and print it. It cannot be shown again, because only its hash is stored.')
    .addOption(
      new Option('--role <role>', 'service: submissions; user: lookup of one user; admin: everything')
        .choices(ROLES)
        .makeOptionMandatory(),
    )
    .requiredOption('--name <name>', 'name of the client, 1 to 64 characters; appears in the audit')
    .addHelpText('after', '\nExample:\n  DAWATCH_API_KEY=$(dawatch token create --role service --name billing)')
    .action((options: SettingsOptions & { role: Role; name: string }) => {
      const { role, name } = options;
      if (!NAME_PATTERN.test(name))
        throw new CommandError(
          '--name must be 1 to 64 printable characters, with spaces only between them',
          ExitCode.usage,
        );
      if (RESERVED_NAME.test(name))
        throw new CommandError(
          '--name must not begin with "forwarded", "DAWATCH_" or "cli:", or be "SIGHUP" or "dawatch"',
          ExitCode.usage,
        );
      const secret = makeToken(role);
      const token = { hash: sha256(secret), role, name };
      const { id } = withLedger(options, (ledger) =>
        storeToken(ledger, { actor: commandActor(), token, now: Date.now() }),
      );
      process.stderr.write(`token ${id}, ${role}, "${name}": save it now, it cannot be shown again\n`);
      process.stdout.write(`${secret}\n`);
    });
}

function addList(token: Command): void {
  withSettings(token.command('list'))
    .description('List all tokens with role, name and last use, but not the tokens themselves.')
    .option('--json', 'print a JSON array')
    .addHelpText(
      'after',
      '\nCredentials set with DAWATCH_API_KEY and DAWATCH_ADMIN_TOKEN are not in the ledger and not listed.',
    )
    .action((options: SettingsOptions & { json?: boolean }) => {
      const rows = withLedger(options, ({ credentials }) => credentials.list()).map(toRow);
      process.stdout.write(options.json ? `${toJson(rows, 2)}\n` : toTable(rows));
    });
}

function addRevoke(token: Command): void {
  withSettings(token.command('revoke'))
    .description('Revoke a token, so that requests with it are refused, also by a running server.')
    .argument('<id>', 'number of the token, from `dawatch token list`', numberFrom('dawatch token list'))
    .addHelpText('after', '\nExample:\n  dawatch token revoke 3')
    .action((id: number, options: SettingsOptions) => {
      withLedger(options, ({ credentials, audit }) => {
        const now = Date.now();
        const entry = { action: 'tokens.revoke', subject: String(id) } as const;
        const revoke = () => credentials.revoke(id, now);
        const isRevoked = audit.change(commandActor(), now, revoke, (revoked) => (revoked ? entry : undefined));
        const known = credentials.list().find((record) => record.id === id);
        if (!known)
          throw new CommandError(`there is no token ${id}: \`dawatch token list\` shows them`, ExitCode.usage);
        process.stderr.write(`token ${id}, "${escapeText(known.name)}", ${isRevoked ? 'is' : 'was already'} revoked\n`);
      });
    });
}

function withLedger<T>(
  options: SettingsOptions,
  work: (ledger: { credentials: CredentialStore; audit: AuditTrail }) => T,
): T {
  const file = ledgerOf(options);
  const { database, close } = openBeside({ file, now: Date.now() });
  try {
    return work({ credentials: new CredentialStore(database), audit: new AuditTrail(database) });
  } finally {
    close();
  }
}

type Row = ReturnType<typeof toRow>;

function toRow(record: CredentialRecord) {
  const iso = (ms: number | null) => (ms === null ? null : new Date(ms).toISOString());
  return {
    id: record.id,
    role: record.role,
    name: record.name,
    created_at: new Date(record.createdAt).toISOString(),
    last_used_at: iso(record.lastUsedAt),
    revoked_at: iso(record.revokedAt),
  };
}

function toTable(rows: readonly Row[]): string {
  const cells = rows.map((row) => [
    String(row.id),
    row.role,
    escapeText(row.name),
    row.created_at,
    row.last_used_at ?? 'never',
    row.revoked_at ?? '-',
  ]);
  return table([['id', 'role', 'name', 'created', 'last used', 'revoked'], ...cells]);
}

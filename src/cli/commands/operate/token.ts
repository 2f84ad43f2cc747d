import { type Command, InvalidArgumentError, Option } from 'commander';
import { escapeText } from '../../../domain/text.ts';
import { sha256 } from '../../../http/access/access.ts';
import { makeToken } from '../../../http/access/credentials.ts';
import { ROLES, type Role } from '../../../http/ports.ts';
import { type CredentialRecord, CredentialStore } from '../../../ledger/access/credentials.ts';
import { openBeside } from '../../../ledger/file/open.ts';
import { CommandError, ExitCode } from '../../exit.ts';
import { ledgerOf, type SettingsOptions, withSettings } from '../../input/settings-file.ts';
import { toJson } from '../../output/json.ts';
import { table } from '../../output/table.ts';

/** 1 to 64 characters that can be seen; spaces only between them. */
const NAME_PATTERN = /^(?! )[^\p{C}\p{Zl}\p{Zp}]{1,64}(?<! )$/u;

/** The audit trail shows these of callers without a token of the ledger. */
const RESERVED_NAME = /^(forwarded|DAWATCH_)/i;

export function addToken(program: Command): void {
  const token = program
    .command('token')
    .description(
      'Make, list and revoke the tokens that clients show. Works on the ledger, beside a running server too.',
    );
  addCreate(token);
  addList(token);
  addRevoke(token);
}

function addCreate(token: Command): void {
  withSettings(token.command('create'))
    .description('Make a token and print it, this once: only its hash is kept.')
    .addOption(
      new Option('--role <role>', 'service: submissions; user: looking up one user; admin: everything')
        .choices(ROLES)
        .makeOptionMandatory(),
    )
    .requiredOption('--name <name>', 'whose it is, 1 to 64 characters; the audit trail shows it')
    .addHelpText('after', '\nExample:\n  DAWATCH_API_KEY=$(dawatch token create --role service --name billing)')
    .action((options: SettingsOptions & { role: Role; name: string }) => {
      const { role, name } = options;
      if (!NAME_PATTERN.test(name))
        throw new CommandError('--name takes 1 to 64 printable characters, spaces only between them', ExitCode.usage);
      if (RESERVED_NAME.test(name))
        throw new CommandError('--name may not begin with "forwarded" or "DAWATCH_"', ExitCode.usage);
      const secret = makeToken(role);
      const { id } = withStore(options, (store) => store.add({ hash: sha256(secret), role, name }, Date.now()));
      process.stderr.write(`token ${id}, ${role}, "${name}": keep it now, it is not shown again\n`);
      process.stdout.write(`${secret}\n`);
    });
}

function addList(token: Command): void {
  withSettings(token.command('list'))
    .description('Show every token with its role, name and last use; never the token itself.')
    .option('--json', 'print a JSON array')
    .addHelpText('after', '\nKeys that the settings give (DAWATCH_API_KEY, DAWATCH_ADMIN_TOKEN) are not in the ledger.')
    .action((options: SettingsOptions & { json?: boolean }) => {
      const rows = withStore(options, (store) => store.list()).map(toRow);
      process.stdout.write(options.json ? `${toJson(rows, 2)}\n` : toTable(rows));
    });
}

function addRevoke(token: Command): void {
  withSettings(token.command('revoke'))
    .description('End a token: the next request that shows it is refused, on a running server too.')
    .argument('<id>', 'its number, as `dawatch token list` shows it', parseId)
    .addHelpText('after', '\nExample:\n  dawatch token revoke 3')
    .action((id: number, options: SettingsOptions) => {
      withStore(options, (store) => {
        const isRevoked = store.revoke(id, Date.now());
        const known = store.list().find((record) => record.id === id);
        if (!known)
          throw new CommandError(`there is no token ${id}: \`dawatch token list\` shows them`, ExitCode.usage);
        process.stderr.write(`token ${id}, "${escapeText(known.name)}", ${isRevoked ? 'is' : 'was already'} revoked\n`);
      });
    });
}

function withStore<T>(options: SettingsOptions, work: (store: CredentialStore) => T): T {
  const file = ledgerOf(options);
  const { database, close } = openBeside({ file, now: Date.now() });
  try {
    return work(new CredentialStore(database));
  } finally {
    close();
  }
}

type Row = {
  id: number;
  role: string;
  name: string;
  created_at: string;
  last_used_at: string | null;
  revoked_at: string | null;
};

function toRow(record: CredentialRecord): Row {
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

function parseId(text: string): number {
  if (!/^[1-9]\d{0,14}$/.test(text)) throw new InvalidArgumentError('a number from `dawatch token list`.');
  return Number(text);
}

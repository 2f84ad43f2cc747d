import { once } from 'node:events';
import { createReadStream } from 'node:fs';
import { createInterface } from 'node:readline';
import { type Command, InvalidArgumentError } from 'commander';
import { type ConnectOptions, requestAsAdmin, withAdmin } from '../cli/connect.ts';
import { CommandError, ExitCode } from '../cli/exit.ts';
import { collectTypes, parseCount, parseSince } from '../cli/input.ts';
import { table, toJson } from '../cli/output.ts';
import { ledgerOf, type SettingsOptions, withSettings } from '../cli/settings-file.ts';
import type { AuditEntry, AuditPage, AuditQuery, DawatchClient } from '../client/index.ts';
import { escapeText } from '../lib/text.ts';
import { type ChainCheck, checkChain, type StoredEntry } from './audit-chain.ts';
import { checkAudit } from './audit-store.ts';

const COLUMNS = [
  'at',
  'caller',
  'token',
  'address',
  'action',
  'result',
  'subject',
  'email',
  'detail',
];

type Conditions = {
  caller?: string;
  email?: string;
  action?: string[];
  subject?: string;
  since?: string;
  until?: string;
};
type ListOptions = ConnectOptions & Conditions & { limit: number; json?: boolean };

export function addAudit(program: Command): void {
  const audit = withAdmin(program.command('audit'))
    .description(
      'Show the audit of changes and user lookups, newest first. E-mail addresses are masked. Entries are chained by hashes.',
    )
    .option('--caller <name>', 'only entries of this caller: a token, or the address of a person')
    .option('--email <address>', 'only entries about the person with this e-mail address')
    .option(
      '--action <actions>',
      'only these actions, separated by commas or repeated',
      collectTypes,
    )
    .option('--subject <subject>', 'only entries about this subject')
    .option(
      '--since <time>',
      'only entries since this time: 2h (ago), or a time in ISO 8601',
      parseSince,
    )
    .option('--until <time>', 'only entries before this time', parseSince)
    .option('--limit <count>', 'maximum number of entries, 1 to 1000', parseCount, 20)
    .option('--json', 'print JSON, as returned by the HTTP interface')
    .addHelpText(
      'after',
      '\nExamples:\n  dawatch audit --limit 100\n  dawatch audit --action webhooks.create,webhooks.rotate --since 24h\n  dawatch audit --email ada@example.com',
    )
    .action(async (options: ListOptions) => {
      const page = await requestAsAdmin(options, (client) => readPages(client, options));
      const rows = page.entries.map(
        ({ at, caller, caller_person: person, credential_id, address, action, result, ...entry }) =>
          [
            ...[at, person ?? caller, String(credential_id ?? '-'), address ?? '-', action, result],
            ...[entry.subject ?? '-', entry.email_masked ?? '-', entry.detail ?? ''],
          ].map((text) => escapeText(text)),
      );
      process.stdout.write(options.json ? `${toJson(page)}\n` : table([COLUMNS, ...rows]));
    });
  addExport(audit);
  addVerify(audit);
}

/**
 * Reads pages until there are `limit` entries, because a page may be short. The server checks the
 * limit.
 */
async function readPages(client: DawatchClient, options: ListOptions): Promise<AuditPage> {
  const { caller, email, action, subject, since, until, limit } = options;
  const given = Object.entries({ caller, email, action, subject, since, until }).filter(
    ([, value]) => value !== undefined,
  );
  const query: AuditQuery = Object.fromEntries(given);
  const page = await client.audit({ ...query, limit });
  while (page.next_cursor !== null && page.entries.length < limit) {
    const next = await client.audit({
      ...query,
      limit: limit - page.entries.length,
      cursor: page.next_cursor,
    });
    page.entries.push(...next.entries);
    page.next_cursor = next.next_cursor;
  }
  return page;
}

function addExport(audit: Command): void {
  withAdmin(audit.command('export'))
    .description(
      'Print all entries, oldest first, one JSON object per line. The audit records the export.',
    )
    .addHelpText(
      'after',
      '\nExample:\n  dawatch audit export > audit.ndjson && dawatch audit verify --file audit.ndjson',
    )
    .action(async (_options: unknown, command: Command) => {
      await requestAsAdmin(command.optsWithGlobals<ConnectOptions>(), async (client) => {
        const { stdout } = process;
        for await (const entry of client.exportAudit())
          if (!stdout.write(`${toJson(entry)}\n`)) await once(stdout, 'drain');
      });
    });
}

type VerifyOptions = SettingsOptions & { file?: string; expectHead?: string; json?: boolean };

function addVerify(audit: Command): void {
  withSettings(audit.command('verify'))
    .description(
      'Check every hash of the audit in the ledger, also while the server runs, or in an export.',
    )
    .option('--file <file>', 'check this export instead of the ledger')
    .option(
      '--expect-head <hash>',
      'hash of an entry that must exist, such as an earlier head; detects removed entries',
      parseHash,
    )
    .option('--json', 'print JSON')
    .addHelpText(
      'after',
      '\nExits with 3 if the audit is not as it was written, and names the first wrong entry.\n\nExample:\n  dawatch audit --limit 1 --json | jq -r .head.hash >> /mnt/elsewhere/heads\n  dawatch audit verify --expect-head "$(tail -1 /mnt/elsewhere/heads)"',
    )
    .action(async (_options: unknown, command: Command) => {
      const { file, expectHead, json, ...settings } = command.optsWithGlobals<VerifyOptions>();
      const check = await (file === undefined
        ? checkAudit(ledgerOf(settings), expectHead)
        : checkChain(entriesOf(file), expectHead));
      process.stdout.write(json ? `${toJson(toReport(check))}\n` : textOf(check));
      if (check.kind === 'broken') process.exitCode = ExitCode.mismatch;
    });
}

function toReport(check: ChainCheck) {
  if (check.kind === 'broken') return { intact: false, ...withoutKind(check) };
  const { entries, pruned, head } = check;
  return { intact: true, entries, pruned, head };
}

function withoutKind<T extends { kind: string }>({ kind: _, ...rest }: T) {
  return rest;
}

function textOf(check: ChainCheck): string {
  if (check.kind === 'broken') {
    const place = check.seq === null ? '' : `entry ${check.seq}: `;
    return `broken: ${place}${check.reason} (${countText(check.entries)} before are intact)\n`;
  }
  const { entries, pruned, head } = check;
  const before = pruned === 0 ? '' : `, after ${pruned} that were deleted by \`audit.keep_days\``;
  return `intact: ${countText(entries)}${before}\nhead ${head}\n`;
}

function countText(entries: number): string {
  return entries === 1 ? '1 entry' : `${entries} entries`;
}

function parseHash(text: string): string {
  const hash = text.trim().toLowerCase();
  if (!/^[0-9a-f]{64}$/.test(hash))
    throw new InvalidArgumentError('Expected the 64 hexadecimal digits of a hash.');
  return hash;
}

/**
 * Reads an export line by line. Throws a CommandError for a file that cannot be read or is not an
 * export.
 */
async function* entriesOf(file: string): AsyncGenerator<StoredEntry, void> {
  const input = createReadStream(file);
  let number = 0;
  try {
    for await (const line of createInterface({ input, crlfDelay: Number.POSITIVE_INFINITY })) {
      number += 1;
      if (line !== '') yield toStoredEntry(line);
    }
  } catch (error) {
    const place = number === 0 ? file : `${file}, line ${number}`;
    throw new CommandError(
      `${place}: ${error instanceof Error ? error.message : error}`,
      ExitCode.usage,
    );
  } finally {
    input.destroy();
  }
}

function toStoredEntry(line: string): StoredEntry {
  const entry = JSON.parse(line) as AuditEntry;
  if (!Number.isSafeInteger(entry?.seq) || typeof entry.hash !== 'string')
    throw new Error('is not an entry of the audit');
  const { seq, caller, address, action, result, subject, detail, hash } = entry;
  return {
    seq,
    at: Date.parse(entry.at),
    caller,
    credentialId: entry.credential_id,
    address,
    action,
    result,
    subject,
    detail,
    emailHash: entry.email_hash,
    emailMasked: entry.email_masked,
    hash,
  };
}

import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Command, InvalidArgumentError } from 'commander';
import { z } from 'zod';
import { type ErasureTarget, NOT_COVERED } from '../../../domain/audit/personal-value.ts';
import { AuditTrail } from '../../../ledger/access/audit.ts';
import { LedgerError } from '../../../ledger/file/errors.ts';
import { openBeside } from '../../../ledger/file/open.ts';
import { Erasure, type ErasureResult } from '../../../ledger/maintenance/erasure.ts';
import { checkErased, type ErasureCheck, isErased } from '../../../ledger/maintenance/erasure-check.ts';
import { vacuumBeside, vacuumLedger } from '../../../ledger/maintenance/vacuum.ts';
import { commandActor } from '../../actor.ts';
import { CommandError, ExitCode } from '../../exit.ts';
import { ledgerOf, type SettingsOptions, withSettings } from '../../input/settings-file.ts';
import { toJson } from '../../output/json.ts';
import { plural } from '../../output/table.ts';

type Options = SettingsOptions & {
  email?: string;
  metadata?: { key: string; value: string };
  check?: boolean;
  json?: boolean;
};

/** Between two steps. A longer step is followed by a pause of its own duration. */
const MIN_PAUSE_MS = 5;

export function addErase(program: Command): void {
  withSettings(program.command('erase'))
    .description("Erase a person's data from the ledger, also while the server runs, and prove that it is gone.")
    .option('--email <address>', 'everything with this e-mail address; - reads it from standard input')
    .option('--metadata <key=value>', 'the metadata of submissions with this entry', parseEntry)
    .option('--check', 'only search every row and every byte of the ledger')
    .option('--json', 'print JSON')
    .addHelpText(
      'after',
      `
Removes the metadata of submissions; tracking continues. Replaces an e-mail address in responses of the upstream and of receivers, and
deletes it from the audit. Unused space is overwritten. If that does not suffice, the ledger is rewritten: beside a server up to 64 MiB, without one at any size.
Exits with 3 if the value is still found.

Not covered:
${NOT_COVERED.map((copy) => `  - ${copy}`).join('\n')}

Examples:
  dawatch erase --email ada@example.com
  dawatch erase --metadata customer=8831 --check`,
    )
    .action(async (options: Options) => {
      const target = await targetOf(options);
      const file = ledgerOf(options);
      const result = options.check ? undefined : await erase(file, target);
      let check = await checkErased(file, target);
      let isTooLarge = false;
      if (result && check.rows.length === 0 && !isErased(check)) {
        isTooLarge = !vacuum(file);
        check = await checkErased(file, target);
      }
      process.stdout.write(options.json ? `${toJson(toReport(check, result))}\n` : textOf(check, result));
      if (isErased(check)) return;
      process.exitCode = ExitCode.mismatch;
      if (isTooLarge)
        process.stderr.write(
          'dawatch: unused space still has it, and this ledger is too large to be rewritten beside a server: stop the server, run `dawatch vacuum`, and repeat with --check\n',
        );
      else if (result && check.rows.length === 0)
        process.stderr.write(
          'dawatch: the write-ahead log still has it, because something is reading it: repeat the command\n',
        );
    });
}

async function erase(file: string, target: ErasureTarget): Promise<ErasureResult> {
  const { database, close } = openBeside({ file, now: Date.now() });
  try {
    const erasure = new Erasure(database, new AuditTrail(database));
    const run = erasure.run({ target, actor: commandActor(), now: Date.now });
    for (;;) {
      const from = performance.now();
      const step = run.next();
      if (step.done) return step.value;
      // A step locks the ledger. A server that has to write tries again after growing pauses, which stop its event loop.
      await sleep(Math.max(MIN_PAUSE_MS, performance.now() - from));
    }
  } finally {
    close();
  }
}

/** Rewrites the ledger. Returns false if a server has the ledger open and it is too large to be rewritten meanwhile. */
function vacuum(file: string): boolean {
  try {
    vacuumLedger(file, Date.now());
    return true;
  } catch (error) {
    if (error instanceof LedgerError && error.problem === 'locked') return vacuumBeside(file, Date.now());
    throw error;
  }
}

async function targetOf({ email, metadata }: Options): Promise<ErasureTarget> {
  if ((email === undefined) === (metadata === undefined))
    throw new CommandError('give either --email or --metadata', ExitCode.usage);
  if (metadata) return { kind: 'metadata', ...metadata };
  const address = (email === '-' ? await text(process.stdin) : (email ?? '')).trim();
  if (!z.string().max(254).regex(z.regexes.html5Email).safeParse(address).success)
    throw new CommandError('--email is not an e-mail address', ExitCode.usage);
  return { kind: 'email', email: address };
}

function parseEntry(text: string): { key: string; value: string } {
  const at = text.indexOf('=');
  const [key, value] = [text.slice(0, at), text.slice(at + 1)];
  if (at < 1 || value === '') throw new InvalidArgumentError('Expected key=value, such as customer=8831.');
  return { key, value };
}

function toReport({ rows, files, otherFiles }: ErasureCheck, result: ErasureResult | undefined) {
  return {
    ...(result && { erased: result.erased, log_truncated: result.logTruncated }),
    found: !isErased({ rows, files, otherFiles }),
    rows,
    files,
    other_files: otherFiles,
    not_covered: NOT_COVERED,
  };
}

function textOf(check: ErasureCheck, result: ErasureResult | undefined): string {
  const erased = Object.entries(result?.erased ?? {}).map(([table, count]) => `${table} ${count}`);
  const lines = [
    ...(result ? [`erased: ${erased.join(', ')}`] : []),
    ...check.rows.map(({ table, column, rows }) => `found: ${plural(rows, 'row')} of ${table}.${column}`),
    ...check.files.map(({ file, bytes, occurrences }) => {
      const found = occurrences === 0 ? 'not found' : `found ${plural(occurrences, 'time')}`;
      return `${found} in ${plural(bytes, 'byte')} of ${file}`;
    }),
    ...check.otherFiles.map((file) => `not searched: ${file}`),
    ...NOT_COVERED.map((copy) => `not covered: ${copy}`),
  ];
  return lines.map((line) => `${line}\n`).join('');
}

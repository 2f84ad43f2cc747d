import { type Command, Option } from 'commander';
import type { Status } from '../../../domain/submission.ts';
import { appendBeside } from '../../../ledger/access/audit-check.ts';
import { type ExportedSubmission, LedgerExport } from '../../../ledger/submissions/export.ts';
import { commandActor } from '../../actor.ts';
import { CommandError, ExitCode } from '../../exit.ts';
import { ledgerOf, type SettingsOptions, withSettings } from '../../input/settings-file.ts';
import { parseSince } from '../../input/since.ts';
import { collectStatuses } from '../../input/submission-filter.ts';
import { EXPORT_FORMATS } from '../../output/export-formats.ts';
import { type ExportTarget, toFile, toStdout } from '../../output/export-target.ts';
import { createProgress } from '../../output/progress.ts';
import { plural } from '../../output/table.ts';

type Options = SettingsOptions & {
  since?: string;
  until?: string;
  status?: Status[];
  format: keyof typeof EXPORT_FORMATS;
  output?: string;
};

const WRITE_CHARS = 64 * 1024;
const NO_PROGRESS = { advance: () => undefined, stop: () => undefined };

export function addExport(program: Command): void {
  withSettings(program.command('export'))
    .description('Export a consistent snapshot of the submissions. The server can keep running.')
    .option(
      '--since <time>',
      'only submissions whose last change is at or after this time: 24h (ago), or a time in ISO 8601',
      parseSince,
    )
    .option('--until <time>', 'only submissions whose last change is before this time', parseSince)
    .option('--status <statuses>', 'only these statuses, separated by commas or repeated', collectStatuses)
    .addOption(
      new Option('--format <format>', 'ndjson: one submission with its history per line; csv: for spreadsheets')
        .choices(Object.keys(EXPORT_FORMATS))
        .default('ndjson'),
    )
    .option('--output <file>', 'write to this file, which must not exist (default: standard output)')
    .addHelpText(
      'after',
      `
The ledger cannot reuse space while an export runs, so do not keep an export waiting in a pager for hours.

Examples:
  dawatch export --since 24h | jq -r 'select(.status == "failed") | .submission_id'
  dawatch export --since 2026-01-01T00:00:00Z --until 2026-02-01T00:00:00Z --format csv --output january.csv`,
    )
    .action(async (options: Options) => {
      const { since, until } = timesOf(options);
      const ledger = ledgerOf(options);
      const source = new LedgerExport(ledger);
      try {
        const query = { since, until, statuses: options.status, now: Date.now() };
        if (
          !appendBeside(ledger, commandActor(), query.now, { action: 'submissions.export', detail: detailOf(options) })
        )
          process.stderr.write('dawatch: not recorded in the audit, because this ledger is not written\n');
        const target = options.output === undefined ? toStdout(process.stdout) : toFile(options.output);
        const progress =
          options.output !== undefined && process.stderr.isTTY
            ? createProgress(source.count(), 'exporting', process.stderr)
            : NO_PROGRESS;
        const onPosition = (position: number) => progress.advance(position);
        let unreadable = 0;
        const lineOptions = {
          isTerminal: options.output === undefined && process.stdout.isTTY === true,
          onUnreadable: () => {
            unreadable += 1;
          },
        };
        const { head, line } = EXPORT_FORMATS[options.format];
        const format = { head, line: (exported: ExportedSubmission) => line(exported, lineOptions) };
        const count = await copy(source.read(query), format, target, onPosition).finally(() => progress.stop());
        if (unreadable > 0)
          process.stderr.write(
            `dawatch: ${plural(unreadable, 'submission')} cannot be read completely: see their \`unreadable\`\n`,
          );
        if (options.output !== undefined) process.stdout.write(`${plural(count, 'submission')} → ${options.output}\n`);
      } finally {
        source.close();
      }
    });
}

function detailOf({ since, until, status }: Options): string | null {
  const filters = [since && `since ${since}`, until && `until ${until}`, status?.join(' ')];
  return filters.filter(Boolean).join(', ') || null;
}

function timesOf({ since, until }: Options): { since: number; until: number } {
  const times = {
    since: since === undefined ? Number.MIN_SAFE_INTEGER : Date.parse(since),
    until: until === undefined ? Number.MAX_SAFE_INTEGER : Date.parse(until),
  };
  if (times.since >= times.until)
    throw new CommandError(`--since ${since} is not before --until ${until}`, ExitCode.usage);
  return times;
}

/** Writes all submissions and returns their number. Abandons the target on an error. */
async function copy(
  source: ReturnType<LedgerExport['read']>,
  format: { head: string; line: (exported: ExportedSubmission) => string },
  target: ExportTarget,
  onPosition: (position: number) => void,
): Promise<number> {
  let count = 0;
  let text = format.head;
  try {
    for (const exported of source) {
      count += 1;
      text += format.line(exported);
      if (text.length < WRITE_CHARS) continue;
      await target.write(text);
      text = '';
      onPosition(exported.position);
    }
    if (text !== '') await target.write(text);
    target.end();
    return count;
  } catch (error) {
    target.abandon();
    throw error;
  }
}

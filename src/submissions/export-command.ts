import { type Command, Option } from 'commander';
import { appendBeside } from '../access/audit-check.ts';
import { commandActor } from '../cli/actor.ts';
import { CommandError, ExitCode } from '../cli/exit.ts';
import { type ExportTarget, toFile, toStdout } from '../cli/export-target.ts';
import { toJson } from '../cli/json.ts';
import { createProgress } from '../cli/progress.ts';
import { ledgerOf, type SettingsOptions, withSettings } from '../cli/settings-file.ts';
import { parseSince } from '../cli/since.ts';
import { plural } from '../cli/table.ts';
import { toCsvLine } from '../lib/csv.ts';
import { iso } from '../lib/timestamps.ts';
import { type Conditions, withConditions } from './cli-submission-filter.ts';
import { type ExportedSubmission, LedgerExport } from './export.ts';
import { type SubmissionFilter, unsearchable } from './search.ts';
import { toHistoryBody, toSubmissionBody } from './submission-body.ts';

type LineOptions = {
  /** Whether the output is a terminal, so that control characters must be escaped. */
  isTerminal: boolean;
};
export type ExportFormat = {
  head: string;
  line: (exported: ExportedSubmission, options: LineOptions) => string;
};

const COLUMNS = [
  'submission_id',
  'upstream',
  'status',
  'upstream_state',
  'error',
  'tracked_at',
  'finalized_at',
  'changed_at',
  'deadline_at',
  'polls',
  'block_number',
  'block_hash',
  'tx_hash',
  'metadata',
  'data',
  'last_polled_at',
  'not_found_since',
  'unknown_grace_s',
  'stuck_after_s',
  'callback_url',
] as const;

/**
 * ndjson: the response of `GET /v1/submissions/{id}` without `next_poll_at`. csv: one line per
 * submission, for spreadsheets.
 */
export const EXPORT_FORMATS: Record<'ndjson' | 'csv', ExportFormat> = {
  ndjson: {
    head: '',
    line({ submission, deadlineAt, history: entries }) {
      const { callbackUrl } = submission;
      const body = {
        ...toSubmissionBody(submission, { deadlineAt, callbackUrl }),
        history: entries.map(toHistoryBody),
      };
      return `${toJson(body)}\n`;
    },
  },
  csv: { head: toCsvLine(COLUMNS), line: toRow },
};

function toRow(
  { submission, deadlineAt, changedAt }: ExportedSubmission,
  { isTerminal }: LineOptions,
): string {
  const { callbackUrl } = submission;
  const { data, metadata, ...body } = toSubmissionBody(submission, { deadlineAt, callbackUrl });
  const cells: Record<(typeof COLUMNS)[number], string | number | null> = {
    ...body,
    changed_at: iso(changedAt),
    block_number: plain(data?.block_number),
    block_hash: plain(data?.block_hash),
    tx_hash: plain(data?.tx_hash),
    metadata: metadata && JSON.stringify(metadata),
    data: data && JSON.stringify(data),
  };
  return toCsvLine(
    COLUMNS.map((name) => cells[name]),
    { isTerminal },
  );
}

function plain(value: unknown): string | number | null {
  return typeof value === 'string' || typeof value === 'number' ? value : null;
}

type Options = SettingsOptions &
  Conditions & {
    since?: string;
    until?: string;
    trackedSince?: string;
    trackedUntil?: string;
    format: keyof typeof EXPORT_FORMATS;
    output?: string;
  };

const WRITE_CHARS = 64 * 1024;
const NO_PROGRESS = { advance: () => undefined, stop: () => undefined };

export function addExport(program: Command): void {
  withSettings(withConditions(program.command('export')))
    .description(
      'Export a consistent snapshot of the submissions that meet all conditions. The server can keep running.',
    )
    .option(
      '--since <time>',
      'only submissions whose last change is at or after this time: 24h (ago), or a time in ISO 8601',
      parseSince,
    )
    .option('--until <time>', 'only submissions whose last change is before this time', parseSince)
    .option('--tracked-since <time>', 'only submissions tracked at or after this time', parseSince)
    .option('--tracked-until <time>', 'only submissions tracked before this time', parseSince)
    .addOption(
      new Option(
        '--format <format>',
        'ndjson: one submission with its history per line; csv: for spreadsheets',
      )
        .choices(Object.keys(EXPORT_FORMATS))
        .default('ndjson'),
    )
    .option(
      '--output <file>',
      'write to this file, which must not exist (default: standard output)',
    )
    .addHelpText(
      'after',
      `
The ledger cannot reuse space while an export runs, so do not keep an export waiting in a pager for hours.

Examples:
  dawatch export --since 24h | jq -r 'select(.status == "failed") | .submission_id'
  dawatch export --metadata shop=berlin --ended-since 7d --format csv
  dawatch export --since 2026-01-01T00:00:00Z --until 2026-02-01T00:00:00Z --format csv --output january.csv`,
    )
    .action(async (options: Options) => {
      const changed = rangeOf(options, 'since', 'until');
      const filter = filterOf(options);
      const ledger = ledgerOf(options);
      const source = new LedgerExport(ledger);
      try {
        const { upstream } = filter;
        if (upstream !== undefined && !source.hasUpstream(upstream))
          throw new CommandError(
            `no upstream is named ${JSON.stringify(upstream)}`,
            ExitCode.usage,
          );
        const query = { since: FIRST, until: LAST, ...changed, filter, now: Date.now() };
        if (
          !appendBeside(ledger, commandActor(), query.now, {
            action: 'submissions.export',
            detail: detailOf(options),
          })
        )
          process.stderr.write(
            'dawatch: not recorded in the audit, because this ledger is not written\n',
          );
        const target =
          options.output === undefined ? toStdout(process.stdout) : toFile(options.output);
        const progress =
          options.output !== undefined && process.stderr.isTTY
            ? createProgress(source.count(), 'exporting', process.stderr)
            : NO_PROGRESS;
        const onPosition = (position: number) => progress.advance(position);
        const isTerminal = options.output === undefined && process.stdout.isTTY === true;
        const { head, line } = EXPORT_FORMATS[options.format];
        const format = {
          head,
          line: (exported: ExportedSubmission) => line(exported, { isTerminal }),
        };
        const count = await copy(source.read(query), format, target, onPosition).finally(() =>
          progress.stop(),
        );
        if (options.output !== undefined)
          process.stdout.write(`${plural(count, 'submission')} → ${options.output}\n`);
      } finally {
        source.close();
      }
    });
}

const [FIRST, LAST] = [Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER];

/**
 * Describes the conditions for the audit, without values of the metadata, which may identify a
 * person.
 */
function detailOf(options: Options): string | null {
  const { status, upstream, metadata, prefix, search } = options;
  const times = (
    ['since', 'until', 'trackedSince', 'trackedUntil', 'endedSince', 'endedUntil'] as const
  ).map((name) => options[name] && `${wordsOf(name)} ${options[name]}`);
  const names = metadata && `metadata ${Object.keys(metadata).join(' ')}`;
  const filters = [
    ...times,
    status?.join(' '),
    upstream && `upstream ${upstream}`,
    names,
    prefix && `prefix ${prefix}`,
    search && 'a text',
  ];
  return filters.filter(Boolean).join(', ') || null;
}

function filterOf(options: Options): SubmissionFilter {
  const { status: statuses, upstream, metadata, prefix, search } = options;
  const tracked = rangeOf(options, 'trackedSince', 'trackedUntil');
  const ended = rangeOf(options, 'endedSince', 'endedUntil');
  const reasons = Object.entries(metadata ?? {}).map(([name, value]) => unsearchable(name, value));
  const reason = reasons.find((one) => one !== undefined);
  if (reason !== undefined) throw new CommandError(`--metadata ${reason}`, ExitCode.usage);
  return { statuses, upstream, metadata, prefix, search, ...tracked, ...ended };
}

type TimeOption = 'since' | 'until' | 'trackedSince' | 'trackedUntil' | 'endedSince' | 'endedUntil';

/** Returns the start and end of a time range in epoch milliseconds; absent options are omitted. */
function rangeOf<Since extends TimeOption, Until extends TimeOption>(
  options: Options,
  sinceName: Since,
  untilName: Until,
): { [Name in Since | Until]?: number } {
  const [since, until] = [options[sinceName], options[untilName]];
  const range = {
    ...(since !== undefined && { [sinceName]: Date.parse(since) }),
    ...(until !== undefined && { [untilName]: Date.parse(until) }),
  } as { [Name in Since | Until]?: number };
  if (since !== undefined && until !== undefined && Date.parse(since) >= Date.parse(until))
    throw new CommandError(
      `--${wordsOf(sinceName)} ${since} is not before --${wordsOf(untilName)} ${until}`,
      ExitCode.usage,
    );
  return range;
}

/** Returns "tracked-since" for trackedSince. */
function wordsOf(name: TimeOption): string {
  return name.replace(/[A-Z]/, (letter) => `-${letter.toLowerCase()}`);
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

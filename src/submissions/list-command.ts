import { type Command, InvalidArgumentError, Option } from 'commander';
import { type ConnectOptions, connect, withServer } from '../cli/connect.ts';
import { pairIn, parseCount, parseSince } from '../cli/input.ts';
import { coloured, table, toJson } from '../cli/output.ts';
import type {
  DawatchClient,
  OptionChanges,
  Submission,
  SubmissionFilter,
  SubmissionWithHistory,
} from '../client/index.ts';
import { escapeText } from '../lib/text.ts';
import { readIds } from './cli-submissions.ts';
import { CHAIN_VERDICTS, type ChainVerdict, STATUSES, type Status } from './submission.ts';
import { requests } from './wait-command.ts';

const MAX_PAGE = 1_000;
const ALL = 'all';

type FilterOptions = {
  since?: string;
  until?: string;
  status?: Status[];
  chain?: ChainVerdict[];
  upstream?: string;
  metadata?: Record<string, string>;
  endedSince?: string;
  endedUntil?: string;
  prefix?: string;
};
type Options = ConnectOptions & FilterOptions & { limit: number; count?: boolean; json?: boolean };

export function addList(program: Command): void {
  withServer(withFilter(program.command('list')))
    .description('List the submissions that meet all conditions, newest first, or count them.')
    .option('--limit <count>', `maximum number of submissions, or ${ALL}`, parseLimit, 20)
    .option('--count', 'print only the number of submissions that meet the conditions')
    .option('--json', 'print one JSON line per submission; with --count one object')
    .addHelpText(
      'after',
      `
The newest is the one that was accepted last. With --since or --until the list is ordered by the time of tracking, with
--ended-since or --ended-until by the time of the final status, and with --prefix by id.

Examples:
  dawatch list --status failed,expired --since 24h
  dawatch list --metadata order=4711 --metadata shop=berlin --json
  dawatch list --count --metadata shop=berlin --ended-since 7d
  dawatch list --limit all --json | dawatch track --server https://new.example --file -`,
    )
    .action(async (options: Options) => {
      const client = connect(options);
      const filter = toFilter(options);
      if (options.count) {
        const count = await client.count(filter);
        process.stdout.write(`${options.json ? toJson({ count }) : count}\n`);
        return;
      }
      for await (const page of readPages(client, filter, options.limit))
        process.stdout.write(options.json ? submissionLines(page) : submissionTable(page));
    });
}

export function submissionTable(submissions: readonly Submission[]): string {
  const rows = submissions.map(({ status, submission_id, tracked_at, polls }) => [
    coloured(status),
    escapeText(submission_id),
    escapeText(`tracked ${tracked_at}`),
    requests(polls),
  ]);
  return table(rows);
}

export function submissionLines(submissions: readonly Submission[]): string {
  return submissions.map((submission) => `${toJson(submission)}\n`).join('');
}

/** Yields pages until there are `limit` submissions, because a page may be short. */
async function* readPages(client: DawatchClient, filter: SubmissionFilter, limit: number) {
  let left = limit;
  let cursor: string | undefined;
  do {
    const query = { ...filter, limit: Math.min(left, MAX_PAGE), cursor };
    const { submissions, next_cursor } = await client.list(query);
    yield submissions;
    left -= submissions.length;
    cursor = next_cursor ?? undefined;
  } while (cursor !== undefined && left > 0);
}

function parseLimit(text: string): number {
  if (text === ALL) return Number.POSITIVE_INFINITY;
  const limit = parseCount(text);
  if (limit === 0) throw new InvalidArgumentError('Expected at least 1.');
  return limit;
}

function withFilter(command: Command): Command {
  return command
    .option(
      '--since <time>',
      'only submissions tracked since: 2h (ago), or a time in ISO 8601',
      parseSince,
    )
    .option('--until <time>', 'only submissions tracked before this time', parseSince)
    .addOption(
      new Option('--status <statuses>', 'only these statuses, separated by commas or repeated')
        .choices(STATUSES)
        .argParser(collectFrom(STATUSES)),
    )
    .addOption(
      new Option('--chain <verdicts>', 'only these verdicts, separated by commas or repeated')
        .choices(CHAIN_VERDICTS)
        .argParser(collectFrom(CHAIN_VERDICTS)),
    )
    .option('--upstream <name>', 'only submissions of this upstream')
    .option(
      '--metadata <name=value>',
      'only submissions with this metadata; repeated: with all of them',
      collectTexts,
    )
    .option(
      '--ended-since <time>',
      'only submissions that became final since this time',
      parseSince,
    )
    .option(
      '--ended-until <time>',
      'only submissions that became final before this time',
      parseSince,
    )
    .option('--prefix <prefix>', 'only ids with this prefix; UUIDs in any case');
}

function toFilter(options: FilterOptions): SubmissionFilter {
  const { status, chain, upstream, metadata, since, until, endedSince, endedUntil } = options;
  return {
    ...{ status, chain, upstream, metadata, prefix: options.prefix },
    ...{
      tracked_since: since,
      tracked_until: until,
      ended_since: endedSince,
      ended_until: endedUntil,
    },
  };
}

function collectFrom<Value extends string>(choices: readonly Value[]) {
  return (text: string, before: Value[] = []): Value[] => {
    const names = text.split(',').map((name) => name.trim());
    for (const name of names)
      if (!(choices as readonly string[]).includes(name))
        throw new InvalidArgumentError(
          `${JSON.stringify(name)} is unknown. Expected one of ${choices.join(', ')}.`,
        );
    return [...before, ...(names as Value[])];
  };
}

/** Collects repeated `name=value` options. The server compares values as text. */
function collectTexts(text: string, before: Record<string, string> = {}): Record<string, string> {
  return Object.fromEntries([...Object.entries(before), pairIn(text, before)]);
}

const MAX_CHARS = 6_000;
/** Maximum length of a shown value before or after a change. */
const MAX_CHANGE_CHARS = 300;

type StatusOptions = ConnectOptions & { file?: string; json?: boolean };

export function addStatus(program: Command): void {
  withServer(program.command('status'))
    .description('Show submissions with their histories.')
    .argument(
      '[ids...]',
      'submission ids; without ids, they are read from --file or stdin, one per line',
    )
    .option('--file <file>', 'read ids from a file, one per line; - reads stdin')
    .option('--json', 'print one JSON line per submission, as returned by the HTTP interface')
    .addHelpText(
      'after',
      '\nExamples:\n  dawatch status 9f1c2f6e-8a44-4a46-9a0d-2f6f6a9f0c11\n  dawatch status --file ids.txt --json',
    )
    .action(async (args: string[], options: StatusOptions) => {
      const ids = await readIds(args, options.file);
      const client = connect(options);
      for (const id of ids) {
        const submission = await client.get(id);
        process.stdout.write(`${options.json ? toJson(submission) : paragraph(submission)}\n`);
      }
    });
}

function paragraph(submission: SubmissionWithHistory): string {
  const { data, error } = submission;
  const facts: [string, unknown][] = [
    ['status', submission.status],
    ['upstream state', submission.upstream_state],
    ['error', error],
    ['block', data?.block_number],
    ['block hash', data?.block_hash],
    ['chain', chainText(submission)],
    ['proof', proofText(submission)],
    ['explorer', submission.explorer_url],
    ['tracked', submission.tracked_at],
    ['became final', finalityText(submission)],
    ['finalized', submission.finalized_at],
    ['deadline', submission.deadline_at],
    ['requests', submission.polls],
    ['last poll', submission.last_polled_at ?? 'none yet'],
    ['next poll', submission.next_poll_at],
    ['not found since', submission.not_found_since],
    ['grace (s)', submission.unknown_grace_s],
    ['stuck after (s)', submission.stuck_after_s],
    ['callback', submission.callback_url],
    ['data hash', submission.data_hash],
    ['metadata', submission.metadata && JSON.stringify(submission.metadata)],
  ];
  const lines = facts.filter(([, value]) => value !== null && value !== undefined);
  const history = submission.history.map((entry) => {
    const state = entry.upstream_state === null ? '' : `  (upstream: ${entry.upstream_state})`;
    const chain = entry.chain === null ? '' : `  chain: ${chainText(entry)}`;
    const why = `${state}${entry.error === null ? '' : `  ${entry.error}`}${chain}`;
    return `    ${escapeText(entry.at)}  ${coloured(entry.status)}${escapeText(why, MAX_CHARS)}${changesText(entry.changes)}`;
  });
  const head = lines.map(([name, value]) => {
    const text = escapeText(String(value), MAX_CHARS);
    return `  ${name.padEnd(15)} ${name === 'status' ? coloured(text) : text}`;
  });
  return [escapeText(submission.submission_id), ...head, '  history', ...history].join('\n');
}

function chainText({ chain, chain_reason }: Pick<Submission, 'chain' | 'chain_reason'>) {
  return chain && [chain, chain_reason].filter(Boolean).join(': ');
}

function proofText({ data, data_root }: Submission): string | null {
  return data_root && `the data are in block ${data?.block_number}, data root ${data_root}`;
}

/** Returns when a submission became final, after how long, and how late that was known; or null. */
function finalityText(submission: Submission): string | null {
  const { tracked_at, finalized_at, finality_at, finality_source } = submission;
  // A server of an earlier version sends no time of finality.
  if (!finalized_at || !finality_at) return null;
  const secondsTo = (from: string, to: string) =>
    `${((Date.parse(to) - Date.parse(from)) / 1_000).toFixed(1)} s`;
  const after =
    finality_at < tracked_at ? '' : `, ${secondsTo(tracked_at, finality_at)} after tracking began`;
  const isEstimate = finality_source === 'estimate';
  const [about, source] = isEstimate ? ['about ', 'estimate'] : ['', 'announced by the chain'];
  return `${about}${finality_at}${after}, known ${about}${secondsTo(finality_at, finalized_at)} later (${source})`;
}

function changesText(changes: OptionChanges = {}): string {
  const texts = Object.entries(changes).map(
    ([name, { from, to }]) => `${name}: ${changeValue(from)} → ${changeValue(to)}`,
  );
  return texts.map((text) => `  ${text}`).join('');
}

function changeValue(value: unknown): string {
  if (value === null) return 'none';
  return escapeText(typeof value === 'string' ? value : JSON.stringify(value), MAX_CHANGE_CHARS);
}

import { type Command, InvalidArgumentError, Option } from 'commander';
import { type ConnectOptions, connect, withServer } from '../cli/connect.ts';
import { parseCount, parseSince } from '../cli/input.ts';
import { coloured, table, toJson, withWaitIndicator } from '../cli/output.ts';
import type { DawatchClient, Submission, SubmissionFilter } from '../client/index.ts';
import { escapeText } from '../lib/text.ts';
import { requests } from './await-final.ts';
import { MAX_SEARCH_CHARS } from './search.ts';
import { STATUSES, type Status } from './submission.ts';

/** The largest page of the server. */
const MAX_PAGE = 1_000;
const ALL = 'all';

type FilterOptions = {
  since?: string;
  until?: string;
  status?: Status[];
  upstream?: string;
  metadata?: Record<string, string>;
  endedSince?: string;
  endedUntil?: string;
  prefix?: string;
  search?: string;
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
  dawatch list --search 4711 --since 7d
  dawatch list --count --metadata shop=berlin --ended-since 7d
  dawatch list --limit all --json | dawatch track --server https://new.example --file -`,
    )
    .action(async (options: Options) => {
      const client = connect(options);
      const filter = toFilter(options);
      if (options.count) {
        const count = await withWaitIndicator('the count', client.count(filter));
        process.stdout.write(`${options.json ? toJson({ count }) : count}\n`);
        return;
      }
      for await (const page of readPages(client, filter, options.limit))
        process.stdout.write(options.json ? submissionLines(page) : submissionTable(page));
    });
}

/** Returns one line per submission. */
export function submissionTable(submissions: readonly Submission[]): string {
  const rows = submissions.map(({ status, submission_id, tracked_at, polls }) => [
    coloured(status),
    escapeText(submission_id),
    escapeText(`tracked ${tracked_at}`),
    requests(polls),
  ]);
  return table(rows);
}

/** Returns one JSON line per submission. */
export function submissionLines(submissions: readonly Submission[]): string {
  return submissions.map((submission) => `${toJson(submission)}\n`).join('');
}

/** Yields pages until there are `limit` submissions, because a page may be short. */
async function* readPages(client: DawatchClient, filter: SubmissionFilter, limit: number) {
  let left = limit;
  let cursor: string | undefined;
  do {
    const query = { ...filter, limit: Math.min(left, MAX_PAGE), cursor };
    const { submissions, next_cursor } = await withWaitIndicator('the list', client.list(query));
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

/** Adds the options that select submissions. */
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
        .argParser(collectStatuses),
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
    .option('--prefix <prefix>', 'only ids with this prefix; UUIDs in any case')
    .option(
      '--search <text>',
      'only those with this text in the id or in a value of the metadata, in any case',
      parseSearch,
    );
}

function toFilter(options: FilterOptions): SubmissionFilter {
  const { status, upstream, metadata, since, until, endedSince, endedUntil, prefix, search } =
    options;
  return {
    ...{ status, upstream, metadata, prefix, search },
    ...{
      tracked_since: since,
      tracked_until: until,
      ended_since: endedSince,
      ended_until: endedUntil,
    },
  };
}

function collectStatuses(text: string, before: Status[] = []): Status[] {
  const names = text.split(',').map((name) => name.trim());
  for (const name of names)
    if (!(STATUSES as readonly string[]).includes(name))
      throw new InvalidArgumentError(
        `${JSON.stringify(name)} is not a status. Expected one of ${STATUSES.join(', ')}.`,
      );
  return [...before, ...(names as Status[])];
}

function parseSearch(text: string): string {
  if (text === '' || text.length > MAX_SEARCH_CHARS)
    throw new InvalidArgumentError(`Expected 1 to ${MAX_SEARCH_CHARS} characters.`);
  return text;
}

/** Collects repeated `name=value` options. The server compares values as text. */
function collectTexts(text: string, before: Record<string, string> = {}): Record<string, string> {
  const [name, value] = [
    text.slice(0, Math.max(0, text.indexOf('='))),
    text.slice(text.indexOf('=') + 1),
  ];
  if (name === '') throw new InvalidArgumentError('Expected name=value, like order=4711.');
  if (Object.hasOwn(before, name))
    throw new InvalidArgumentError(`${JSON.stringify(name)} is given twice.`);
  return Object.fromEntries([...Object.entries(before), [name, value]]);
}

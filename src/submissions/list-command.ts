import { type Command, InvalidArgumentError } from 'commander';
import { coloured } from '../cli/colors.ts';
import { type ConnectOptions, connect, withServer } from '../cli/connect.ts';
import { toJson } from '../cli/json.ts';
import { parseCount } from '../cli/numbers.ts';
import { table } from '../cli/table.ts';
import type {
  DawatchClient,
  Submission,
  SubmissionFilter,
  SubmissionPage,
} from '../client/index.ts';
import { escapeText } from '../lib/text.ts';
import { requests } from './await-final.ts';
import { type FilterOptions, toFilter, withFilter } from './cli-submission-filter.ts';
import { withWaitIndicator } from './wait-indicator.ts';

/** The largest page of the server. */
const MAX_PAGE = 1_000;

export function addList(program: Command): void {
  withServer(withFilter(program.command('list')))
    .description('List the submissions that meet all conditions, newest first.')
    .option('--limit <count>', 'maximum number of submissions, at least 1', parseLimit, 20)
    .option(
      '--cursor <cursor>',
      'continue after a page with the same conditions: its next_cursor in JSON',
    )
    .option('--json', 'print JSON, as returned by the HTTP interface')
    .addHelpText(
      'after',
      `
The newest is the one that was accepted last. With --since or --until the list is ordered by the time of tracking, with
--ended-since or --ended-until by the time of the final status, and with --prefix by id.

Examples:
  dawatch list --status failed,expired --since 24h
  dawatch list --metadata order=4711 --metadata shop=berlin --json
  dawatch list --search 4711 --since 7d`,
    )
    .action(
      async (
        options: ConnectOptions &
          FilterOptions & { limit: number; cursor?: string; json?: boolean },
      ) => {
        const { limit, cursor } = options;
        const page = await withWaitIndicator(
          'the list',
          readPages(connect(options), { filter: toFilter(options), limit, cursor }),
        );
        process.stdout.write(
          options.json ? `${toJson(page)}\n` : submissionTable(page.submissions),
        );
      },
    );
}

export function addCount(program: Command): void {
  withServer(withFilter(program.command('count')))
    .description('Count the submissions that meet all conditions.')
    .option('--json', 'print JSON')
    .addHelpText(
      'after',
      '\nExamples:\n  dawatch count --status failed,expired --since 24h\n  dawatch count --metadata shop=berlin --ended-since 7d',
    )
    .action(async (options: ConnectOptions & FilterOptions & { json?: boolean }) => {
      const count = await withWaitIndicator('the count', connect(options).count(toFilter(options)));
      process.stdout.write(`${options.json ? toJson({ count }) : count}\n`);
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

/** Reads pages until there are `limit` submissions, because a page may be short. */
async function readPages(
  client: DawatchClient,
  {
    filter,
    limit,
    cursor: start,
  }: { filter: SubmissionFilter; limit: number; cursor: string | undefined },
): Promise<SubmissionPage> {
  const submissions: Submission[] = [];
  for (let cursor = start; ; ) {
    const rest = Math.min(limit - submissions.length, MAX_PAGE);
    const page = await client.list({ ...filter, limit: rest, cursor });
    submissions.push(...page.submissions);
    const { next_cursor, examined_to } = page;
    if (next_cursor === null || submissions.length >= limit)
      return { submissions, next_cursor, examined_to };
    cursor = next_cursor;
  }
}

function parseLimit(text: string): number {
  const limit = parseCount(text);
  if (limit === 0) throw new InvalidArgumentError('Expected at least 1.');
  return limit;
}

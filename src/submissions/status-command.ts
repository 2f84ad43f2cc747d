import { type Command, Option } from 'commander';
import { coloured } from '../cli/colors.ts';
import { type ConnectOptions, connect, withServer } from '../cli/connect.ts';
import { toJson } from '../cli/json.ts';
import { parseCount } from '../cli/numbers.ts';
import type { OptionChanges, SubmissionStatus, SubmissionWithHistory } from '../client/index.ts';
import { escapeText } from '../lib/text.ts';
import { submissionTable } from './list-command.ts';
import { STATUSES } from './submission.ts';

const MAX_CHARS = 6_000;
/** Maximum length of a shown value before or after a change. */
const MAX_CHANGE_CHARS = 300;

type Options = ConnectOptions & { status?: SubmissionStatus; limit: number; json?: boolean };

export function addStatus(program: Command): void {
  withServer(program.command('status'))
    .description('Show submissions by id with their history, or list the newest.')
    .argument('[ids...]', 'submission ids; without ids, the newest submissions are listed')
    .addOption(new Option('--status <status>', 'list only this status').choices(STATUSES))
    .option('--limit <count>', 'maximum number of listed submissions, 1 to 1000', parseCount, 20)
    .option('--json', 'print JSON, as returned by the HTTP interface')
    .addHelpText(
      'after',
      '\nExamples:\n  dawatch status 9f1c2f6e-8a44-4a46-9a0d-2f6f6a9f0c11\n  dawatch status --status failing --limit 100 --json',
    )
    .action(async (ids: string[], options: Options) => {
      const client = connect(options);
      if (ids.length === 0) {
        const page = await client.list({ status: options.status, limit: options.limit });
        if (options.json) process.stdout.write(`${toJson(page)}\n`);
        else process.stdout.write(submissionTable(page.submissions));
        return;
      }
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
    ['tracked', submission.tracked_at],
    ['finalized', submission.finalized_at],
    ['deadline', submission.deadline_at],
    ['requests', submission.polls],
    ['last poll', submission.last_polled_at ?? 'none yet'],
    ['next poll', submission.next_poll_at],
    ['not found since', submission.not_found_since],
    ['grace (s)', submission.unknown_grace_s],
    ['stuck after (s)', submission.stuck_after_s],
    ['callback', submission.callback_url],
    ['metadata', submission.metadata && JSON.stringify(submission.metadata)],
  ];
  const shown = facts.filter(([, value]) => value !== null && value !== undefined);
  const history = submission.history.map((entry) => {
    const state = entry.upstream_state === null ? '' : `  (upstream: ${entry.upstream_state})`;
    const why = `${state}${entry.error === null ? '' : `  ${entry.error}`}`;
    return `    ${escapeText(entry.at)}  ${coloured(entry.status)}${escapeText(why, MAX_CHARS)}${changesText(entry.changes)}`;
  });
  const head = shown.map(([name, value]) => {
    const text = escapeText(String(value), MAX_CHARS);
    return `  ${name.padEnd(15)} ${name === 'status' ? coloured(text) : text}`;
  });
  return [escapeText(submission.submission_id), ...head, '  history', ...history].join('\n');
}

/** Returns the options before and after a change; empty if none has changed. */
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

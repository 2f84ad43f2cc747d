import { type Command, Option } from 'commander';
import type { Submission, SubmissionWithHistory } from '../client/client.ts';
import { printable } from '../monitor/printable.ts';
import { STATUSES } from '../monitor/submission.ts';
import { requests } from './await-final.ts';
import { type ConnectOptions, connect, withServer } from './connect.ts';

type Options = ConnectOptions & { status?: string; limit: string; json?: boolean };

export function addStatus(program: Command): void {
  withServer(program.command('status'))
    .description('Show submissions: one with its history, or the newest ones as a list.')
    .argument('[ids...]', 'submission ids; without any the newest are listed')
    .addOption(new Option('--status <status>', 'list only those').choices(STATUSES))
    .option('--limit <count>', 'list at most so many, 1 to 1000', '20')
    .option('--json', 'print JSON, as the HTTP interface answers')
    .addHelpText(
      'after',
      '\nExamples:\n  dawatch status 9f1c2f6e-8a44-4a46-9a0d-2f6f6a9f0c11\n  dawatch status --status failing --limit 100 --json',
    )
    .action(async (ids: string[], options: Options) => {
      const client = connect(options);
      if (ids.length === 0) {
        const page = await client.list({ status: options.status, limit: Number(options.limit) });
        if (options.json) process.stdout.write(`${JSON.stringify(page)}\n`);
        else for (const submission of page.submissions) process.stdout.write(`${line(submission)}\n`);
        return;
      }
      for (const id of ids) {
        const submission = await client.get(id);
        process.stdout.write(`${options.json ? JSON.stringify(submission) : paragraph(submission)}\n`);
      }
    });
}

function line(submission: Submission): string {
  return `${submission.status.padEnd(9)}  ${submission.submission_id}  tracked ${submission.tracked_at}  ${requests(submission.polls)}`;
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
    ['metadata', submission.metadata && JSON.stringify(submission.metadata)],
  ];
  const shown = facts.filter(([, value]) => value !== null && value !== undefined);
  const history = submission.history.map((entry) => {
    const state = entry.upstream_state === null ? '' : `  (upstream: ${entry.upstream_state})`;
    return `  ${entry.at}  ${entry.status}${state}${entry.error === null ? '' : `  ${entry.error}`}`;
  });
  const head = shown.map(([name, value]) => `  ${name.padEnd(15)} ${value}`);
  return [submission.submission_id, ...head, '  history', ...history.map((row) => `  ${row}`)]
    .map((row) => printable(row, 6_000))
    .join('\n');
}

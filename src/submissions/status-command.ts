import type { Command } from 'commander';
import { type ConnectOptions, connect, withServer } from '../cli/connect.ts';
import { ExitCode } from '../cli/exit.ts';
import { coloured, plural, toJson } from '../cli/output.ts';
import type { DawatchClient, OptionChanges, SubmissionWithHistory } from '../client/index.ts';
import { escapeText } from '../lib/text.ts';
import { readIds } from './cli-ids.ts';
import { submissionLines, submissionTable } from './list-command.ts';

const MAX_CHARS = 6_000;
/** Maximum length of a shown value before or after a change. */
const MAX_CHANGE_CHARS = 300;
/** Maximum number of ids of one request. */
const MAX_IDS = 1_000;

type Options = ConnectOptions & { file?: string; short?: boolean; json?: boolean };

export function addStatus(program: Command): void {
  withServer(program.command('status'))
    .description('Show submissions with their histories.')
    .argument(
      '[ids...]',
      'submission ids; without ids, they are read from --file or stdin, one per line',
    )
    .option('--file <file>', 'read ids from a file, one per line; - reads stdin')
    .option(
      '--short',
      'one line per submission, without its history; many ids in one request; exits with 2 if one is not tracked',
    )
    .option('--json', 'print one JSON line per submission, as returned by the HTTP interface')
    .addHelpText(
      'after',
      '\nExamples:\n  dawatch status 9f1c2f6e-8a44-4a46-9a0d-2f6f6a9f0c11\n  dawatch status --short --file ids.txt --json',
    )
    .action(async (args: string[], options: Options) => {
      const ids = await readIds(args, options.file);
      const client = connect(options);
      if (options.short) return printShort(client, ids, options);
      for (const id of ids) {
        const submission = await client.get(id);
        process.stdout.write(`${options.json ? toJson(submission) : paragraph(submission)}\n`);
      }
    });
}

async function printShort(client: DawatchClient, ids: string[], { json }: Options): Promise<void> {
  const missing: string[] = [];
  for (let start = 0; start < ids.length; start += MAX_IDS) {
    const found = await client.lookup(ids.slice(start, start + MAX_IDS));
    const { submissions } = found;
    process.stdout.write(json ? submissionLines(submissions) : submissionTable(submissions));
    missing.push(...found.not_found);
  }
  if (missing.length === 0) return;
  process.exitCode = ExitCode.usage;
  const lines = missing.map((id) => `  ${escapeText(id)}\n`);
  process.stderr.write(`dawatch: ${plural(lines.length, 'id')} not tracked:\n${lines.join('')}`);
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

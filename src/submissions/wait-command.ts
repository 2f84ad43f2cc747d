import type { Command } from 'commander';
import { type ConnectOptions, connect, withServer } from '../cli/connect.ts';
import { ExitCode } from '../cli/exit.ts';
import { parseDuration } from '../cli/input.ts';
import { coloured, createProgress, plural, toJson } from '../cli/output.ts';
import { isFinal, openReason } from '../client/backoff.ts';
import type { DawatchClient, Submission } from '../client/index.ts';
import { escapeText } from '../lib/text.ts';
import { readIds } from './cli-submissions.ts';
import { Status } from './submission.ts';

export function addWait(program: Command): void {
  withServer(program.command('wait'))
    .description('Wait until tracked submissions are final.')
    .argument('[ids...]', 'submission ids; without ids, they are read from stdin, one per line')
    .option(
      '--timeout <duration>',
      'maximum time to wait: 90s, 10m, 24h (default: no limit)',
      parseDuration,
    )
    .option('--json', 'print one JSON line per ended submission')
    .addHelpText(
      'after',
      '\nExample:\n  dawatch wait 9f1c2f6e-8a44-4a46-9a0d-2f6f6a9f0c11 --timeout 5m && deploy',
    )
    .action(
      async (args: string[], options: ConnectOptions & { timeout?: number; json?: boolean }) => {
        const ids = await readIds(args);
        const client = connect(options);
        // Reports an unreachable server or an unknown id at once.
        await client.wait(ids[0] ?? '', 0);
        process.exitCode = await awaitFinal(client, ids, {
          timeoutMs: options.timeout,
          json: options.json ?? false,
        });
      },
    );
}

/** Timers are no longer than this. */
const MAX_TIMEOUT_MS = 2 ** 31 - 1;

/**
 * Prints each submission when it ends, as a line or as JSON, and what is open when time is over.
 * Returns the exit code.
 */
export async function awaitFinal(
  client: DawatchClient,
  ids: readonly string[],
  { timeoutMs = MAX_TIMEOUT_MS, json }: { timeoutMs: number | undefined; json: boolean },
): Promise<number> {
  const signal = AbortSignal.timeout(Math.min(timeoutMs, MAX_TIMEOUT_MS));
  const progress = createProgress(ids.length, 'final', json ? process.stderr : process.stdout);
  const open = new Set(ids);
  let allFinalized = true;
  const ended = (submission: Submission) => {
    allFinalized &&= submission.status === Status.finalized;
    open.delete(submission.submission_id);
    progress.advance(ids.length - open.size);
    if (json) process.stdout.write(`${toJson(submission)}\n`);
    else progress.line(describe(submission));
  };
  let stillOpen: Submission[] = [];
  try {
    for await (const submission of client.untilFinal(ids, { signal })) ended(submission);
  } catch (error) {
    if (error !== signal.reason) throw error;
    const { submissions } = await client.lookup([...open]);
    for (const submission of submissions) if (isFinal(submission.status)) ended(submission);
    stillOpen = submissions.filter(({ status }) => !isFinal(status));
  } finally {
    progress.stop();
  }
  if (stillOpen.length === 0) return allFinalized ? ExitCode.ok : ExitCode.notFinalized;
  process.stderr.write(`dawatch: ${openText(stillOpen)}`);
  return ExitCode.timeout;
}

const MAX_NAMED = 10;
const MAX_REASON_CHARS = 500;

function openText(open: readonly Submission[]): string {
  const named = open.slice(0, MAX_NAMED);
  const lines = named.map((one) => `  ${escapeText(openReason(one), MAX_REASON_CHARS)}\n`);
  if (open.length > named.length) lines.push(`  and ${open.length - named.length} more\n`);
  return `the timeout has expired; still open: ${plural(open.length, 'submission')}\n${lines.join('')}`;
}

function describe(submission: Submission): string {
  const block = submission.data?.block_number;
  const where = block ? `  block ${escapeText(String(block))}` : '';
  const why =
    submission.status !== Status.finalized && submission.error
      ? `  ${escapeText(submission.error)}`
      : '';
  return `${coloured(submission.status)}  ${escapeText(submission.submission_id)}${where}  ${requests(submission.polls)}${why}`;
}

export function requests(count: number): string {
  return escapeText(plural(count, 'request'));
}

import type { Command } from 'commander';
import { type ConnectOptions, connect, withServer } from '../cli/connect.ts';
import { ExitCode } from '../cli/exit.ts';
import { parseDuration } from '../cli/input.ts';
import { coloured, createProgress, plural, toJson } from '../cli/output.ts';
import { ApiError, ConnectionError, type DawatchClient, type Submission } from '../client/index.ts';
import { escapeText } from '../lib/text.ts';
import { readIds } from './cli-submissions.ts';
import { isFinal, STATUSES, Status } from './submission.ts';

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
        const ids = await readIds(args, undefined);
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

/**
 * Maximum number of concurrent requests. Up to this many ids are waited for with long polls, more
 * with short requests.
 */
const CONCURRENCY = 64;
const LONG_POLL_S = 20;
const ROUND_PAUSE_MS = 1_000;
/** How long a server that responded before may be unavailable, for example during a restart. */
const MAX_OUTAGE_MS = 60_000;

/**
 * Waits until every submission is final and prints each one when it ends: as a line, with a line
 * of progress on a terminal, or as one JSON object per line. Tolerates outages of the server up to
 * MAX_OUTAGE_MS. Returns the exit code.
 */
export async function awaitFinal(
  client: DawatchClient,
  ids: readonly string[],
  options: { timeoutMs: number | undefined; json: boolean },
): Promise<number> {
  const endsAt =
    options.timeoutMs === undefined
      ? Number.POSITIVE_INFINITY
      : performance.now() + options.timeoutMs;
  const leftS = () => Math.max(0, Math.ceil((endsAt - performance.now()) / 1_000));
  const progress = createProgress(
    ids.length,
    'final',
    options.json ? process.stderr : process.stdout,
  );
  let open = [...ids];
  let endedCount = 0;
  let allFinalized = true;
  const ended = (submission: Submission) => {
    allFinalized &&= submission.status === Status.finalized;
    progress.advance(++endedCount);
    if (options.json) process.stdout.write(`${toJson(submission)}\n`);
    else progress.line(describe(submission));
  };
  const tolerant = createOutageTolerance();
  try {
    for (;;) {
      const waitS = open.length <= CONCURRENCY ? Math.min(LONG_POLL_S, leftS()) : 0;
      const stillOpen: string[] = [];
      await inParallel(open, async (id) => {
        const submission = await tolerant(client.wait(id, waitS));
        if (submission && isFinalText(submission.status)) ended(submission);
        else stillOpen.push(id);
      });
      open = stillOpen;
      if (open.length === 0) return allFinalized ? ExitCode.ok : ExitCode.notFinalized;
      if (leftS() === 0) return ExitCode.timeout;
      if (waitS === 0 || tolerant.isUnavailable())
        await new Promise((resolve) => setTimeout(resolve, ROUND_PAUSE_MS));
    }
  } finally {
    progress.stop();
  }
}

function createOutageTolerance() {
  let respondedAt = performance.now();
  let isUnavailable = false;
  /**
   * Returns the result of the call, or undefined during a tolerated outage. Rejects if the outage
   * lasts too long.
   */
  const tolerant = async <T>(call: Promise<T>): Promise<T | undefined> => {
    try {
      const result = await call;
      respondedAt = performance.now();
      isUnavailable = false;
      return result;
    } catch (error) {
      const status = error instanceof ApiError ? error.status : undefined;
      isUnavailable = error instanceof ConnectionError || status === 503 || status === 429;
      // A rate-limited server is available and accepts requests again within a minute.
      if (status === 429) respondedAt = performance.now();
      if (!isUnavailable || performance.now() - respondedAt > MAX_OUTAGE_MS) throw error;
      return undefined;
    }
  };
  return Object.assign(tolerant, { isUnavailable: () => isUnavailable });
}

function describe(submission: Submission): string {
  const block = submission.data?.block_number;
  const where = typeof block === 'number' ? `  block ${block}` : '';
  const why =
    submission.status !== Status.finalized && submission.error
      ? `  ${escapeText(submission.error)}`
      : '';
  return `${coloured(submission.status)}  ${escapeText(submission.submission_id)}${where}  ${requests(submission.polls)}${why}`;
}

export function requests(count: number): string {
  return escapeText(plural(count, 'request'));
}

function isFinalText(status: string): boolean {
  const known = STATUSES.find((name) => name === status);
  return known !== undefined && isFinal(known);
}

async function inParallel(
  ids: readonly string[],
  work: (id: string) => Promise<void>,
): Promise<void> {
  const queue = ids.values();
  const worker = async () => {
    for (const id of queue) await work(id);
  };
  await Promise.all(Array.from({ length: Math.min(CONCURRENCY, ids.length) }, worker));
}

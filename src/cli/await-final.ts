import { ApiError, ConnectionError, type DawatchClient, type Submission } from '../client/client.ts';
import { isFinal, STATUSES, Status } from '../domain/submission.ts';
import { escapeText } from '../domain/text.ts';
import { ExitCode } from './exit.ts';
import { coloured } from './output/colors.ts';
import { toJson } from './output/json.ts';
import { createProgress } from './output/progress.ts';

/** So many requests at once; up to so many ids each have one that waits on the server. */
const CONCURRENCY = 64;
const LONG_POLL_S = 20;
const ROUND_PAUSE_MS = 1_000;
/** A server that answered before may be away for so long, as while it is restarted. */
const PATIENCE_MS = 60_000;

/**
 * Waits until every id is final, telling of each one that ends: with a bar on a terminal, in plain lines elsewhere, or as
 * one JSON object per line. The caller has seen the server answer: if it goes away now, it is waited for a while.
 * Returns the exit code.
 */
export async function awaitFinal(
  client: DawatchClient,
  ids: readonly string[],
  options: { timeoutMs: number | undefined; json: boolean },
): Promise<number> {
  const endsAt = options.timeoutMs === undefined ? Number.POSITIVE_INFINITY : performance.now() + options.timeoutMs;
  const leftS = () => Math.max(0, Math.ceil((endsAt - performance.now()) / 1_000));
  const progress = createProgress(ids.length, 'final', options.json ? process.stderr : process.stdout);
  let open = [...ids];
  let endedCount = 0;
  let allFinalized = true;
  const ended = (submission: Submission) => {
    allFinalized &&= submission.status === Status.finalized;
    progress.advance(++endedCount);
    if (options.json) process.stdout.write(`${toJson(submission)}\n`);
    else progress.line(describe(submission));
  };
  const patiently = createPatience();
  try {
    for (;;) {
      const waitS = open.length <= CONCURRENCY ? Math.min(LONG_POLL_S, leftS()) : 0;
      const stillOpen: string[] = [];
      await inParallel(open, async (id) => {
        const submission = await patiently(client.wait(id, waitS));
        if (submission && isFinalText(submission.status)) ended(submission);
        else stillOpen.push(id);
      });
      open = stillOpen;
      if (open.length === 0) return allFinalized ? ExitCode.ok : ExitCode.notFinalized;
      if (leftS() === 0) return ExitCode.timeout;
      if (waitS === 0 || patiently.isAway()) await new Promise((resolve) => setTimeout(resolve, ROUND_PAUSE_MS));
    }
  } finally {
    progress.stop();
  }
}

type Patience = {
  /** What the call gives; undefined if the server is away, but not for too long yet. */
  <T>(call: Promise<T>): Promise<T | undefined>;
  isAway(): boolean;
};

function createPatience(): Patience {
  let answeredAt = performance.now();
  let isAway = false;
  const patiently = async <T>(call: Promise<T>) => {
    try {
      const answer = await call;
      answeredAt = performance.now();
      isAway = false;
      return answer;
    } catch (error) {
      const status = error instanceof ApiError ? error.status : undefined;
      isAway = error instanceof ConnectionError || status === 503 || status === 429;
      // It is there, and will take more once the minute is over.
      if (status === 429) answeredAt = performance.now();
      if (!isAway || performance.now() - answeredAt > PATIENCE_MS) throw error;
      return undefined;
    }
  };
  return Object.assign(patiently, { isAway: () => isAway });
}

function describe(submission: Submission): string {
  const block = submission.data?.block_number;
  const where = typeof block === 'number' ? `  block ${block}` : '';
  const why = submission.status !== Status.finalized && submission.error ? `  ${escapeText(submission.error)}` : '';
  return `${coloured(submission.status)}  ${escapeText(submission.submission_id)}${where}  ${requests(submission.polls)}${why}`;
}

export function requests(count: number): string {
  return escapeText(`${count} request${count === 1 ? '' : 's'}`);
}

function isFinalText(status: string): boolean {
  const known = STATUSES.find((name) => name === status);
  return known !== undefined && isFinal(known);
}

async function inParallel(ids: readonly string[], work: (id: string) => Promise<void>): Promise<void> {
  const queue = ids.values();
  const worker = async () => {
    for (const id of queue) await work(id);
  };
  await Promise.all(Array.from({ length: Math.min(CONCURRENCY, ids.length) }, worker));
}

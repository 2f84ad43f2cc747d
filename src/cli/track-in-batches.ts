import { pause } from '../client/backoff.ts';
import { ApiError } from '../client/errors.ts';
import type { DawatchClient, Tracked, TrackItem, TrackOptionName, TrackOptions } from '../client/index.ts';
import { escapeText } from '../domain/text.ts';
import { MAX_IDS_PER_REQUEST } from '../domain/track-request.ts';
import { CommandError, ExitCode } from './exit.ts';
import type { GivenSubmission } from './input/submission-lines.ts';
import { createProgress } from './output/progress.ts';
import { withWaitIndicator } from './output/wait-indicator.ts';

/** Below the limits of a request and of the metadata of all its submissions. */
const MAX_BATCH_BYTES = 4 * 1024 * 1024;
/** Rate limited or overloaded. */
const BUSY: readonly number[] = [429, 503];
const MAX_BUSY_MS = 120_000;

type Count = 'accepted' | 'already_tracked' | 'already_final' | 'retracked';
/** The sums over all requests. */
export type Total = Record<Count, number> & { not_applied: { submission_id: string; options: TrackOptionName[] }[] };

/** Tracks the submissions in requests of limited size and returns the sums of their counts. */
export async function trackInBatches(
  client: DawatchClient,
  given: readonly GivenSubmission[],
  options: TrackOptions,
): Promise<Total> {
  const batches = batchesOf(given, options);
  const total: Total = { accepted: 0, already_tracked: 0, already_final: 0, retracked: 0, not_applied: [] };
  const [first] = batches;
  if (first && batches.length === 1) {
    add(await withWaitIndicator('the server', track(client, first, options)), total);
    return total;
  }
  const progress = createProgress(given.length, 'tracked', process.stderr);
  let done = 0;
  try {
    for (const batch of batches) {
      add(await track(client, batch, options), total);
      done += batch.length;
      progress.advance(done);
    }
  } catch (error) {
    if (done > 0)
      progress.line(
        `${done} of ${given.length} submissions are tracked. To continue, run the same command again: they stay unchanged`,
      );
    throw error;
  } finally {
    progress.stop();
  }
  return total;
}

/** Adds the counts of one response, in which counts may be missing if the server is older. */
function add(tracked: Tracked, total: Total): void {
  for (const name of ['accepted', 'already_tracked', 'already_final', 'retracked'] as const)
    total[name] += Number(tracked[name] ?? 0);
  for (const { submission_id, not_applied } of tracked.submissions)
    if (not_applied) total.not_applied.push({ submission_id, options: not_applied });
}

function batchesOf(given: readonly GivenSubmission[], { metadata }: TrackOptions): GivenSubmission[][] {
  const sharedBytes = metadata === undefined ? 0 : bytesOf(metadata);
  const batches: GivenSubmission[][] = [];
  let batch: GivenSubmission[] = [];
  let bytes = 0;
  for (const submission of given) {
    const { item } = submission;
    const own = bytesOf(item) + (item.metadata === undefined ? sharedBytes : 0);
    if (batch.length === MAX_IDS_PER_REQUEST || bytes + own > MAX_BATCH_BYTES) batch = [];
    if (batch.length === 0) {
      bytes = 0;
      batches.push(batch);
    }
    bytes += own;
    batch.push(submission);
  }
  return batches;
}

function bytesOf(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value));
}

/** Tracks a batch. Retries while the server is busy: a busy server accepts no part of the batch and sends Retry-After. */
async function track(
  client: DawatchClient,
  batch: readonly GivenSubmission[],
  options: TrackOptions,
): Promise<Tracked> {
  const isPlain = batch.every(({ item }) => Object.keys(item).length === 1);
  const submissions = batch.map(({ item }) => (isPlain ? item.submission_id : (item as TrackItem)));
  for (const startedAt = performance.now(); ; ) {
    try {
      return await client.track(submissions, options);
    } catch (error) {
      const waitMs = error instanceof ApiError && BUSY.includes(error.status) ? 1_000 * (error.retryAfterS ?? 0) : 0;
      if (waitMs === 0 || performance.now() + waitMs - startedAt > MAX_BUSY_MS) throw located(error, batch);
      await pause(waitMs);
    }
  }
}

const POINTER = /^\/(?:submissions|submission_ids)\/(\d+)(?:\/(\w+))?$/;

/** Returns an error that names the lines of the submissions that the server refuses, or the error itself. */
function located(error: unknown, batch: readonly GivenSubmission[]): unknown {
  if (!(error instanceof ApiError)) return error;
  const problems = error.errors.flatMap(({ pointer, detail }) => {
    const [, index, option] = POINTER.exec(pointer) ?? [];
    const given = index === undefined ? undefined : batch[Number(index)];
    return given ? [`${given.from}: ${option === undefined ? '' : `${option}: `}${escapeText(detail)}`] : [];
  });
  return problems.length === 0 ? error : new CommandError(problems.join('\n'), ExitCode.usage);
}

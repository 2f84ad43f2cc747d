import type { Submission, SubmissionStatus } from './api.ts';
import { ConnectionError, isTransient } from './errors.ts';

const OPEN: readonly SubmissionStatus[] = ['tracking', 'pending', 'failing'];

/** Returns whether a status is final. */
export function isFinal(status: SubmissionStatus): boolean {
  return !OPEN.includes(status);
}

/** Returns one line on why an open submission is not final, and when it is polled next. */
export function openReason(submission: Submission): string {
  const { submission_id, status, upstream_state, error, not_found_since } = submission;
  const state = upstream_state === null ? '' : `, upstream state ${upstream_state}`;
  const why = error === null ? '' : `, error: ${error}`;
  const notFound = not_found_since === null ? '' : `, not found since ${not_found_since}`;
  const last = submission.last_polled_at;
  const polled = last === null ? 'not polled yet' : `last poll ${last}`;
  const next = submission.next_poll_at;
  const planned = next === null ? 'no poll is planned' : `next poll ${next}`;
  return `${submission_id}: ${status}${state}${why}${notFound}; ${polled}, ${planned}`;
}

/**
 * Returns the delay before the next attempt after consecutive failures:
 *
 *     failures    1       2       3       4       …  7 and more
 *     at most     0.5 s   1 s     2 s     4 s        30 s
 *
 * The delay is multiplied by a random factor of 0.5 to 1, so that clients of a restarted server do
 * not reconnect at once.
 */
export function retryDelayMs(failures: number, random: () => number): number {
  const atMostMs = Math.min(30_000, 500 * 2 ** Math.min(failures - 1, 10));
  return atMostMs * (0.5 + random() / 2);
}

/**
 * Resolves after `delayMs`, or as soon as `signal` aborts. Browsers have no node:timers/promises.
 */
export function pause(delayMs: number, signal?: AbortSignal): Promise<void> {
  if (signal?.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, delayMs);
    signal?.addEventListener('abort', done);
  });
}

/** Duration of one long poll, below the usual proxy timeout of 60 s. */
const LONG_POLL_S = 20;
/** Tolerated outage of the server while waiting, for example during a restart. */
export const MAX_OUTAGE_MS = 60_000;

/**
 * Repeats `wait`, a long poll, until the submission is final or the time is over. Returns its
 * current state.
 */
export async function waitUntilFinal(
  wait: (timeoutS: number) => Promise<Submission>,
  { timeoutMs = Number.POSITIVE_INFINITY, signal }: { timeoutMs?: number; signal?: AbortSignal },
): Promise<Submission> {
  const endsAt = performance.now() + timeoutMs;
  let respondedAt = performance.now();
  let last: Submission | undefined;
  for (let failures = 0; ; ) {
    const sentAt = performance.now();
    const leftMs = Math.max(0, endsAt - sentAt);
    const waitS = Math.min(LONG_POLL_S, Math.ceil(leftMs / 1_000));
    try {
      const submission = await wait(waitS);
      if (isFinal(submission.status) || leftMs === 0) return submission;
      last = submission;
      respondedAt = performance.now();
      // A response before the end of the long poll is treated as a failure, so that the next
      // request is delayed.
      failures = respondedAt - sentAt < waitS * 500 ? 1 : 0;
    } catch (error) {
      if (signal?.aborted || !isTransient(error)) throw error;
      if (leftMs === 0 || performance.now() - respondedAt > MAX_OUTAGE_MS)
        throw last ? whileWaiting(error, openReason(last)) : error;
      failures += 1;
    }
    if (failures > 0) await pause(Math.min(retryDelayMs(failures, Math.random), leftMs), signal);
  }
}

/** Returns the error of an outage with what was waited for; an ApiError as it is. */
export function whileWaiting<T extends Error>(error: T, open: string): T | ConnectionError {
  if (!(error instanceof ConnectionError)) return error;
  const { message, cause, status, code } = error;
  return new ConnectionError(`${message}; still open: ${open}`, { cause, status, code });
}

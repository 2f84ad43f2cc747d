import type { FoundSubmissions, Submission } from './api.ts';
import { isFinal, MAX_OUTAGE_MS, pause, retryDelayMs, whileWaiting } from './backoff.ts';
import { ApiError, isTransient } from './errors.ts';
import { type OpenStream, readEvents } from './events.ts';

/** The events after which a submission is final. */
export const FINAL_TYPES = [
  'submission.finalized',
  'submission.failed',
  'submission.unknown',
  'submission.rejected',
  'submission.expired',
  'submission.cancelled',
] as const;

/** The maximum of one lookup. */
const MAX_LOOKUP = 1_000;
/** Submissions that become final within this time after a lookup share the next one. */
const LOOKUP_INTERVAL_MS = 200;
const UUID = /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/i;

type Server = {
  /** Opens the feed of FINAL_TYPES. */
  openStream: OpenStream;
  lookup: (
    ids: readonly string[],
    signal: AbortSignal,
  ) => Promise<Omit<FoundSubmissions, 'remaining'>>;
  /** Waits for a moment, which has the server poll a submission that it has never polled. */
  wait: (id: string, signal: AbortSignal) => Promise<unknown>;
  signal: AbortSignal | undefined;
};

/** Of many submissions, the first ones are polled at once, the others when they are due. */
const MAX_POLLED_AT_ONCE = 64;

/**
 * Yields each submission when it is final. Follows the feed. Looks up all submissions when the feed
 * opens or reports a gap, and one when an event reports it as final. Throws ApiError,
 * ConnectionError or the reason of the signal.
 */
export async function* untilFinal(
  ids: Iterable<string>,
  { openStream, lookup, wait, signal }: Server,
): AsyncGenerator<Submission, void, undefined> {
  const open = new Set(Array.from(ids, (id) => (UUID.test(id) ? id.toLowerCase() : id)));
  const total = open.size;
  if (total === 0) return;
  /** Those to look up. */
  const due = new Set<string>();
  const stop = new AbortController();
  const stopped = AbortSignal.any([stop.signal, ...(signal ? [signal] : [])]);
  let failure: { error: unknown } | undefined;
  let wake = () => {};
  let respondedAt = performance.now();
  let lookedUpAt = Number.NEGATIVE_INFINITY;
  let isFollowing = false;
  let polledAtOnce = 0;

  const fail = (error: unknown) => {
    failure ??= { error };
    wake();
  };
  const lookUp = (found: Iterable<string>) => {
    for (const id of found) due.add(id);
    wake();
  };
  /** Throws the error unless it is one of an outage that has not lasted too long. */
  const tolerate = (error: unknown, sinceMs: number) => {
    if (!isTransient(error)) throw error;
    // A server that limits the rate is available.
    const isOutage = !(error instanceof ApiError && error.status === 429);
    if (isOutage && performance.now() - sinceMs > MAX_OUTAGE_MS)
      throw whileWaiting(error, `${open.size} of ${total} submissions`);
  };

  const follow = async () => {
    const events = readEvents(openStream, {
      signal: stopped,
      onResponse: () => {
        respondedAt = performance.now();
        if (!isFollowing) lookUp(open);
        isFollowing = true;
      },
      onGap: () => lookUp(open),
      onRetry: ({ error }) => tolerate(error, respondedAt),
    });
    for await (const { data } of events)
      if ('submission' in data && open.has(data.submission.submission_id))
        lookUp([data.submission.submission_id]);
    stopped.throwIfAborted();
  };
  const find = async (batch: readonly string[]) => {
    const beganAt = performance.now();
    for (let failures = 1; ; failures += 1) {
      try {
        return await lookup(batch, stopped);
      } catch (error) {
        stopped.throwIfAborted();
        tolerate(error, beganAt);
        const retryAfterS = error instanceof ApiError ? (error.retryAfterS ?? 0) : 0;
        await pause(Math.max(1_000 * retryAfterS, retryDelayMs(failures, Math.random)), stopped);
      }
    }
  };

  void follow().catch(fail);
  try {
    while (open.size > 0) {
      while (due.size === 0 && !failure)
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      await pause(Math.max(0, lookedUpAt + LOOKUP_INTERVAL_MS - performance.now()), stopped);
      if (failure) throw failure.error;
      const batch = [...due].slice(0, MAX_LOOKUP);
      for (const id of batch) due.delete(id);
      const { submissions, not_found } = await find(batch);
      if (not_found.length > 0) throw notTracked(not_found);
      lookedUpAt = performance.now();
      for (const submission of submissions) {
        const { submission_id, status, last_polled_at } = submission;
        if (isFinal(status) && open.delete(submission_id)) yield submission;
        else if (last_polled_at === null && polledAtOnce++ < MAX_POLLED_AT_ONCE)
          // The feed tells the result.
          void wait(submission_id, stopped).catch(() => undefined);
      }
    }
  } finally {
    stop.abort();
  }
}

const MAX_NAMED = 5;

function notTracked(ids: readonly string[]): ApiError {
  const more = ids.length > MAX_NAMED ? ` and ${ids.length - MAX_NAMED} more` : '';
  return new ApiError({
    status: 404,
    title: 'Not found',
    detail: `these ids are not tracked: ${ids.slice(0, MAX_NAMED).join(', ')}${more}`,
  });
}

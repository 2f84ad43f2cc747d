/**
 * Returns the delay before the next attempt after consecutive failures:
 *
 *     failures    1       2       3       4       …  7 and more
 *     at most     0.5 s   1 s     2 s     4 s        30 s
 *
 * The delay is multiplied by a random factor of 0.5 to 1, so that clients of a restarted server do not reconnect at once.
 */
export function retryDelayMs(failures: number, random: () => number): number {
  const atMostMs = Math.min(30_000, 500 * 2 ** Math.min(failures - 1, 10));
  return atMostMs * (0.5 + random() / 2);
}

/** Resolves after `delayMs`, or as soon as `signal` aborts. Browsers have no node:timers/promises. */
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

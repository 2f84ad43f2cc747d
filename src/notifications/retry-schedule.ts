const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

/**
 * | attempt | 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 | 9 | 10 |
 * |---|---|---|---|---|---|---|---|---|---|---|
 * | delay after the previous | none | 5 s | 5 min | 30 min | 2 h | 5 h | 10 h | 14 h | 20 h | 24 h |
 */
const DELAYS_MS = [
  5 * SECOND,
  5 * MINUTE,
  30 * MINUTE,
  2 * HOUR,
  5 * HOUR,
  10 * HOUR,
  14 * HOUR,
  20 * HOUR,
  24 * HOUR,
] as const;

/**
 * Returns the delay after the `attempts`-th attempt in milliseconds, before jitter; null after the
 * last attempt.
 */
export function retryDelayMs(attempts: number): number | null {
  return DELAYS_MS[attempts - 1] ?? null;
}

/**
 * Applies ±20 %, so that deliveries that failed together are not retried together. `random` in [0,
 * 1).
 */
export function jittered(delayMs: number, random: number): number {
  return Math.round(delayMs * (0.8 + 0.4 * random));
}

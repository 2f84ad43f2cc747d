/** Settings of the pacing, milliseconds. */
export type PacingSettings = {
  minIntervalMs: number;
  maxIntervalMs: number;
};

/**
 * The safety net: no submission is left alone for longer, whatever is believed about it. As long as it has lived, but at
 * least the longest interval and at most five times that. With the defaults:
 *
 *     age       0–60 s   2 min   5 min and more
 *     ceiling   60 s     2 min   5 min
 */
export function ceilingMs({ maxIntervalMs }: PacingSettings, ageMs: number): number {
  return Math.min(5 * maxIntervalMs, Math.max(maxIntervalMs, ageMs));
}

/**
 * The delay while nothing is known about when submissions become final: it grows with the age, so that waiting twice as
 * long costs a fixed number of requests more. With the defaults (1 s to 60 s), before the jitter of ±20 %:
 *
 *     age     0 s   10 s   20 s   1 to 30 min   1 h    2 h     5 h
 *     delay   1 s   6 s    11 s   30 s          60 s   2 min   5 min
 */
export function backoffMs(settings: PacingSettings, ageMs: number, random: () => number): number {
  const { minIntervalMs, maxIntervalMs } = settings;
  const youngMs = Math.max(minIntervalMs, Math.min(minIntervalMs + ageMs / 2, maxIntervalMs / 2));
  const delayMs = Math.max(youngMs, ageMs / 60) * (0.8 + 0.4 * random());
  return Math.min(ceilingMs(settings, ageMs), delayMs);
}

/** Settings of the pacing, milliseconds. */
export type PacingSettings = {
  minIntervalMs: number;
  maxIntervalMs: number;
};

/**
 * Decides when a submission is asked about again. Pure: everything it may know is in its arguments.
 * `random` gives numbers in [0, 1).
 */
export type PacingPolicy = (question: { ageMs: number; random: () => number }) => number;

/**
 * Delay in proportion to the age, so that waiting twice as long costs a fixed number of requests more. With the defaults
 * (2 s to 60 s), before the jitter of ±20 %:
 *
 *     age     0–6 s   15 s   30 s   60 s   3 min   1 h   2 h     5 h
 *     delay   2 s     5 s    10 s   20 s   60 s    60 s  2 min   5 min (5 × the maximum)
 */
export function backoffByAge(settings: PacingSettings): PacingPolicy {
  const { minIntervalMs, maxIntervalMs } = settings;
  return ({ ageMs, random }) => {
    const ceilingMs = maxIntervalMs * Math.min(5, Math.max(1, ageMs / 3_600_000));
    const delayMs = Math.min(ceilingMs, Math.max(minIntervalMs, ageMs / 3));
    return delayMs * (0.8 + 0.4 * random());
  };
}

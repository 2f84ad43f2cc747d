import type { SandboxOptions } from './options.ts';

const FALLBACK_EVERY_S = 10;

export type UpstreamClock = ReturnType<typeof createClock>;

/** Between Finalized and a change after it. */
const REGRESS_AFTER_S = 30;

/** Returns the durations of the upstream in real milliseconds, divided by the speed. */
export function createClock(options: SandboxOptions) {
  const seconds = (upstreamS: number) => (upstreamS * 1000) / options.speed;
  return {
    slotMs: seconds(options.slotS),
    fallbackMs: seconds(FALLBACK_EVERY_S),
    timeoutMs: seconds(options.timeoutS),
    regressAfterMs: seconds(REGRESS_AFTER_S),
    /** Converts seconds of the upstream's clock. */
    seconds,
  };
}

/** Returns the first multiple of periodMs since the epoch that is later than atMs. */
export function nextMultiple(atMs: number, periodMs: number): number {
  let count = Math.floor(atMs / periodMs) + 1;
  // Floating-point division can round down just below a multiple.
  while (count * periodMs <= atMs) count += 1;
  return count * periodMs;
}

import { performance } from 'node:perf_hooks';
import type { Clock } from './monitor/ports.ts';

/** setTimeout fires at once for anything longer. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/** The real clock: wall time at the process's start, carried on by the monotonic clock, so that no step of it is felt. */
export const systemClock: Clock = {
  now: () => Math.floor(performance.timeOrigin + performance.now()),
  after(delayMs, run) {
    if (delayMs <= 0) {
      const immediate = setImmediate(run);
      return () => clearImmediate(immediate);
    }
    const timer = setTimeout(run, Math.min(Math.ceil(delayMs), MAX_TIMER_MS));
    return () => clearTimeout(timer);
  },
};

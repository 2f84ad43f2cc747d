import type { Clock } from '../../src/domain/clock.ts';

type Timer = { at: number; order: number; run: () => void };

export type VirtualClock = Clock & {
  /** Lets this much time pass: every timer goes off at its moment, and what it sets off settles before the next one. */
  advance(ms: number): Promise<void>;
  /** The clock is set forward: what is due by then goes off with the next `advance`. */
  skip(ms: number): void;
  skippedMs(): number;
  /** Timers that are still to go off. */
  readonly pending: number;
};

/** `settle` waits until everything has happened that happens without time. */
export function createVirtualClock(startMs: number, settle = settlePromises): VirtualClock {
  let now = startMs;
  let order = 0;
  let skippedMs = 0;
  const timers = new Set<Timer>();
  const next = (untilMs: number): Timer | undefined => {
    let first: Timer | undefined;
    for (const timer of timers)
      if (
        timer.at <= untilMs &&
        (!first || timer.at < first.at || (timer.at === first.at && timer.order < first.order))
      )
        first = timer;
    return first;
  };
  return {
    now: () => Math.floor(now),
    after(delayMs, run) {
      const timer = { at: now + Math.max(0, delayMs), order: order++, run };
      timers.add(timer);
      return () => timers.delete(timer);
    },
    async advance(ms) {
      const untilMs = now + ms;
      await settle();
      for (let timer = next(untilMs); timer; timer = next(untilMs)) {
        timers.delete(timer);
        now = Math.max(now, timer.at);
        timer.run();
        await settle();
      }
      now = untilMs;
    },
    skip(ms) {
      now += ms;
      skippedMs += ms;
    },
    skippedMs: () => skippedMs,
    get pending() {
      return timers.size;
    },
  };
}

/** Every promise that can be resolved by now is. */
export function settlePromises(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

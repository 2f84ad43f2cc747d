import { type Clock, systemClock } from '../../../src/lib/clock.ts';

type Timer = { at: number; order: number; run: () => void };

export type VirtualClock = Clock & {
  /**
   * Advances the time: every timer fires at its time, and its effects settle before the next one.
   */
  advance(ms: number): Promise<void>;
  /** Sets the clock forward: timers that are due by then fire at the next `advance`. */
  skip(ms: number): void;
  /** Lets time pass in which this process does nothing: timers fire late, at the next `advance`. */
  stall(ms: number): void;
  /** The number of pending timers. */
  readonly pending: number;
};

/** `settle` waits until all effects that require no time have happened. */
export function createVirtualClock(startMs: number, settle = settlePromises): VirtualClock {
  let now = startMs;
  let order = 0;
  let skippedMs = 0;
  const listeners = new Set<(stepMs: number, now: number) => void>();
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
    elapsed: () => now - skippedMs,
    onStep(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
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
      for (const listener of listeners) listener(ms, Math.floor(now));
    },
    stall(ms) {
      now += ms;
    },
    get pending() {
      return timers.size;
    },
  };
}

/** Resolves after all promises that can be resolved. */
function settlePromises(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** The real clock, except that long timers fire only when a test releases them. */
export class HeldClock implements Clock {
  readonly #held = new Map<() => void, number>();
  readonly #fromMs: number;
  readonly #toMs: number;

  /** Timers of at least `fromMs` and at most `toMs` milliseconds are held. */
  constructor(fromMs = 100_000, toMs = Infinity) {
    this.#fromMs = fromMs;
    this.#toMs = toMs;
  }

  now(): number {
    return systemClock.now();
  }

  elapsed(): number {
    return systemClock.elapsed();
  }

  after(delayMs: number, run: () => void): () => void {
    if (delayMs < this.#fromMs || delayMs > this.#toMs) return systemClock.after(delayMs, run);
    this.#held.set(run, delayMs);
    return () => this.#held.delete(run);
  }

  /** Returns the number of waiting timers with exactly this delay. */
  held(delayMs: number): number {
    return [...this.#held.values()].filter((held) => held === delayMs).length;
  }

  /** The result of work whose time limits of this length are exceeded as soon as they run. */
  async exceed<T>(delayMs: number, work: Promise<T>): Promise<T> {
    const firing = setInterval(() => this.fire(delayMs), 5);
    try {
      return await work;
    } finally {
      clearInterval(firing);
    }
  }

  /** Fires all that wait. */
  fireAll(): void {
    for (const [run] of [...this.#held]) if (this.#held.delete(run)) run();
  }

  fire(delayMs: number): void {
    for (const [run, held] of [...this.#held])
      if (held === delayMs && this.#held.delete(run)) run();
  }
}

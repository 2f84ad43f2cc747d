import type { Clock } from '../../../src/lib/clock.ts';
import { systemClock } from '../../../src/lib/system-clock.ts';

/** The real clock, except that long timers fire only when a test releases them. */
export class HeldClock implements Clock {
  readonly #held = new Map<() => void, number>();
  readonly #fromMs: number;

  /** Timers of at least this many milliseconds are held. */
  constructor(fromMs = 100_000) {
    this.#fromMs = fromMs;
  }

  now(): number {
    return systemClock.now();
  }

  after(delayMs: number, run: () => void): () => void {
    if (delayMs < this.#fromMs) return systemClock.after(delayMs, run);
    this.#held.set(run, delayMs);
    return () => this.#held.delete(run);
  }

  /** Returns the number of waiting timers with exactly this delay. */
  held(delayMs: number): number {
    return [...this.#held.values()].filter((held) => held === delayMs).length;
  }

  fire(delayMs: number): void {
    for (const [run, held] of [...this.#held])
      if (held === delayMs && this.#held.delete(run)) run();
  }
}

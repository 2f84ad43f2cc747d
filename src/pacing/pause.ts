import type { Observation } from '../domain/classify.ts';
import type { PauseRequest } from '../domain/retry-after.ts';

/** After a 429 without a usable Retry-After: 1 s, 2 s, 4 s … up to this. */
const MAX_PAUSE_MS = 60_000;

/** The time until which the upstream accepts no requests. */
export class Pause {
  #until = Number.NEGATIVE_INFINITY;
  #throttledInARow = 0;

  get until(): number {
    return this.#until;
  }

  /** Continues a pause that an earlier process recorded. */
  restore(until: number): void {
    this.#extend(until);
  }

  observe(observation: Observation | PauseRequest, now: number): void {
    if (observation.kind === 'throttled') {
      if (observation.retryAfterMs !== null) this.#extend(now + observation.retryAfterMs);
      // Responses to requests that were sent before the pause do not extend it, unless they contain a time.
      if (now < this.#until) return;
      this.#extend(now + Math.min(MAX_PAUSE_MS, 1_000 * 2 ** this.#throttledInARow));
      this.#throttledInARow = Math.min(this.#throttledInARow + 1, 10);
    } else if (observation.kind === 'unavailable' && observation.retryAfterMs !== null) {
      this.#extend(now + observation.retryAfterMs);
    } else if (now >= this.#until) {
      this.#throttledInARow = 0;
    }
  }

  #extend(until: number): void {
    this.#until = Math.max(this.#until, until);
  }
}

const FIRST_WAIT_MS = 1_000;
const MAX_WAIT_MS = 600_000;

/**
 * Brings the waiting deliveries of one destination forward once its receiver works, instead of
 * leaving each to its own retry, which may be hours away.
 *
 * A success permits one early attempt, at the oldest delivery that failed before it, and each early
 * success doubles their number in flight. After a failure they continue one by one, after 1, 2,
 * 4 s … 10 min, because the receiver may refuse some events and accept others. An early attempt
 * that fails changes neither the schedule of its delivery nor the number of its attempts. A round
 * attempts each delivery at most once, and another one begins only after a success.
 */
export class EarlyAttempts {
  readonly #maxInFlight: number;
  /** 0: no round is in progress. */
  #limit = 0;
  #inFlight = 0;
  #failures = 0;
  #pausedUntil = Number.NEGATIVE_INFINITY;
  #permittedAt = Number.NEGATIVE_INFINITY;
  /** Whether a success permits another round after this one. */
  #mayRepeat = false;
  /** Ids of the deliveries of this round that have not been attempted, oldest first. */
  #ids: number[] = [];

  constructor(maxInFlight: number) {
    this.#maxInFlight = maxInFlight;
  }

  /** Only deliveries that failed before this time are attempted early. */
  get permittedAt(): number {
    return this.#permittedAt;
  }

  /** Begins a round if none is in progress: the receiver works, or may work again. */
  permit(now: number): void {
    this.#permittedAt = now;
    this.#limit = Math.max(this.#limit, 1);
    this.#mayRepeat = true;
  }

  /** Ends the round, and forgets earlier failures. */
  reset(): void {
    this.#limit = 0;
    this.#failures = 0;
    this.#pausedUntil = Number.NEGATIVE_INFINITY;
    this.#ids = [];
  }

  /** Returns how many more early attempts may start at `now`. */
  available(now: number): number {
    return now < this.#pausedUntil ? 0 : this.#limit - this.#inFlight;
  }

  /** Returns when the round continues after a failure; null if it does not wait. */
  resumesAt(now: number): number | null {
    return this.#limit > 0 && now < this.#pausedUntil ? this.#pausedUntil : null;
  }

  /**
   * Removes and returns the next `count` ids of the round; an empty array at its end. `read`
   * returns the ids of the waiting deliveries, oldest first.
   */
  take(count: number, read: () => number[]): number[] {
    if (this.#ids.length === 0 && this.#mayRepeat) {
      this.#mayRepeat = false;
      this.#ids = read();
    }
    if (this.#ids.length === 0 && this.#inFlight === 0) this.#limit = 0;
    return this.#ids.splice(0, count);
  }

  /** Returns ids that were taken and not attempted. */
  putBack(ids: readonly number[]): void {
    this.#ids.unshift(...ids);
  }

  started(): void {
    this.#inFlight += 1;
  }

  /** Is also called after each `succeeded` and `failed`. */
  ended(): void {
    this.#inFlight -= 1;
  }

  /** An early attempt succeeded. */
  succeeded(): void {
    this.#failures = 0;
    this.#limit = Math.min(2 * Math.max(this.#limit, 1), this.#maxInFlight);
  }

  /** An early attempt failed. */
  failed(now: number): void {
    this.#limit = 1;
    // Attempts that fail together count once.
    if (now < this.#pausedUntil) return;
    this.#pausedUntil = now + Math.min(FIRST_WAIT_MS * 2 ** this.#failures, MAX_WAIT_MS);
    this.#failures += 1;
  }
}

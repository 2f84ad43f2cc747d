const FIRST_WAIT_MS = 1_000;
const MAX_WAIT_MS = 600_000;

/** A waiting delivery and the type of its event. */
export type Waiting = { id: number; type: string };

/** Early failures in succession of one event type. `lastId`: the delivery that failed last. */
type Failing = { failures: number; pausedUntil: number; lastId: number };

/**
 * Brings the waiting deliveries of one destination forward once its receiver works, instead of
 * leaving each to its own retry, which may be hours away.
 *
 * A success permits one early attempt, at the oldest delivery that failed before it, and each early
 * success doubles their number in flight. After a failure, those of other event types continue one
 * by one, a second later, and those of its type after 1, 2, 4 s … 10 min, because the receiver may
 * refuse some events and accept others. An early attempt that fails changes neither the schedule of
 * its delivery nor the number of its attempts, and the other deliveries of its type come first.
 */
export class EarlyAttempts {
  readonly #maxInFlight: number;
  /** 0: nothing is attempted early. */
  #limit = 0;
  #inFlight = 0;
  #pausedUntil = Number.NEGATIVE_INFINITY;
  #permittedAt = Number.NEGATIVE_INFINITY;
  /** Whether deliveries may wait that `#waiting` does not have. */
  #mayRead = false;
  #nextReadAt = Number.NEGATIVE_INFINITY;
  #waiting: Waiting[] = [];
  /** By event type. */
  readonly #failing = new Map<string, Failing>();

  constructor(maxInFlight: number) {
    this.#maxInFlight = maxInFlight;
  }

  /** Only deliveries that failed before this time are attempted early. */
  get permittedAt(): number {
    return this.#permittedAt;
  }

  /** The receiver works, or may work again. */
  permit(now: number): void {
    this.#permittedAt = now;
    this.#limit = Math.max(this.#limit, 1);
    this.#mayRead = true;
    this.#nextReadAt = Math.min(this.#nextReadAt, now + FIRST_WAIT_MS);
  }

  /** Ends the early attempts, and forgets earlier failures. */
  reset(): void {
    this.#limit = 0;
    this.#pausedUntil = Number.NEGATIVE_INFINITY;
    this.#nextReadAt = Number.NEGATIVE_INFINITY;
    this.#waiting = [];
    this.#failing.clear();
  }

  /** Returns how many more early attempts may start at `now`. */
  available(now: number): number {
    return now < this.#pausedUntil ? 0 : this.#limit - this.#inFlight;
  }

  /** Returns when the early attempts continue after a failure; null if they do not wait. */
  resumesAt(now: number): number | null {
    const readAt = this.#waiting.length === 0 && this.#mayRead ? this.#nextReadAt : now;
    const at = Math.max(this.#pausedUntil, readAt);
    return this.#limit > 0 && now < at ? at : null;
  }

  /**
   * Removes and returns the next `count` deliveries; an empty array if none may be attempted.
   * `read` returns the waiting ones, oldest first.
   */
  take(count: number, now: number, read: () => Waiting[]): Waiting[] {
    if (this.#waiting.length === 0 && this.#mayRead && now >= this.#nextReadAt) {
      const all = read();
      const ends = all.map(({ type }) => this.#failing.get(type)?.pausedUntil ?? now);
      this.#nextReadAt = Math.min(...ends.filter((end) => end > now));
      this.#mayRead = Number.isFinite(this.#nextReadAt);
      if (!this.#mayRead) this.#nextReadAt = now;
      const ready = all.filter((_one, index) => (ends[index] ?? now) <= now);
      const isTried = ({ id, type }: Waiting) => id <= (this.#failing.get(type)?.lastId ?? 0);
      this.#waiting = [...ready.filter((one) => !isTried(one)), ...ready.filter(isTried)];
    }
    if (this.#waiting.length === 0 && this.#inFlight === 0 && !this.#mayRead) this.#limit = 0;
    return this.#waiting.splice(0, count);
  }

  /** Returns deliveries that were taken and not attempted. */
  putBack(waiting: readonly Waiting[]): void {
    this.#waiting.unshift(...waiting);
  }

  started(): void {
    this.#inFlight += 1;
  }

  /** Is also called after each `succeeded` and `failed`. */
  ended(): void {
    this.#inFlight -= 1;
  }

  /** An early attempt at an event of this type succeeded. */
  succeeded(type: string): void {
    const failing = this.#failing.get(type);
    if (failing) failing.failures = 0;
    this.#limit = Math.min(2 * Math.max(this.#limit, 1), this.#maxInFlight);
  }

  /** An early attempt failed. */
  failed({ id, type }: Waiting, now: number): void {
    this.#limit = 1;
    this.#pausedUntil = now + FIRST_WAIT_MS;
    this.#waiting = this.#waiting.filter((one) => one.type !== type);
    const { failures, pausedUntil } = this.#failing.get(type) ?? { failures: 0, pausedUntil: 0 };
    // Attempts that fail together count once.
    if (now < pausedUntil) return;
    const endsAt = now + Math.min(FIRST_WAIT_MS * 2 ** failures, MAX_WAIT_MS);
    this.#failing.set(type, { failures: failures + 1, pausedUntil: endsAt, lastId: id });
    this.#mayRead = true;
    this.#nextReadAt = Math.min(this.#nextReadAt, endsAt);
  }
}

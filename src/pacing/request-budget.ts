/** At most `requests` in any `perMs`, at most `concurrency` at once. */
export type BudgetSettings = {
  requests: number;
  perMs: number;
  concurrency: number;
};

/**
 * The request budget of an upstream: an exact sliding window. A request counts from its sending until `perMs` after its
 * completion, because the upstream has counted it at some moment in between. So the upstream never counts more than
 * `requests`, wherever its window begins.
 */
export class RequestBudget {
  readonly #settings: BudgetSettings;
  /** Completion times of the requests that still count, as a ring: at most `requests` of them, the oldest at #oldest. */
  readonly #completedAt: Float64Array;
  #oldest = 0;
  #completed = 0;
  #inFlight = 0;

  constructor(settings: BudgetSettings) {
    this.#settings = settings;
    this.#completedAt = new Float64Array(settings.requests);
  }

  /** Number of requests that may be sent now. */
  available(now: number): number {
    const { requests, concurrency } = this.#settings;
    return Math.max(0, Math.min(concurrency - this.#inFlight, requests - this.used(now)));
  }

  /** Number of requests that count now. */
  used(now: number): number {
    while (this.#completed > 0 && (this.#completedAt[this.#oldest] ?? 0) + this.#settings.perMs <= now) {
      this.#oldest = (this.#oldest + 1) % this.#completedAt.length;
      this.#completed--;
    }
    return this.#inFlight + this.#completed;
  }

  /** When an exhausted budget becomes available; Infinity if a request in flight must complete first. */
  availableAt(): number {
    const { requests, concurrency, perMs } = this.#settings;
    if (this.#inFlight >= concurrency) return Number.POSITIVE_INFINITY;
    if (this.#inFlight + this.#completed < requests) return Number.NEGATIVE_INFINITY;
    const oldest = this.#completed > 0 ? this.#completedAt[this.#oldest] : undefined;
    return oldest === undefined ? Number.POSITIVE_INFINITY : oldest + perMs;
  }

  send(): void {
    this.#inFlight++;
  }

  /** A request has completed, or its lease has expired. */
  complete(now: number): void {
    this.#inFlight--;
    this.#count(now);
  }

  /** Exhausts the budget, because the number of requests of an earlier process is unknown. */
  exhaust(now: number): void {
    while (this.used(now) < this.#settings.requests) this.#count(now);
  }

  /** The clock rounds down to whole milliseconds, so a completion that reads `now` may be one millisecond later. */
  #count(now: number): void {
    const ring = this.#completedAt;
    ring[(this.#oldest + this.#completed) % ring.length] = now + 1;
    this.#completed++;
  }
}

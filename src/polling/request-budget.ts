/** At most `requests` in any `perMs`, at most `concurrency` at once. */
export type BudgetSettings = {
  requests: number;
  perMs: number;
  concurrency: number;
};

/**
 * The request budget of an upstream: an exact sliding window. A request counts from its sending
 * until `perMs` after its completion, because the upstream has counted it at some moment in
 * between. So the upstream never counts more than `requests`, wherever its window begins.
 */
export class RequestBudget {
  readonly #settings: BudgetSettings;
  /**
   * The times until which completed requests count, as a ring, the oldest at #oldest. It has room
   * for every request that may count.
   */
  readonly #countsUntil: Float64Array;
  #oldest = 0;
  #completed = 0;
  #inFlight = 0;

  constructor(settings: BudgetSettings) {
    this.#settings = settings;
    this.#countsUntil = new Float64Array(settings.requests);
  }

  get settings(): BudgetSettings {
    return this.#settings;
  }

  /** Number of requests that may be sent now. */
  available(now: number): number {
    const { requests, concurrency } = this.#settings;
    return Math.max(0, Math.min(concurrency - this.#inFlight, requests - this.used(now)));
  }

  /** Number of requests that count now. */
  used(now: number): number {
    while (this.#completed > 0 && this.#countedUntil(0) <= now) {
      this.#oldest = (this.#oldest + 1) % this.#countsUntil.length;
      this.#completed--;
    }
    return this.#inFlight + this.#completed;
  }

  /**
   * When an exhausted budget becomes available; Infinity if a request in flight must complete
   * first.
   */
  availableAt(): number {
    const { requests, concurrency } = this.#settings;
    if (this.#inFlight >= concurrency) return Number.POSITIVE_INFINITY;
    const excess = this.#inFlight + this.#completed - requests;
    if (excess < 0) return Number.NEGATIVE_INFINITY;
    if (excess >= this.#completed) return Number.POSITIVE_INFINITY;
    return this.#countedUntil(excess);
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

  /**
   * The clock rounds down to whole milliseconds, so a completion that reads `now` may be one
   * millisecond later.
   */
  #count(now: number): void {
    const ring = this.#countsUntil;
    ring[(this.#oldest + this.#completed) % ring.length] = now + 1 + this.#settings.perMs;
    this.#completed++;
  }

  /** Until when the completed request at this place counts; 0 is the oldest. */
  #countedUntil(place: number): number {
    return this.#countsUntil[(this.#oldest + place) % this.#countsUntil.length] ?? 0;
  }
}

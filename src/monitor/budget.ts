/** The requests an upstream grants: at most `requests` in any `perMs`, at most `concurrency` at once. */
export type BudgetSettings = {
  requests: number;
  perMs: number;
  concurrency: number;
};

/**
 * An exact sliding window: the moments of the newest `requests` requests in a ring. The next one is allowed once the
 * oldest of them left the window, so no window of `perMs` ever sees more, whatever its start.
 */
export class Budget {
  readonly #settings: BudgetSettings;
  readonly #sentAt: Float64Array;
  #next = 0;

  constructor(settings: BudgetSettings) {
    this.#settings = settings;
    this.#sentAt = new Float64Array(settings.requests).fill(Number.NEGATIVE_INFINITY);
  }

  get concurrency(): number {
    return this.#settings.concurrency;
  }

  /** How many requests may be sent now, `wanted` at most. */
  available(now: number, wanted: number): number {
    const ring = this.#sentAt;
    const most = Math.min(wanted, ring.length);
    let count = 0;
    while (count < most && this.#freeAt(count) <= now) count++;
    return count;
  }

  spend(count: number, now: number): void {
    for (let i = 0; i < count; i++) {
      this.#sentAt[this.#next] = now;
      this.#next = (this.#next + 1) % this.#sentAt.length;
    }
  }

  /** As if everything had just been spent: what a process that died may have sent is not known. */
  exhaust(now: number): void {
    this.#sentAt.fill(now);
  }

  /** When the next request may be sent. */
  availableAt(): number {
    return this.#freeAt(0);
  }

  #freeAt(ahead: number): number {
    const index = (this.#next + ahead) % this.#sentAt.length;
    return (this.#sentAt[index] ?? Number.NEGATIVE_INFINITY) + this.#settings.perMs;
  }
}

/** The requests an upstream grants: at most `requests` in any `perMs`, at most `concurrency` at once. */
export type BudgetSettings = {
  requests: number;
  perMs: number;
  concurrency: number;
};

/**
 * An exact sliding window. A request takes a place when it is sent and gives it back `perMs` after its answer: the upstream
 * saw it somewhere in between, so whenever its window begins, it never counts more than `requests`.
 */
export class Budget {
  readonly #settings: BudgetSettings;
  /** When the newest answers came, as a ring: those are the places that are not given back yet. */
  readonly #answeredAt: Float64Array;
  #oldest = 0;
  #answered = 0;
  #underWay = 0;

  constructor(settings: BudgetSettings) {
    this.#settings = settings;
    this.#answeredAt = new Float64Array(settings.requests);
  }

  /** How many requests may be sent now. */
  available(now: number): number {
    this.#giveBack(now);
    const { requests, concurrency } = this.#settings;
    return Math.max(0, Math.min(concurrency - this.#underWay, requests - this.#underWay - this.#answered));
  }

  /** How many places are taken now. */
  used(now: number): number {
    this.#giveBack(now);
    return this.#underWay + this.#answered;
  }

  /** When there is a place if there is none now; Infinity if that takes an answer first. */
  availableAt(): number {
    const { requests, concurrency, perMs } = this.#settings;
    if (this.#underWay >= concurrency) return Number.POSITIVE_INFINITY;
    if (this.#underWay + this.#answered < requests) return Number.NEGATIVE_INFINITY;
    const oldest = this.#answered > 0 ? this.#answeredAt[this.#oldest] : undefined;
    return oldest === undefined ? Number.POSITIVE_INFINITY : oldest + perMs;
  }

  send(): void {
    this.#underWay++;
  }

  /** An answer came, or will not come any more. */
  complete(now: number): void {
    this.#underWay--;
    this.#keep(now);
  }

  /** As if everything had just been spent: what a process that died may have sent is not known. */
  exhaust(now: number): void {
    this.#giveBack(now);
    while (this.#underWay + this.#answered < this.#settings.requests) this.#keep(now);
  }

  #keep(now: number): void {
    const ring = this.#answeredAt;
    ring[(this.#oldest + this.#answered) % ring.length] = now;
    this.#answered++;
  }

  #giveBack(now: number): void {
    while (this.#answered > 0 && (this.#answeredAt[this.#oldest] ?? 0) + this.#settings.perMs <= now) {
      this.#oldest = (this.#oldest + 1) % this.#answeredAt.length;
      this.#answered--;
    }
  }
}

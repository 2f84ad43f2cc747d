import { BreakerState, type Health } from '../submissions/upstream.ts';

export type BreakerSettings = {
  /** Consecutive failures that open the circuit breaker. */
  failures: number;
  /** Delay of the first probe; it doubles with each further probe. */
  probeMs: number;
  maxProbeMs: number;
};

/**
 * The circuit breaker of an upstream. Closed: all polls are sent. Open: one probe at a time is
 * sent, at growing intervals (for refused credentials always the longest one). The first good
 * response closes the circuit breaker.
 */
export class CircuitBreaker {
  readonly #settings: BreakerSettings;
  readonly #random: () => number;
  #state: BreakerState = BreakerState.closed;
  #openedAt = 0;
  #failures = 0;
  #goodResponses = 0;
  #probes = 0;
  #probeAt = Number.POSITIVE_INFINITY;

  constructor(settings: BreakerSettings, random: () => number) {
    this.#settings = settings;
    this.#random = random;
  }

  get state(): BreakerState {
    return this.#state;
  }

  get isOpen(): boolean {
    return this.#state !== BreakerState.closed;
  }

  /** When it opened, epoch milliseconds; only valid while it is open. */
  get openedAt(): number {
    return this.#openedAt;
  }

  /** When the next probe may be sent; Infinity while closed. */
  get probeAt(): number {
    return this.#probeAt;
  }

  /** The number of good responses so far. */
  get goodResponses(): number {
    return this.#goodResponses;
  }

  /** Continues an outage that an earlier process recorded. */
  restore(state: BreakerState, openedAt: number, now: number): void {
    this.#open(state, openedAt);
    this.#probeAt = now;
  }

  /** Allows a probe at once if open, because the credentials may have changed. */
  probeNow(now: number): void {
    if (this.isOpen) this.#probeAt = now;
  }

  /** A probe was sent. Schedules the next one, in case there is no response. */
  probing(now: number): void {
    this.#probes++;
    this.#scheduleProbe(now);
  }

  /** Adds an observation. Returns the new state if it has changed, otherwise null. */
  observe(health: Health, now: number): BreakerState | null {
    switch (health) {
      case 'neutral':
        return null;
      case 'perhaps_up':
        return this.isOpen ? this.observe('up', now) : null;
      case 'up':
        this.#failures = 0;
        this.#goodResponses++;
        if (!this.isOpen) return null;
        this.#state = BreakerState.closed;
        this.#probes = 0;
        this.#probeAt = Number.POSITIVE_INFINITY;
        return this.#state;
      case 'down':
      case 'unauthorized': {
        this.#failures++;
        // Another failure while open changes the state, but not the start of the outage.
        const opens = this.isOpen
          ? this.#state !== health
          : this.#failures >= this.#settings.failures;
        if (!opens) return null;
        this.#open(health, this.isOpen ? this.#openedAt : now);
        this.#scheduleProbe(now);
        return this.#state;
      }
      default:
        return health satisfies never;
    }
  }

  #open(state: BreakerState, openedAt: number): void {
    this.#state = state;
    this.#openedAt = openedAt;
  }

  #scheduleProbe(now: number): void {
    const { probeMs, maxProbeMs } = this.#settings;
    const growing = Math.min(maxProbeMs, probeMs * 2 ** Math.min(this.#probes, 30));
    const delayMs = this.#state === BreakerState.unauthorized ? maxProbeMs : growing;
    this.#probeAt = now + delayMs * (0.8 + 0.4 * this.#random());
  }
}

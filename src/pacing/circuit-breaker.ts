import { BreakerState, type Health } from '../domain/upstream-health.ts';

export type BreakerSettings = {
  /** So many failures in a row open it. */
  failures: number;
  /** The first probe comes after this, each further one after twice as long. */
  probeMs: number;
  maxProbeMs: number;
};

/**
 * One circuit breaker for an upstream. Closed, everything passes; open, one probe at a time, at growing distance; the
 * first good answer closes it. A refused credential waits at the longest distance at once: asking faster helps nobody.
 */
export class Breaker {
  readonly #settings: BreakerSettings;
  readonly #random: () => number;
  #state: BreakerState = BreakerState.closed;
  #openedAt = 0;
  #badInARow = 0;
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

  /** When it opened, epoch milliseconds; meaningful while it is open. */
  get openedAt(): number {
    return this.#openedAt;
  }

  /** When the next probe may go out. */
  get probeAt(): number {
    return this.#probeAt;
  }

  /** Takes up where a process before this one left an outage. */
  restore(state: BreakerState, openedAt: number, now: number): void {
    this.#open(state, openedAt);
    this.#probeAt = now;
  }

  /** A probe goes out: the next one waits, in case this one is never answered. */
  probing(now: number): void {
    this.#probes++;
    this.#scheduleProbe(now);
  }

  /** Takes note of an answer; says the new state if that changed it. */
  observe(health: Health, now: number): BreakerState | null {
    switch (health) {
      case 'neutral':
        return null;
      case 'perhaps_up':
        return this.isOpen ? this.observe('up', now) : null;
      case 'up':
        this.#badInARow = 0;
        if (!this.isOpen) return null;
        this.#state = BreakerState.closed;
        this.#probes = 0;
        this.#probeAt = Number.POSITIVE_INFINITY;
        return this.#state;
      case 'down':
      case 'unauthorized': {
        this.#badInARow++;
        // Another reason while open is told, but the outage goes on from its start.
        const opens = this.isOpen ? this.#state !== health : this.#badInARow >= this.#settings.failures;
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

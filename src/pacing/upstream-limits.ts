import type { Observation } from '../domain/classify.ts';
import type { PauseRequest } from '../domain/retry-after.ts';
import { type BreakerState, healthOf } from '../domain/upstream-health.ts';
import { type BreakerSettings, CircuitBreaker } from './circuit-breaker.ts';
import { Pause } from './pause.ts';
import { type BudgetSettings, RequestBudget } from './request-budget.ts';

export type UpstreamLimitSettings = {
  budget: BudgetSettings;
  breaker: BreakerSettings;
  /** The lease of a poll: without a result by then, the submission is polled again. */
  leaseMs: number;
};

/**
 * The limits of one upstream: its request budget, the pauses that it requests, and the circuit breaker. All three hold for
 * any number of workers. Times are epoch milliseconds.
 */
export class UpstreamLimits {
  readonly #settings: UpstreamLimitSettings;
  readonly budget: RequestBudget;
  readonly pause = new Pause();
  readonly breaker: CircuitBreaker;

  constructor(settings: UpstreamLimitSettings, random: () => number) {
    this.#settings = settings;
    this.budget = new RequestBudget(settings.budget);
    this.breaker = new CircuitBreaker(settings.breaker, random);
  }

  /** Exhausts the budget if an earlier process, which polled until `polledUntil`, may have used it. */
  resumeBudget(polledUntil: number, now: number): void {
    const { perMs } = this.budget.settings;
    if (now - polledUntil < perMs + this.#settings.leaseMs) this.budget.exhaust(now);
  }

  /** Number of requests that may be sent now; at most one, the probe, while the circuit breaker is open. */
  available(now: number): number {
    if (now < this.pause.until) return 0;
    if (!this.breaker.isOpen) return this.budget.available(now);
    return now < this.breaker.probeAt ? 0 : Math.min(1, this.budget.available(now));
  }

  /** When a request that is due at `dueAt` may be sent; Infinity if a request in flight must complete first. */
  sendableAt(dueAt: number): number {
    const readyAt = this.breaker.isOpen ? this.breaker.probeAt : dueAt;
    return Math.max(readyAt, this.pause.until, this.budget.availableAt());
  }

  /** Charges the budget for a request that is sent now. */
  send(now: number): void {
    this.budget.send();
    if (this.breaker.isOpen) this.breaker.probing(now);
  }

  /** Ends a request other than a poll, for which the budget was charged. `pause`: the time of the next request as requested by its response. */
  complete(pause: PauseRequest | undefined, now: number): void {
    this.budget.complete(now);
    if (pause) this.pause.observe(pause, now);
  }

  /** Learns from a response. Returns the new state of the circuit breaker if it changed, otherwise null. */
  observe(
    observation: Observation,
    known: { seenBefore: boolean; seenAny: boolean },
    now: number,
  ): BreakerState | null {
    this.pause.observe(observation, now);
    return this.breaker.observe(healthOf(observation, known), now);
  }
}

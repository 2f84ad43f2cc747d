import type { Observation } from '../submissions/classify.ts';
import { BreakerState } from '../submissions/upstream.ts';

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

/**
 * The meaning of a response for the state of the upstream. `neutral`: none. `perhaps_up`: none,
 * except that it ends an outage.
 */
export type Health = 'up' | 'perhaps_up' | 'down' | 'unauthorized' | 'neutral';

/**
 * Returns the meaning of an observation for the state of the upstream. `seenBefore`: the upstream
 * has returned this submission before. `seenAny`: the upstream has returned any watched submission
 * before.
 */
function healthOf(
  observation: Observation,
  context: { seenBefore: boolean; seenAny: boolean },
): Health {
  switch (observation.kind) {
    case 'pending':
    case 'finalized':
    case 'error':
    case 'rejected':
      return 'up';
    case 'not_found':
      if (!observation.ambiguous) return 'up';
      // A failing database causes the same response. For a submission that was returned before, it
      // must be a failure. For a new one it has no meaning, but it ends an outage if no returned
      // submission is left to probe with.
      if (context.seenBefore) return 'down';
      return context.seenAny ? 'neutral' : 'perhaps_up';
    case 'unavailable':
      // The 4xx concerns only this request: a few invalid ids must not stop the polling of all
      // others.
      return observation.reason === 'refused' ? 'neutral' : 'down';
    case 'unauthorized':
      return 'unauthorized';
    case 'throttled':
      return 'neutral';
    default:
      return observation satisfies never;
  }
}

export type BreakerSettings = {
  /** Consecutive failures that open the circuit breaker. */
  failures: number;
  /** Delay of the first probe; it doubles with each further probe. */
  probeMs: number;
  maxProbeMs: number;
};

/** A response. `isControl`: it decides whether the upstream or only some submissions fail. */
type Evidence = { submissionId: string; health: Health; isControl: boolean };

/**
 * The circuit breaker of an upstream. Closed (`up`): all polls are sent. Open: one probe at a time
 * is sent, at growing intervals (for refused credentials always the longest one). The first good
 * response closes the circuit breaker.
 *
 * A failed request is evidence about its submission. When several have failed in a row, a control
 * is polled, a submission that did not fail (see ProbeCandidates): the circuit breaker opens if
 * that fails, too.
 */
export class CircuitBreaker {
  readonly #settings: BreakerSettings;
  readonly #random: () => number;
  #state: BreakerState = BreakerState.up;
  #openedAt = 0;
  #failures = 0;
  /** Of which submissions, and how many there were when the newest control was sent. */
  readonly #failed = new Set<string>();
  #controlledFailures = 0;
  #failingSince: number | null = null;
  #goodResponses = 0;
  #probes = 0;
  #probeAt = Number.POSITIVE_INFINITY;
  /** When the last probe was sent, or the circuit breaker opened. */
  #probedAt = Number.NEGATIVE_INFINITY;

  constructor(settings: BreakerSettings, random: () => number) {
    this.#settings = settings;
    this.#random = random;
  }

  get state(): BreakerState {
    return this.#state;
  }

  get isOpen(): boolean {
    return this.#state !== BreakerState.up;
  }

  /** When it opened, epoch milliseconds; only valid while it is open. */
  get openedAt(): number {
    return this.#openedAt;
  }

  /** When the first of the consecutive failures was observed; null: the newest response is good. */
  get failingSince(): number | null {
    return this.#failingSince;
  }

  /** The submissions whose requests have failed since the last good response, or before opening. */
  get failed(): ReadonlySet<string> {
    return this.#failed;
  }

  /** Whether a control must be polled, because requests have failed since the last one was. */
  get needsControl(): boolean {
    const enough = Math.max(this.#settings.failures, this.#controlledFailures + 1);
    return !this.isOpen && this.#failures >= enough;
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
    if (this.isOpen) this.#probeAt = Math.min(this.#probeAt, now);
  }

  /**
   * Allows a probe for a caller, unless the last one was just sent or credentials are refused.
   */
  probeForCaller(now: number): void {
    if (this.#state === BreakerState.down && now >= this.#probedAt + this.#settings.probeMs)
      this.probeNow(now);
  }

  /** A control was sent. If its response decides nothing, the next failure requires another one. */
  controlling(): void {
    this.#controlledFailures = this.#failures;
  }

  /** A probe was sent. Schedules the next one, in case there is no response. */
  probing(now: number): void {
    this.#probes++;
    this.#scheduleProbe(now);
  }

  /** Adds a response. Returns the new state if it has changed, otherwise null. */
  observe({ submissionId, health, isControl }: Evidence, now: number): BreakerState | null {
    switch (health) {
      case 'neutral':
        return null;
      case 'perhaps_up':
        return this.isOpen || isControl ? this.#succeed() : null;
      case 'up':
        return this.#succeed();
      case 'down':
      case 'unauthorized': {
        this.#failures++;
        this.#failingSince ??= now;
        if (!this.isOpen && !isControl) this.#failed.add(submissionId);
        if (!isControl || this.#failures < this.#settings.failures) return null;
        // Another failure while open changes the state, but not the start of the outage.
        if (this.#state === health) return null;
        this.#open(health, this.isOpen ? this.#openedAt : now);
        this.#scheduleProbe(now);
        return this.#state;
      }
      default:
        return health satisfies never;
    }
  }

  #succeed(): BreakerState | null {
    this.#failures = 0;
    this.#failed.clear();
    this.#controlledFailures = 0;
    this.#failingSince = null;
    this.#goodResponses++;
    if (!this.isOpen) return null;
    this.#state = BreakerState.up;
    this.#probes = 0;
    this.#probeAt = Number.POSITIVE_INFINITY;
    return this.#state;
  }

  #open(state: BreakerState, openedAt: number): void {
    this.#state = state;
    this.#openedAt = openedAt;
  }

  #scheduleProbe(now: number): void {
    this.#probedAt = now;
    const { probeMs, maxProbeMs } = this.#settings;
    const growing = Math.min(maxProbeMs, probeMs * 2 ** Math.min(this.#probes, 30));
    const delayMs = this.#state === BreakerState.unauthorized ? maxProbeMs : growing;
    this.#probeAt = now + delayMs * (0.8 + 0.4 * this.#random());
  }
}

/** After a 429 without a usable Retry-After: 1 s, 2 s, 4 s … up to this. */
const MAX_PAUSE_MS = 60_000;

/** The time until which the upstream accepts no requests. */
class Pause {
  #until = Number.NEGATIVE_INFINITY;
  #throttledInARow = 0;

  get until(): number {
    return this.#until;
  }

  /** Continues a pause that an earlier process recorded. */
  restore(until: number): void {
    this.#extend(until);
  }

  observe(observation: Observation, now: number): void {
    if (observation.kind === 'throttled') {
      if (observation.retryAfterMs !== null) this.#extend(now + observation.retryAfterMs);
      // Responses to requests that were sent before the pause do not extend it, unless they contain
      // a time.
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

export type UpstreamLimitSettings = {
  budget: BudgetSettings;
  breaker: BreakerSettings;
  /** The lease of a poll: without a result by then, the submission is polled again. */
  leaseMs: number;
};

/**
 * The limits of one upstream: its request budget, the pauses that it requests, and the circuit
 * breaker. All three hold for any number of workers. Times are epoch milliseconds.
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

  /**
   * Exhausts the budget if an earlier process, which polled until `polledUntil`, may have used it.
   */
  resumeBudget(polledUntil: number, now: number): void {
    const { perMs } = this.budget.settings;
    if (now - polledUntil < perMs + this.#settings.leaseMs) this.budget.exhaust(now);
  }

  /**
   * Number of requests that may be sent now; at most one, the probe, while the circuit breaker is
   * open.
   */
  available(now: number): number {
    if (now < this.pause.until) return 0;
    if (!this.breaker.isOpen) return this.budget.available(now);
    return now < this.breaker.probeAt ? 0 : Math.min(1, this.budget.available(now));
  }

  /**
   * When a request that is due at `dueAt` may be sent; Infinity if a request in flight must
   * complete first.
   */
  sendableAt(dueAt: number): number {
    const readyAt = this.breaker.isOpen ? this.breaker.probeAt : dueAt;
    return Math.max(readyAt, this.pause.until, this.budget.availableAt());
  }

  /**
   * Until when no poll is sent: the end of a pause, when an exhausted budget becomes available or,
   * during an outage, the next probe. -Infinity: none of them is known.
   */
  get closedUntil(): number {
    const { breaker, budget, pause } = this;
    const known = [pause.until, breaker.probeAt, budget.availableAt()].filter(Number.isFinite);
    return Math.max(Number.NEGATIVE_INFINITY, ...known);
  }

  /** Charges the budget for a request that is sent now. */
  send(now: number): void {
    this.budget.send();
    if (this.breaker.isOpen) this.breaker.probing(now);
  }

  /**
   * Learns from a response. Returns the new state of the circuit breaker if it changed, otherwise
   * null.
   */
  observe(
    observation: Observation,
    known: { seenBefore: boolean; seenAny: boolean; isControl: boolean },
    now: number,
  ): BreakerState | null {
    // A 4xx concerns only this request, and so does its Retry-After.
    const isRefused = observation.kind === 'unavailable' && observation.reason === 'refused';
    if (!isRefused) this.pause.observe(observation, now);
    const { submissionId } = observation;
    const health = healthOf(observation, known);
    return this.breaker.observe({ submissionId, health, isControl: known.isControl }, now);
  }
}

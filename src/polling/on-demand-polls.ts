import type { Clock } from '../lib/clock.ts';
import type { Observation } from '../submissions/classify.ts';
import type { Scheduler } from './scheduler.ts';

/**
 * `budget_exhausted`: the request budget did not become available in time. `ledger_unavailable`:
 * the ledger could not be written in time, and nothing is polled until it can. `upstream_down`: the
 * circuit breaker is open. `no_response`: the poll was sent, but no result arrived. `not_polling`:
 * this server is stopping, or does not poll yet.
 */
export type OnDemandFailure =
  | 'budget_exhausted'
  | 'ledger_unavailable'
  | 'upstream_down'
  | 'no_response'
  | 'not_polling';

/** `retryAfterMs`: after which time a retry is reasonable. */
export type OnDemandRefusal = { kind: 'failed'; reason: OnDemandFailure; retryAfterMs: number };

export type OnDemandResult = { kind: 'observed'; observation: Observation } | OnDemandRefusal;

/**
 * `reserved`: one request other than a poll may be sent now; the budget has been charged for it.
 * `cancelled`: by its signal.
 */
export type ReservationResult = { kind: 'reserved' } | { kind: 'cancelled' } | OnDemandRefusal;

type OnDemandPoll = {
  result: Promise<OnDemandResult | ReservationResult>;
  complete: (result: OnDemandResult | ReservationResult) => void;
};

/** An on-demand poll is refused if the request budget is exhausted for longer than this. */
const MAX_ON_DEMAND_WAIT_MS = 10_000;
/**
 * Time limit of a queued poll: one second longer, so that a poll does not expire exactly when the
 * budget becomes available.
 */
export const ON_DEMAND_WAIT_MS = MAX_ON_DEMAND_WAIT_MS + 1_000;
/** More polls do not wait, they are refused. */
const MAX_WAITING = 10_000;
/** Begins the key of a reservation; no submission id contains it. */
const RESERVATION = '\0';

/**
 * The on-demand polls of one upstream, at most one per submission. A poll waits until the request
 * budget is available, then is in flight until it completes. Requests other than polls wait in the
 * same queue, as reservations.
 */
export class OnDemandPolls {
  readonly #scheduler: Scheduler;
  readonly #clock: Clock;
  readonly #isLedgerAvailable: () => boolean;
  /** The keys of the polls that wait, first in, first out. */
  readonly #waiting = new Set<string>();
  readonly #open = new Map<string, OnDemandPoll>();
  #reservations = 0;

  constructor(deps: { scheduler: Scheduler; clock: Clock; isLedgerAvailable: () => boolean }) {
    this.#scheduler = deps.scheduler;
    this.#clock = deps.clock;
    this.#isLedgerAvailable = deps.isLedgerAvailable;
  }

  get isWaiting(): boolean {
    return this.#waiting.size > 0;
  }

  /**
   * Queues a poll of one submission, or joins the one that is open. The poll fails if it still
   * waits after ON_DEMAND_WAIT_MS, or if no result arrives within its lease after that.
   */
  poll(submissionId: string, now: number): Promise<OnDemandResult> {
    const known = this.#open.get(submissionId);
    if (known) return known.result as Promise<OnDemandResult>;
    const refusal = this.#refusalOf({ mayProbe: true }, now);
    if (refusal) return Promise.resolve(refusal);
    return this.#begin(submissionId, this.#scheduler.leaseMs) as Promise<OnDemandResult>;
  }

  /**
   * Queues a request other than a poll. The reservation is cancelled if the signal aborts before
   * its turn.
   */
  reserve(signal: AbortSignal | undefined, now: number): Promise<ReservationResult> {
    const refusal = this.#refusalOf({ mayProbe: false }, now);
    if (refusal) return Promise.resolve(refusal);
    if (signal?.aborted) return Promise.resolve({ kind: 'cancelled' });
    this.#reservations += 1;
    const key = `${RESERVATION}${this.#reservations}`;
    signal?.addEventListener('abort', () => this.#open.get(key)?.complete({ kind: 'cancelled' }), {
      once: true,
    });
    return this.#begin(key, 0) as Promise<ReservationResult>;
  }

  /**
   * Returns the next submission to poll now, and charges the budget. Returns undefined if none can
   * be polled now, or if it was the turn of a reservation, which is granted if the budget allows
   * it.
   */
  take(now: number): string | undefined {
    for (const key of this.#waiting) {
      if (key.startsWith(RESERVATION)) {
        this.#grant(key, now);
        return undefined;
      }
      const state = this.#scheduler.pollNow(key, now);
      if (state === 'wait') return undefined;
      this.#waiting.delete(key);
      if (state === 'sent') return key;
    }
    return undefined;
  }

  #grant(key: string, now: number): void {
    const { limits } = this.#scheduler;
    if (limits.available(now) === 0) return;
    limits.budget.send();
    this.#open.get(key)?.complete({ kind: 'reserved' });
  }

  /**
   * Returns the reason why a request must not wait for the request budget; undefined if it may
   * wait. `mayProbe`: whether it is a poll.
   */
  #refusalOf({ mayProbe }: { mayProbe: boolean }, now: number): OnDemandRefusal | undefined {
    const failed = (reason: OnDemandFailure, retryAfterMs: number) =>
      ({ kind: 'failed', reason, retryAfterMs }) as const;
    const pollAt = this.#scheduler.nextPollAt();
    const waitMs = pollAt === Number.POSITIVE_INFINITY ? 0 : Math.max(0, pollAt - now);
    // During an outage no caller waits: a poll either becomes the probe that is due, or fails
    // immediately.
    if (this.#scheduler.limits.breaker.isOpen && (waitMs > 0 || !mayProbe))
      return failed('upstream_down', waitMs);
    if (waitMs > MAX_ON_DEMAND_WAIT_MS || this.#waiting.size >= MAX_WAITING)
      return failed('budget_exhausted', waitMs);
    return undefined;
  }

  /** `responseMs`: time limit of the result, from the end of the wait. */
  #begin(key: string, responseMs: number): OnDemandPoll['result'] {
    const { promise, resolve } = Promise.withResolvers<OnDemandResult | ReservationResult>();
    const fail = (reason: OnDemandFailure) =>
      complete({ kind: 'failed', reason, retryAfterMs: ON_DEMAND_WAIT_MS });
    let cancelTimer = this.#clock.after(ON_DEMAND_WAIT_MS, () => {
      if (this.#waiting.has(key))
        fail(this.#isLedgerAvailable() ? 'budget_exhausted' : 'ledger_unavailable');
      else cancelTimer = this.#clock.after(responseMs, () => fail('no_response'));
    });
    const complete = (result: OnDemandResult | ReservationResult) => {
      cancelTimer();
      this.#waiting.delete(key);
      this.#open.delete(key);
      resolve(result);
    };
    this.#open.set(key, { result: promise, complete });
    this.#waiting.add(key);
    return promise;
  }

  resolve(observation: Observation): void {
    this.#open.get(observation.submissionId)?.complete({ kind: 'observed', observation });
  }

  /** Fails the requests that wait for the request budget, if the circuit breaker is open. */
  refuseDuringOutage(now: number): void {
    const { breaker } = this.#scheduler.limits;
    if (!breaker.isOpen) return;
    const retryAfterMs = Math.max(1_000, breaker.probeAt - now);
    for (const key of [...this.#waiting])
      this.#open.get(key)?.complete({ kind: 'failed', reason: 'upstream_down', retryAfterMs });
  }

  /** Fails all polls. */
  close(): void {
    for (const { complete } of [...this.#open.values()])
      complete({ kind: 'failed', reason: 'not_polling', retryAfterMs: 1_000 });
  }
}

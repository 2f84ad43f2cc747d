import type { Observation } from '../domain/classify.ts';
import type { Clock } from '../domain/clock.ts';
import { FairQueue, isWithinFairShare } from './fair-queue.ts';

/**
 * `budget_exhausted`: the request budget did not become available in time. `upstream_down`: the circuit breaker is open.
 * `no_response`: the poll was sent, but no result arrived. `stopping`: this server is stopping.
 */
export type OnDemandFailure = 'budget_exhausted' | 'upstream_down' | 'no_response' | 'stopping';

/** `retryAfterMs`: after which time a retry is reasonable. */
export type OnDemandRefusal = { kind: 'failed'; reason: OnDemandFailure; retryAfterMs: number };

export type OnDemandResult = { kind: 'observed'; observation: Observation } | OnDemandRefusal;

/** `reserved`: one request other than a poll may be sent now; the budget has been charged for it. `cancelled`: by its signal. */
export type ReservationResult = { kind: 'reserved' } | { kind: 'cancelled' } | OnDemandRefusal;

type OnDemandPoll = {
  result: Promise<OnDemandResult | ReservationResult>;
  complete: (result: OnDemandResult | ReservationResult) => void;
  /** The clients in whose queues the poll waits; empty once it is in flight. */
  clients: Set<string>;
};

/** Number of waiting polls above which a client with its fair share of them is refused. */
const MAX_WAITING = 10_000;
/** Begins the key of a reservation; no submission id contains it. */
const RESERVATION = '\0';

/**
 * The on-demand polls of one upstream, at most one per submission. A poll waits until the request budget is available, then
 * is in flight until it completes. Clients take turns, so that a client that requests many ids does not delay the others.
 * Requests other than polls wait in the same queue, as reservations.
 */
export class OnDemandPolls {
  readonly #waiting = new FairQueue<string>();
  readonly #open = new Map<string, OnDemandPoll>();
  readonly #clock: Clock;
  #reservations = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  has(submissionId: string): boolean {
    return this.#open.has(submissionId);
  }

  get isWaiting(): boolean {
    return this.#waiting.size > 0;
  }

  /** Returns whether one more poll of this client may wait. */
  mayQueue(client: string): boolean {
    const own = this.#waiting.sizeOf(client);
    const clients = this.#waiting.clients + (own > 0 ? 0 : 1);
    return isWithinFairShare(1, { own, all: this.#waiting.size, limit: MAX_WAITING, clients });
  }

  /** The submission to poll next, or a reservation. */
  get next(): string | undefined {
    return this.#waiting.peek();
  }

  /** Moves the next poll from waiting to in flight. `usedBudget`: this counts as its client's turn. */
  take(usedBudget: boolean): void {
    const submissionId = this.next;
    if (submissionId === undefined) return;
    if (usedBudget) this.#waiting.shift();
    this.#dequeue(submissionId);
  }

  get isReservationNext(): boolean {
    return this.next?.startsWith(RESERVATION) ?? false;
  }

  /** Adds a reservation, which fails if it still waits after `queueMs`, and is cancelled if the signal aborts before its turn. */
  reserve(queueMs: number, client: string, signal?: AbortSignal): Promise<ReservationResult> {
    if (signal?.aborted) return Promise.resolve({ kind: 'cancelled' });
    this.#reservations += 1;
    const key = `${RESERVATION}${this.#reservations}`;
    signal?.addEventListener('abort', () => this.#open.get(key)?.complete({ kind: 'cancelled' }), { once: true });
    return this.#begin(key, { queueMs, responseMs: 0 }, client) as Promise<ReservationResult>;
  }

  /** Completes the next reservation, after the budget was charged. */
  grant(): void {
    const reservation = this.#open.get(this.next ?? '');
    this.take(true);
    reservation?.complete({ kind: 'reserved' });
  }

  /**
   * Adds a poll, or joins the one that is open. The poll fails if it still waits after `queueMs`, or if no result arrives
   * within `responseMs` after that.
   */
  add(
    submissionId: string,
    { queueMs, responseMs }: { queueMs: number; responseMs: number },
    client: string,
  ): Promise<OnDemandResult> {
    const known = this.#open.get(submissionId);
    if (!known) return this.#begin(submissionId, { queueMs, responseMs }, client) as Promise<OnDemandResult>;
    if (known.clients.size > 0) this.#enqueue(submissionId, known, client);
    return known.result as Promise<OnDemandResult>;
  }

  #begin(
    submissionId: string,
    { queueMs, responseMs }: { queueMs: number; responseMs: number },
    client: string,
  ): OnDemandPoll['result'] {
    const { promise, resolve } = Promise.withResolvers<OnDemandResult | ReservationResult>();
    const fail = (reason: OnDemandFailure) => complete({ kind: 'failed', reason, retryAfterMs: queueMs });
    let cancelTimer = this.#clock.after(queueMs, () => {
      if (poll.clients.size > 0) fail('budget_exhausted');
      else cancelTimer = this.#clock.after(responseMs, () => fail('no_response'));
    });
    const complete = (result: OnDemandResult | ReservationResult) => {
      cancelTimer();
      this.#dequeue(submissionId);
      this.#open.delete(submissionId);
      resolve(result);
    };
    const poll: OnDemandPoll = { result: promise, complete, clients: new Set() };
    this.#open.set(submissionId, poll);
    this.#enqueue(submissionId, poll, client);
    return promise;
  }

  resolve(observation: Observation): void {
    this.#open.get(observation.submissionId)?.complete({ kind: 'observed', observation });
  }

  /** Fails the polls that are not in flight, because the circuit breaker has opened. */
  rejectWaiting(retryAfterMs: number): void {
    for (const { clients, complete } of [...this.#open.values()])
      if (clients.size > 0) complete({ kind: 'failed', reason: 'upstream_down', retryAfterMs });
  }

  /** Fails all polls. */
  close(): void {
    for (const { complete } of [...this.#open.values()])
      complete({ kind: 'failed', reason: 'stopping', retryAfterMs: 1_000 });
  }

  #enqueue(submissionId: string, { clients }: OnDemandPoll, client: string): void {
    clients.add(client);
    this.#waiting.add(client, submissionId);
  }

  #dequeue(submissionId: string): void {
    const { clients } = this.#open.get(submissionId) ?? {};
    for (const client of clients ?? []) this.#waiting.delete(client, submissionId);
    clients?.clear();
  }
}

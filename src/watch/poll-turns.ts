import type { Scheduler } from '../pacing/scheduler.ts';
import type {
  OnDemandFailure,
  OnDemandPolls,
  OnDemandRefusal,
  OnDemandResult,
  ReservationResult,
} from './on-demand-polls.ts';

/** An on-demand poll is refused if the request budget is exhausted for longer than this. */
const MAX_ON_DEMAND_WAIT_MS = 10_000;
/** Time limit of a queued poll: one second longer, so that a poll does not expire exactly when the budget becomes available. */
export const ON_DEMAND_WAIT_MS = MAX_ON_DEMAND_WAIT_MS + 1_000;

/** Selects the next request within the request budget. On-demand and scheduled polls alternate, so that neither kind starves the other. */
export class PollTurns {
  readonly #scheduler: Scheduler;
  readonly #onDemand: OnDemandPolls;
  #isOnDemandNext = false;

  constructor(scheduler: Scheduler, onDemand: OnDemandPolls) {
    this.#scheduler = scheduler;
    this.#onDemand = onDemand;
  }

  /** Queues a poll of one submission, or joins the one that is open. */
  poll(submissionId: string, client: string, now: number): Promise<OnDemandResult> {
    const isJoined = this.#onDemand.has(submissionId);
    const refusal = isJoined ? undefined : this.#refusalOf(client, { mayProbe: true }, now);
    if (refusal) return Promise.resolve(refusal);
    const limits = { queueMs: ON_DEMAND_WAIT_MS, responseMs: this.#scheduler.leaseMs };
    return this.#onDemand.add(submissionId, limits, client);
  }

  /** Queues a request other than a poll. */
  reserve(client: string, signal: AbortSignal | undefined, now: number): Promise<ReservationResult> {
    const refusal = this.#refusalOf(client, { mayProbe: false }, now);
    return refusal ? Promise.resolve(refusal) : this.#onDemand.reserve(ON_DEMAND_WAIT_MS, client, signal);
  }

  /** Fails the requests that wait for the request budget, if the circuit breaker is open. */
  refuseDuringOutage(now: number): void {
    const { breaker } = this.#scheduler.limits;
    if (breaker.isOpen) this.#onDemand.rejectWaiting(Math.max(1_000, breaker.probeAt - now));
  }

  /** Returns the reason why a request of this client must not wait for the request budget; undefined if it may wait. `mayProbe`: whether it is a poll. */
  #refusalOf(client: string, { mayProbe }: { mayProbe: boolean }, now: number): OnDemandRefusal | undefined {
    const failed = (reason: OnDemandFailure, retryAfterMs: number) =>
      ({ kind: 'failed', reason, retryAfterMs }) as const;
    const pollAt = this.#scheduler.nextPollAt();
    const waitMs = pollAt === Number.POSITIVE_INFINITY ? 0 : Math.max(0, pollAt - now);
    // During an outage no caller waits: a poll either becomes the probe that is due, or fails immediately.
    if (this.#scheduler.limits.breaker.isOpen && (waitMs > 0 || !mayProbe)) return failed('upstream_down', waitMs);
    if (waitMs > MAX_ON_DEMAND_WAIT_MS || !this.#onDemand.mayQueue(client)) return failed('budget_exhausted', waitMs);
    return undefined;
  }

  /** Returns at most `most` submissions to poll now, and grants the reservations whose turn it is. The budget is charged. */
  take(now: number, most: number): string[] {
    const batch: string[] = [];
    while (batch.length < most) {
      const first = this.#isOnDemandNext ? this.#takeOnDemand(now) : undefined;
      const scheduled = first === undefined ? this.#scheduler.next(now, 1)[0] : undefined;
      const submissionId = first ?? scheduled ?? this.#takeOnDemand(now);
      if (submissionId === undefined) return batch;
      this.#isOnDemandNext = scheduled !== undefined;
      batch.push(submissionId);
    }
    return batch;
  }

  /** Returns undefined if none can be sent now, or if it was the turn of a reservation. */
  #takeOnDemand(now: number): string | undefined {
    for (let submissionId = this.#onDemand.next; submissionId !== undefined; submissionId = this.#onDemand.next) {
      if (this.#onDemand.isReservationNext) return this.#grantReservation(now);
      const state = this.#scheduler.pollNow(submissionId, now);
      if (state === 'wait') return undefined;
      this.#onDemand.take(state === 'sent');
      if (state === 'sent') return submissionId;
    }
    return undefined;
  }

  #grantReservation(now: number): undefined {
    const { limits } = this.#scheduler;
    if (limits.available(now) === 0) return undefined;
    limits.budget.send();
    this.#onDemand.grant();
    return undefined;
  }
}

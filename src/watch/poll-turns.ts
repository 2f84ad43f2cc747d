import type { Scheduler } from '../pacing/scheduler.ts';
import type { OnDemandFailure, OnDemandPolls, OnDemandRefusal } from './on-demand-polls.ts';

/** An on-demand poll is refused if the request budget is exhausted for longer than this. */
export const MAX_ON_DEMAND_WAIT_MS = 10_000;

/** Chooses what is sent next within the request budget. On-demand and scheduled polls alternate, so that neither can starve the other. */
export class PollTurns {
  readonly #scheduler: Scheduler;
  readonly #onDemand: OnDemandPolls;
  #isOnDemandNext = false;

  constructor(scheduler: Scheduler, onDemand: OnDemandPolls) {
    this.#scheduler = scheduler;
    this.#onDemand = onDemand;
  }

  /** Returns why no request of this client may wait for the request budget; undefined: it may. `mayProbe`: it is a poll. */
  refusalOf(client: string, { mayProbe }: { mayProbe: boolean }, now: number): OnDemandRefusal | undefined {
    const failed = (reason: OnDemandFailure, retryAfterMs: number) =>
      ({ kind: 'failed', reason, retryAfterMs }) as const;
    const pollAt = this.#scheduler.nextPollAt();
    const waitMs = pollAt === Number.POSITIVE_INFINITY ? 0 : Math.max(0, pollAt - now);
    // During an outage no caller waits: a poll either becomes the probe that is due, or fails immediately.
    if (this.#scheduler.limits.breaker.isOpen && (waitMs > 0 || !mayProbe)) return failed('upstream_down', waitMs);
    if (waitMs > MAX_ON_DEMAND_WAIT_MS || !this.#onDemand.mayQueue(client)) return failed('budget_exhausted', waitMs);
    return undefined;
  }

  /** Returns the submissions to poll now, and grants the reservations whose turn it is. The budget is charged. */
  take(now: number): string[] {
    const batch: string[] = [];
    for (;;) {
      const first = this.#isOnDemandNext ? this.#takeOnDemand(now) : undefined;
      const scheduled = first === undefined ? this.#scheduler.next(now, 1)[0] : undefined;
      const submissionId = first ?? scheduled ?? this.#takeOnDemand(now);
      if (submissionId === undefined) return batch;
      this.#isOnDemandNext = scheduled !== undefined;
      batch.push(submissionId);
    }
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

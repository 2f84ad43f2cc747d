import type { Candidate } from '../policy.ts';
import { type Cohort, WaitingLine } from '../waiting-line.ts';
import { SenderCount } from './sender-count.ts';
import type { Start } from './slot-model.ts';

/** A serial sender waits this long for finality, then sends the next submission. */
const TIMEOUT_MS = 120_000;
/** A submission that still fails at this age probably fails every time. A stall of the chain is over by then. */
const FAILING_MS = 600_000;

/**
 * The submissions of an upstream as a queue with several servers in order of arrival: they wait for one of the upstream's
 * senders first, then for finality. Times are epoch milliseconds.
 */
export class SenderQueue {
  readonly line = new WaitingLine();
  readonly count: SenderCount;
  /** Times at which submissions were queued again after a failure. */
  readonly #requeuedAt = new Map<Candidate, number>();

  constructor(senders: number | null = null) {
    this.count = new SenderCount(senders ?? Number.POSITIVE_INFINITY);
  }

  /** Estimated number of serial senders; null if all submissions are sent at once. */
  get senders(): number | null {
    return this.count.best === Number.POSITIVE_INFINITY ? null : this.count.best;
  }

  queuedAt(item: Candidate): number {
    return this.#requeuedAt.get(item) ?? item.trackedAt;
  }

  remove(item: Candidate, at: number): void {
    if (item.order === 0) return;
    this.line.remove(item);
    this.count.depart(at);
  }

  /** Deletes the requeue time of a submission that is no longer polled. */
  clearRequeue(item: Candidate): void {
    this.#requeuedAt.delete(item);
  }

  /** Moves a submission to the end, because the upstream sends it again behind the others. */
  requeue(item: Candidate, at: number): void {
    this.remove(item, at);
    this.#requeuedAt.set(item, at);
    this.line.append(item);
  }

  /**
   * Moves a submission that has failed to the end, because the upstream sends it again behind the others. An old one is removed: the
   * distribution of age then decides when to poll it.
   */
  requeueFailed(item: Candidate, at: number): void {
    if (at - item.trackedAt > FAILING_MS) this.remove(item, at);
    else this.requeue(item, at);
  }

  /** Assigns the submissions that have been sent to cohorts, by their start, and yields them. */
  *begin(startOf: (beganAt: number) => Start): Generator<{ item: Candidate; cohort: Cohort }> {
    for (let item = this.line.next; item; item = this.line.next) {
      const beganAt = this.count.beganAt(item.order, this.queuedAt(item));
      if (beganAt === null) return;
      yield { item, cohort: this.line.begin(item, startOf(beganAt)) };
    }
  }

  /** Removes the cohorts of slots before `oldestSlot`, and requeues or removes submissions whose sender has timed out. */
  expire(oldestSlot: number, now: number): void {
    const { cohorts } = this.line;
    for (let cohort = cohorts[0]; cohort; cohort = this.line.cohorts[0]) {
      const isEmpty = cohort.size === 0 && this.line.cohorts.length > 1;
      if (!isEmpty && cohort.slot >= oldestSlot) break;
      for (const _ of this.line.dropOldest()) this.count.depart(now);
    }
    if (this.senders === null) return;
    for (let item = this.line.first; item && this.line.cohortOf(item); item = this.line.first) {
      const timeoutAt = (this.count.beganAt(item.order, this.queuedAt(item)) ?? now) + TIMEOUT_MS;
      if (now < timeoutAt) return;
      // A submission is requeued only once.
      if (this.#requeuedAt.has(item)) this.remove(item, timeoutAt);
      else this.requeue(item, timeoutAt);
    }
  }
}

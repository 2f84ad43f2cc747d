import type { Candidate } from '../policy.ts';
import { type Cohort, WaitingLine } from '../waiting-line.ts';
import { SenderCount } from './sender-count.ts';
import type { Start } from './slot-model.ts';

/** A serial sender waits this long for finality, then sends the next submission. */
const TIMEOUT_MS = 120_000;
/**
 * A submission probably fails every time if it has failed for this time, several times while others that were queued later became
 * final. In a stall of the chain, all fail. The longer time applies if there are no others.
 */
const FAILING = { forMs: 600_000, alone: 3, atMostMs: 1_800_000 };

/** A submission that was queued again. Times are epoch milliseconds. */
type Requeued = {
  at: number;
  /** When it was queued again for the first time. */
  since: number;
  /** How often it failed while others succeeded: another one, queued after `comparedAt`, became final. */
  alone: number;
  /** When `alone` was last increased; at first, when it was tracked. */
  comparedAt: number;
};

/**
 * The submissions of an upstream as a queue with several servers in order of arrival: they wait for one of the upstream's
 * senders first, then for finality. Times are epoch milliseconds.
 */
export class SenderQueue {
  readonly line = new WaitingLine();
  readonly count: SenderCount;
  /** Submissions that were queued again after a failure. */
  readonly #requeued = new Map<Candidate, Requeued>();
  /** The latest time at which a submission was queued that has become final. */
  #finalQueuedAt = Number.NEGATIVE_INFINITY;

  constructor(senders: number | null = null) {
    this.count = new SenderCount(senders ?? Number.POSITIVE_INFINITY);
  }

  /** Estimated number of serial senders; null if all submissions are sent at once. */
  get senders(): number | null {
    return this.count.best === Number.POSITIVE_INFINITY ? null : this.count.best;
  }

  queuedAt(item: Candidate): number {
    return this.#requeued.get(item)?.at ?? item.trackedAt;
  }

  remove(item: Candidate, at: number): void {
    if (item.order === 0) return;
    this.line.remove(item);
    this.count.depart(at);
  }

  /** Removes a submission that was final at `at`. */
  removeFinal(item: Candidate, at: number): void {
    this.#finalQueuedAt = Math.max(this.#finalQueuedAt, this.queuedAt(item));
    this.remove(item, at);
  }

  /** Deletes the failures of a submission that is no longer polled. */
  clearRequeue(item: Candidate): void {
    this.#requeued.delete(item);
  }

  /**
   * Moves a submission that has failed to the end, because the upstream sends it again behind the others. One that probably fails
   * every time is removed: the distribution of age then decides when to poll it.
   */
  requeue(item: Candidate, at: number): void {
    const { trackedAt } = item;
    const failed = this.#requeued.get(item) ?? { at: trackedAt, since: at, alone: 0, comparedAt: trackedAt };
    this.#requeued.set(item, failed);
    this.remove(item, at);
    if (this.#finalQueuedAt > failed.comparedAt) {
      failed.alone += 1;
      failed.comparedAt = at;
    }
    const failingMs = at - failed.since;
    if (failingMs > FAILING.atMostMs || (failingMs > FAILING.forMs && failed.alone >= FAILING.alone)) return;
    failed.at = at;
    this.line.append(item);
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
      if (this.#requeued.has(item)) this.remove(item, timeoutAt);
      else this.requeue(item, timeoutAt);
    }
  }
}

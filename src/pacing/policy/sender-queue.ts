import type { Candidate } from '../policy.ts';
import { type Cohort, WaitingLine } from '../waiting-line.ts';
import { SenderCount } from './sender-count.ts';
import type { Start } from './slot-model.ts';

/** A serial sender waits for finality for so long; then it takes the next submission. */
const TIMEOUT_MS = 120_000;

/**
 * A queue with several servers, served in the order of arrival: submissions that wait for one of the upstream's senders, and
 * behind that for finality. Times are epoch milliseconds.
 */
export class SenderQueue {
  readonly #line = new WaitingLine();
  #senders: SenderCount;
  /** When submissions whose sending failed were queued again. */
  readonly #requeuedAt = new Map<Candidate, number>();

  constructor(senders: number | null = null) {
    this.#senders = new SenderCount(senders ?? Number.POSITIVE_INFINITY);
  }

  get line(): Omit<WaitingLine, 'append' | 'remove' | 'begin' | 'dropOldest' | 'restart'> {
    return this.#line;
  }

  /** Null: all are sent at once. */
  get senders(): number | null {
    return this.#senders.best === Number.POSITIVE_INFINITY ? null : this.#senders.best;
  }

  queuedAt(item: Candidate): number {
    return this.#requeuedAt.get(item) ?? item.trackedAt;
  }

  append(item: Candidate): void {
    this.#line.append(item);
  }

  remove(item: Candidate, at: number): void {
    if (item.order === 0) return;
    this.#line.remove(item);
    this.#senders.depart(at);
  }

  /** Nobody asks about it any more. */
  clearRequeue(item: Candidate): void {
    this.#requeuedAt.delete(item);
  }

  /** The upstream sends it again, behind the others. */
  requeue(item: Candidate, at: number): void {
    this.remove(item, at);
    this.#requeuedAt.set(item, at);
    this.#line.append(item);
  }

  /** Takes those that are sent now into cohorts, by where they begin to wait for finality. */
  *begin(startOf: (beganAt: number) => Start): Generator<{ item: Candidate; cohort: Cohort }> {
    for (let item = this.#line.next; item; item = this.#line.next) {
      const beganAt = this.#senders.beganAt(item.order, this.queuedAt(item));
      if (beganAt === null) return;
      yield { item, cohort: this.#line.begin(item, startOf(beganAt)) };
    }
  }

  /** Lets go of those that began to wait before this slot, and of those whose sender has given them up. */
  expire(oldestSlot: number, now: number): void {
    const { cohorts } = this.#line;
    for (let cohort = cohorts[0]; cohort; cohort = this.#line.cohorts[0]) {
      const isEmpty = cohort.size === 0 && this.#line.cohorts.length > 1;
      if (!isEmpty && cohort.slot >= oldestSlot) break;
      for (const _ of this.#line.dropOldest()) this.#senders.depart(now);
    }
    if (this.senders === null) return;
    for (let item = this.#line.first; item && this.#line.cohortOf(item); item = this.#line.first) {
      const givenUpAt = (this.#senders.beganAt(item.order, this.queuedAt(item)) ?? now) + TIMEOUT_MS;
      if (now < givenUpAt) return;
      // It is sent again behind the others, but only once.
      if (this.#requeuedAt.has(item)) this.remove(item, givenUpAt);
      else this.requeue(item, givenUpAt);
    }
  }

  /** All begin anew, by what is known now. */
  restart(): void {
    this.#line.restart();
  }

  /** When submission number `order` began to be sent; null: not yet. */
  beganAt(order: number, queuedAt: number): number | null {
    return this.#senders.beganAt(order, queuedAt);
  }

  /** One that has not begun by all that is known is final: those before it have departed. */
  catchUp(item: Candidate, at: number): void {
    if (!this.#line.cohortOf(item)) this.#senders.catchUp(item.order, at);
  }

  /** Learns from one that was final in this slot. Returns whether another number of senders is believed now. */
  learn(...final: Parameters<SenderCount['learn']>): boolean {
    return this.#senders.learn(...final);
  }
}

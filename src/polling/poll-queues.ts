import { DueQueue } from '../lib/due-queue.ts';
import { Backlog, type Rating } from './backlog.ts';
import type { Entry } from './entry.ts';

/**
 * The queues of one upstream. Each entry is in exactly one: waiting (not due), backlog (due) or
 * leased (in flight). An entry in flight returns to the waiting queue, or leaves, when its poll
 * completes or its lease expires.
 */
export class PollQueues {
  readonly #waiting = new DueQueue<Entry>();
  readonly #backlog: Backlog;
  readonly #leased = new DueQueue<Entry>();
  /** Latest poll times of some entries, which limit their due times. */
  readonly #pollBy = new WeakMap<Entry, number>();

  /** `rate` compares the due polls while the request budget does not allow all of them. */
  constructor(rate: (entry: Entry, now: number) => Rating) {
    this.#backlog = new Backlog(rate);
  }

  get inFlight(): number {
    return this.#leased.size;
  }

  isInFlight(entry: Entry): boolean {
    return this.#leased.has(entry);
  }

  /** The entry with the earliest due time that is not in flight. */
  get earliest(): Entry | undefined {
    return this.#backlog.longestDue ?? this.#waiting.earliest;
  }

  /** The entry whose lease expires first. */
  get earliestLease(): Entry | undefined {
    return this.#leased.earliest;
  }

  /** Returns the entry that is polled next. It stays in its queue. */
  best(now: number): Entry | undefined {
    return this.#backlog.best(now) ?? this.#waiting.earliest;
  }

  /**
   * Returns the due entry to poll now; undefined if none is due. It stays in its queue.
   * `available`: number of polls that the request budget allows.
   */
  due(available: number, now: number): Entry | undefined {
    for (
      let due = this.#waiting.earliest;
      due && due.dueAt <= now && !this.#backlog.isFull;
      due = this.#waiting.earliest
    ) {
      this.#waiting.remove(due);
      this.#backlog.add(due);
    }
    return this.#backlog.size > available ? this.#backlog.best(now) : this.#backlog.longestDue;
  }

  /** Adds an entry that is in no queue, or moves one that is not in flight. */
  schedule(entry: Entry, dueAt: number): void {
    this.remove(entry);
    entry.dueAt = Math.min(dueAt, this.#pollBy.get(entry) ?? dueAt);
    this.#waiting.add(entry);
  }

  /** Moves an entry, unless it is in flight. */
  reschedule(entry: Entry, dueAt: number): void {
    if (!this.isInFlight(entry)) this.schedule(entry, dueAt);
  }

  /** Makes an entry due at `at` at the latest, until its first poll at or after `at`. */
  pollBy(entry: Entry, at: number): void {
    this.#pollBy.set(entry, at);
    this.reschedule(entry, entry.dueAt);
  }

  /** Whether the latest poll time of the entry has been reached. */
  mustPoll(entry: Entry, now: number): boolean {
    return (this.#pollBy.get(entry) ?? Number.POSITIVE_INFINITY) <= now;
  }

  /** Removes an entry that is not in flight. */
  remove(entry: Entry): void {
    if (!this.#backlog.remove(entry) && this.#waiting.has(entry)) this.#waiting.remove(entry);
  }

  /** Moves an entry into flight. */
  lease(entry: Entry, now: number, leaseMs: number): void {
    if (this.mustPoll(entry, now)) this.#pollBy.delete(entry);
    if (!this.#backlog.take(entry)) this.remove(entry);
    entry.dueAt = now + leaseMs;
    this.#leased.add(entry);
  }

  /** Removes an entry from its queue. Returns whether it was in flight. */
  release(entry: Entry): boolean {
    const wasInFlight = this.#leased.has(entry);
    if (wasInFlight) this.#leased.remove(entry);
    else this.remove(entry);
    return wasInFlight;
  }
}

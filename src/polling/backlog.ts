import type { Entry } from './entry.ts';

/** Maximum number of due polls that are compared. Further ones wait in the due queue. */
const MAX_COMPARED = 256;
/** A rating expires after this time, because the gain of a poll changes while the poll waits. */
const RATING_MS = 1_000;

/**
 * `gain`: probability that the poll finds the submission final. `isOverdue`: the longest time that
 * the submission may be left unpolled has passed.
 */
export type Rating = { gain: number; isOverdue: boolean };

/**
 * The due polls. If the request budget does not allow all of them, they are sent by descending
 * gain, except that every second request goes to the overdue submission that has been due longest.
 * So no overdue submission starves.
 */
export class Backlog {
  /** In the order of the due times. null: not rated yet. */
  readonly #entries = new Map<Entry, (Rating & { ratedAt: number }) | null>();
  readonly #rate: (entry: Entry, now: number) => Rating;
  #lastWasOverdue = false;

  constructor(rate: (entry: Entry, now: number) => Rating) {
    this.#rate = rate;
  }

  get size(): number {
    return this.#entries.size;
  }

  get isFull(): boolean {
    return this.#entries.size >= MAX_COMPARED;
  }

  get longestDue(): Entry | undefined {
    for (const entry of this.#entries.keys()) return entry;
    return undefined;
  }

  add(entry: Entry): void {
    this.#entries.set(entry, null);
  }

  /** Returns whether the entry was in the backlog. */
  remove(entry: Entry): boolean {
    return this.#entries.delete(entry);
  }

  /**
   * Removes an entry that is polled now, and counts it for the alternation. Returns whether it was
   * in the backlog.
   */
  take(entry: Entry): boolean {
    const rating = this.#entries.get(entry);
    if (rating) this.#lastWasOverdue = rating.isOverdue;
    return this.#entries.delete(entry);
  }

  /** Returns the entry to poll next; undefined if the backlog is empty. */
  best(now: number): Entry | undefined {
    let best: Entry | undefined;
    let bestGain = Number.NEGATIVE_INFINITY;
    let overdue: Entry | undefined;
    for (const [entry, known] of this.#entries) {
      let rating = known;
      if (!rating || Math.abs(now - rating.ratedAt) >= RATING_MS) {
        rating = { ...this.#rate(entry, now), ratedAt: now };
        this.#entries.set(entry, rating);
      }
      if (rating.isOverdue) overdue ??= entry;
      if (rating.gain > bestGain) [best, bestGain] = [entry, rating.gain];
    }
    return (this.#lastWasOverdue ? undefined : overdue) ?? best;
  }
}

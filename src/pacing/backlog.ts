import type { Entry } from './entry.ts';

/** So many due polls are compared; what is due beyond them waits in the order of its due times. */
const MOST_COMPARED = 256;
/** A rating is computed anew after this: what a poll gains changes while it waits. */
const RATING_MS = 1_000;

/** `gain`: the probability that the poll finds the submission final. `isOverdue`: its safety limit has passed. */
export type Rating = { gain: number; isOverdue: boolean };

/**
 * Due polls, ordered when the request budget has no room for all of them: by gain, except that every second place goes to
 * the longest due submission whose safety limit has passed, so that none of those starves.
 */
export class Backlog {
  /** In the order of their due times. null: not rated yet. */
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
    return this.#entries.size >= MOST_COMPARED;
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

  /** Removes an entry that is polled now. Returns whether it was in the backlog. */
  take(entry: Entry): boolean {
    const rating = this.#entries.get(entry);
    if (rating) this.#lastWasOverdue = rating.isOverdue;
    return this.#entries.delete(entry);
  }

  /** The entry to poll next. */
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

import type { Candidate } from './policy.ts';

/** Places that are let go of at once, so that a long line is not copied for each. */
const TRIMMED = 1_024;

/** Submissions that began to wait in the same slot and zone. They are consecutive in the line, from order `first` on. */
export type Cohort = {
  readonly slot: number;
  readonly zone: number;
  readonly first: number;
  /** How many of them are left. */
  size: number;
  /** The newest moment at which one of them was open. */
  openAt: number;
  /** The one that is polled on behalf of all, and how many they were when it was chosen. */
  scout: Candidate | null;
  scoutedFor: number;
};

/**
 * Submissions in the order of tracking, each with its number in that order, from 1. Those at the front have begun to wait for
 * finality and are in cohorts; those behind them wait for a sender.
 */
export class WaitingLine {
  #items: (Candidate | undefined)[] = [];
  /** Order of the first place in `#items`. */
  #base = 1;
  /** Orders below this one have begun. */
  #begun = 1;
  #cohorts: Cohort[] = [];
  size = 0;

  get cohorts(): readonly Cohort[] {
    return this.#cohorts;
  }

  /** The one that has waited longest. */
  get first(): Candidate | undefined {
    let order = this.#base;
    while (order < this.#end && !this.#at(order)) order++;
    this.#trim(order);
    return this.#at(order);
  }

  /** The first one behind this order, whatever is left before it. */
  firstAfter(order: number): Candidate | undefined {
    let next = Math.max(order + 1, this.#base);
    while (next < this.#end && !this.#at(next)) next++;
    return this.#at(next);
  }

  /** The next one to begin. */
  get next(): Candidate | undefined {
    while (this.#begun < this.#end && !this.#at(this.#begun)) this.#begun++;
    return this.#at(this.#begun);
  }

  append(item: Candidate): void {
    item.order = this.#end;
    this.#items.push(item);
    this.size++;
  }

  remove(item: Candidate): void {
    const cohort = this.cohortOf(item);
    if (cohort) {
      cohort.size--;
      if (cohort.scout === item) cohort.scout = null;
    }
    this.#items[item.order - this.#base] = undefined;
    item.order = 0;
    this.size--;
  }

  /** The next one begins to wait, and joins the last cohort if that is of this slot and zone, or a later slot. */
  begin(item: Candidate, { slot, zone }: { slot: number; zone: number }): Cohort {
    let cohort = this.#cohorts.at(-1);
    if (!cohort || cohort.slot < slot || (cohort.slot === slot && cohort.zone !== zone)) {
      cohort = { slot, zone, first: item.order, size: 0, openAt: -Infinity, scout: null, scoutedFor: 0 };
      this.#cohorts.push(cohort);
    }
    cohort.size++;
    this.#begun = item.order + 1;
    return cohort;
  }

  /** Null: it has not begun, or left. */
  cohortOf({ order }: Candidate): Cohort | null {
    if (order === 0 || order >= this.#begun) return null;
    return this.#cohorts.findLast(({ first }) => first <= order) ?? null;
  }

  /** The members of a cohort, those behind `order` first. */
  *membersOf(cohort: Cohort, order = 0): Generator<Candidate> {
    const end = this.#cohorts[this.#cohorts.indexOf(cohort) + 1]?.first ?? this.#begun;
    const span = end - cohort.first;
    const offset = Math.max(0, order + 1 - cohort.first);
    for (let step = 0; step < span; step++) {
      const item = this.#at(cohort.first + ((offset + step) % span));
      if (item) yield item;
    }
  }

  /** Removes the oldest cohort with all its members, and returns those. */
  dropOldest(): Candidate[] {
    const oldest = this.#cohorts[0];
    const members = oldest ? [...this.membersOf(oldest)] : [];
    for (const item of members) this.remove(item);
    this.#cohorts.shift();
    this.#trim(this.#cohorts[0]?.first ?? this.#begun);
    return members;
  }

  /** Nobody has begun any more. */
  restart(): void {
    this.#cohorts = [];
    this.#begun = this.#base;
  }

  get #end(): number {
    return this.#base + this.#items.length;
  }

  #at(order: number): Candidate | undefined {
    return this.#items[order - this.#base];
  }

  /** Lets go of the places before `order`. */
  #trim(order: number): void {
    const count = order - this.#base;
    if (count < TRIMMED && count * 2 < this.#items.length) return;
    this.#items = this.#items.slice(count);
    this.#base = order;
  }
}

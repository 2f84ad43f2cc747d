import type { Candidate } from './port.ts';

/**
 * Minimum number of leading elements that are freed at once, so that a long line is not copied for
 * each.
 */
const TRIM_SIZE = 1_024;

/**
 * Submissions that began to wait for finality in the same slot (the period in which a chain makes
 * one block) and the same zone (see slots-to-wait.ts), and so are likely to become final together.
 * They are consecutive in the line, from order `first` on.
 */
export type Cohort = {
  readonly slot: number;
  readonly zone: number;
  readonly first: number;
  /** Number of members left. */
  size: number;
  /** Newest time at which a poll found a member open, epoch ms. */
  openAt: number;
  /**
   * The member that is polled first, on behalf of all, and the size of the cohort when it was
   * chosen.
   */
  scout: Candidate | null;
  scoutedFor: number;
};

/**
 * Submissions in the order of tracking, numbered from 1 (`order`). Those at the front have begun to
 * wait for finality and belong to cohorts. Those behind them wait until the upstream sends them to
 * the chain.
 */
export class WaitingLine {
  #items: (Candidate | undefined)[] = [];
  /** Order of the first element of `#items`. */
  #base = 1;
  /** Submissions of lower order have begun to wait for finality. */
  #begun = 1;
  #cohorts: Cohort[] = [];
  /**
   * The result of the newest `firstAfter`. Removed positions stay empty, so the next search
   * continues from here.
   */
  #found = { after: 0, order: 1 };
  size = 0;

  get cohorts(): readonly Cohort[] {
    return this.#cohorts;
  }

  /** The submission that has waited longest. */
  get first(): Candidate | undefined {
    const order = this.#firstOrder;
    this.#trim(order);
    return this.#at(order);
  }

  /** Returns the first submission behind this order. */
  firstAfter(order: number): Candidate | undefined {
    const known = order < this.#found.after ? 0 : this.#found.order;
    let next = Math.max(order + 1, known, this.#base);
    while (next < this.#end && !this.#at(next)) next++;
    this.#found = { after: order, order: next };
    return this.#at(next);
  }

  /** The next submission to begin waiting for finality. */
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
    if (this.#items.length > 2 * this.size + TRIM_SIZE) this.#trim(this.#firstOrder);
  }

  /**
   * Moves the next submission into the last cohort if that is of this slot and zone or of a later
   * slot, else into a new one.
   */
  begin(item: Candidate, { slot, zone }: { slot: number; zone: number }): Cohort {
    let cohort = this.#cohorts.at(-1);
    if (!cohort || cohort.slot < slot || (cohort.slot === slot && cohort.zone !== zone)) {
      cohort = {
        slot,
        zone,
        first: item.order,
        size: 0,
        openAt: -Infinity,
        scout: null,
        scoutedFor: 0,
      };
      this.#cohorts.push(cohort);
    }
    cohort.size++;
    this.#begun = item.order + 1;
    return cohort;
  }

  /** Returns the cohort of a submission; null if it has not begun to wait, or was removed. */
  cohortOf({ order }: Candidate): Cohort | null {
    if (order === 0 || order >= this.#begun) return null;
    return this.#cohorts.findLast(({ first }) => first <= order) ?? null;
  }

  /** Yields the members of a cohort, beginning behind `order` and wrapping around. */
  *membersOf(cohort: Cohort, order = 0): Generator<Candidate> {
    const end = this.#cohorts[this.#cohorts.indexOf(cohort) + 1]?.first ?? this.#begun;
    const span = end - cohort.first;
    const offset = Math.max(0, order + 1 - cohort.first);
    for (let step = 0; step < span; step++) {
      const item = this.#at(cohort.first + ((offset + step) % span));
      if (item) yield item;
    }
  }

  /** Removes the oldest cohort and its members. Returns the members. */
  dropOldest(): Candidate[] {
    const oldest = this.#cohorts[0];
    const members = oldest ? [...this.membersOf(oldest)] : [];
    for (const item of members) this.remove(item);
    this.#cohorts.shift();
    this.#trim(this.#cohorts[0]?.first ?? this.#begun);
    return members;
  }

  /** Dissolves all cohorts: every submission has yet to begin. */
  restart(): void {
    this.#cohorts = [];
    this.#begun = this.#base;
  }

  get #firstOrder(): number {
    let order = this.#base;
    while (order < this.#end && !this.#at(order)) order++;
    return order;
  }

  get #end(): number {
    return this.#base + this.#items.length;
  }

  #at(order: number): Candidate | undefined {
    return this.#items[order - this.#base];
  }

  /** Frees the elements before `order`. */
  #trim(order: number): void {
    const count = order - this.#base;
    if (count < TRIM_SIZE && count * 2 < this.#items.length) return;
    this.#items = this.#items.slice(count);
    this.#base = order;
  }
}

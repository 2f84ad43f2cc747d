import { type Candidate, NEVER } from './port.ts';

/** Elements freed at once, so that a long line is not copied for each. */
const TRIM_SIZE = 1_024;

/**
 * Submissions that began to wait in the same slot and zone (see slots-to-wait.ts), so are likely to
 * become final together. Consecutive, from order `first` on.
 */
export type Cohort = {
  readonly slot: number;
  readonly zone: number;
  readonly first: number;
  size: number;
  /** Newest time at which a poll found a member open, epoch ms. */
  openAt: number;
  /** The member polled first on behalf of all, and the size of the cohort when it was chosen. */
  scout: Candidate | null;
  scoutedFor: number;
};

/**
 * Submissions in the order of tracking, from 1. The front waits for finality, in cohorts; the rest
 * waits to be sent.
 */
export class WaitingLine {
  #items: (Candidate | undefined)[] = [];
  #base = 1;
  /** Submissions of lower order have begun to wait for finality. */
  #begun = 1;
  #cohorts: Cohort[] = [];
  /** The newest result of `firstAfter`, where the next search continues. */
  #found = { after: 0, order: 1 };
  size = 0;

  get cohorts(): readonly Cohort[] {
    return this.#cohorts;
  }

  get first(): Candidate | undefined {
    const order = this.#firstOrder;
    this.#trim(order);
    return this.#at(order);
  }

  firstAfter(order: number): Candidate | undefined {
    const start = order < this.#found.after ? 0 : this.#found.order;
    let next = Math.max(order + 1, start, this.#base);
    while (next < this.#end && !this.#at(next)) next++;
    this.#found = { after: order, order: next };
    return this.#at(next);
  }

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

  /** Moves the next submission into the last cohort, if not of an earlier slot, else a new one. */
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

  #trim(order: number): void {
    const count = order - this.#base;
    if (count < TRIM_SIZE && count * 2 < this.#items.length) return;
    this.#items = this.#items.slice(count);
    this.#base = order;
  }
}

/** More finals in a row without another of the same block show that submissions are independent. */
const MAX_ALONE = 3;
/** While polls find finals, this share of their number is polled next: it grows exponentially. */
const REACH = { share: 0.25, most: 32 };
/** In a shorter line, polls of all cost little. */
const LEAST_LINE = 20;
/** Without an order, the head stands for so many, and for all while few finals are known. */
const INDEPENDENT = { dependents: 8, learning: 100 };
/** Submissions behind the head that do not wait for it, because it may be a straggler. */
const WITNESSES = 5;
/** Share of the submissions behind the head that are expected to become final before it. */
const UNFORESEEN = 1 / 16;

/**
 * The order of finality while no slot time is known. A block finalizes what was sent before it, so
 * the head, which has waited longest, is polled on behalf of all. Times are epoch milliseconds.
 */
export class FinalityOrder {
  /** Order of the newest submission that was found final. */
  #newestFinal = 0;
  /** The newest poll that found the head open. `order`: that of the head. */
  #open = { order: 0, at: NEVER };
  /** Number of submissions found final since a poll found one open. */
  #streak = 0;
  /** Number of submissions found final since one was found in the same block as another. */
  #alone: number;
  /** When the newest shared block was found. Submissions up to `#swept` were polled after that. */
  #sharedAt = NEVER;
  #swept = 0;

  /** `isLearned`: finals were observed before, so that groups are not assumed. */
  constructor(isLearned = false) {
    this.#alone = isLearned ? MAX_ALONE + 1 : 0;
  }

  /** A poll sent at `sentAt` found the submission open. */
  observeOpen(item: Candidate, sentAt: number, line: WaitingLine): void {
    this.#streak = 0;
    if (item === this.#head(line)) this.#open = { order: item.order, at: sentAt };
  }

  /** A finality at `at`. `members`: number found in its block; null without block numbers. */
  observeFinal({ order }: Candidate, members: number | null, at: number, line: WaitingLine): void {
    this.#newestFinal = Math.max(this.#newestFinal, order);
    this.#streak++;
    if (members === (this.#isOrdered(line) ? 1 : 2)) [this.#sharedAt, this.#swept] = [at, 0];
    this.#alone = members !== null && members > 1 ? 0 : this.#alone + 1;
  }

  /** Returns the newest time at which the head showed that a submission was open. */
  openAt({ order }: Candidate, line: WaitingLine): number {
    return this.#isOrdered(line) && order > this.#open.order ? this.#open.at : NEVER;
  }

  /** Returns the next to be found final: missed ones, and the head with the first behind it. */
  foremost(line: WaitingLine): Candidate[] {
    const missed = this.#missed(line);
    const next = this.#first(line, this.#newestFinal);
    return [...missed, ...(next.length > 0 ? next : this.#first(line, 0).slice(0, 1))];
  }

  /** Whether it was not polled since a later one was found in a shared block. */
  isMissed(item: Candidate, line: WaitingLine): boolean {
    return item.order < this.#newestFinal && this.#missed(line).includes(item);
  }

  /** Returns the number on whose behalf this is polled. `finals`: number observed. */
  dependents(item: Candidate, line: WaitingLine, finals: number): number {
    const isOrdered = this.#isOrdered(line);
    if (item !== this.#head(line)) {
      const next = this.#newestFinal + this.#reach(line) + WITNESSES;
      return isOrdered && item.order > next ? UNFORESEEN : 1;
    }
    const isLimited = !isOrdered && finals >= INDEPENDENT.learning;
    return Math.max(1, isLimited ? Math.min(INDEPENDENT.dependents, line.size) : line.size);
  }

  /** Excludes one that is open although a later one is final: it says nothing about others. */
  #head(line: WaitingLine): Candidate | undefined {
    return line.firstAfter(this.#newestFinal) ?? line.first;
  }

  #isOrdered({ size }: WaitingLine): boolean {
    return size >= LEAST_LINE && this.#alone <= MAX_ALONE;
  }

  #reach(line: WaitingLine): number {
    if (!this.#isOrdered(line)) return 1;
    return Math.min(REACH.most, 1 + Math.floor(REACH.share * this.#streak));
  }

  #missed(line: WaitingLine): Candidate[] {
    // Passes those that have been polled since.
    let item = line.firstAfter(this.#swept);
    for (; item && item.openAt >= this.#sharedAt; item = line.firstAfter(this.#swept))
      this.#swept = item.order;
    return this.#first(line, this.#swept).filter(
      ({ order, openAt }) => order < this.#newestFinal && openAt < this.#sharedAt,
    );
  }

  #first(line: WaitingLine, order: number): Candidate[] {
    const items: Candidate[] = [];
    const reach = this.#reach(line);
    let item = line.firstAfter(order);
    for (; item && items.length < reach; item = line.firstAfter(item.order)) items.push(item);
    return items;
  }
}

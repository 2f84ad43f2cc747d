import { type Candidate, NEVER } from './port.ts';
import type { WaitingLine } from './waiting-line.ts';

/** More finals in a row without another of the same block show that submissions are independent. */
const MAX_ALONE = 3;
/**
 * While polls find submissions final, this share of their number is polled at once next: the
 * number found grows exponentially, and few are polled in vain.
 */
const REACH = { share: 0.25, most: 32 };
/**
 * In a shorter line, polls of all submissions cost little, and each is evidence that does not
 * depend on the order.
 */
const LEAST_LINE = 20;
/**
 * Without an order, the head is polled on behalf of at most this number of submissions, and of all
 * up to this number of finals: each teaches much.
 */
const INDEPENDENT = { dependents: 8, learning: 100 };
/** Submissions behind the head that do not wait for it, because it may be a straggler. */
const WITNESSES = 5;
/** Share of the submissions behind the head that are expected to become final before it. */
const UNFORESEEN = 1 / 16;

/**
 * The order in which submissions become final while no slot time is known. On a chain, a block
 * finalizes those that were sent before it: the head, the submission that has waited longest, is
 * open as long as those behind it. So it is polled on behalf of all. Once it is final, so are the
 * next ones, up to a boundary. Times are epoch milliseconds.
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
  /**
   * When the newest block was found that probably has several submissions. Submissions up to the
   * order `#swept` were polled after that.
   */
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

  /**
   * A submission was found final at `at`. `members`: number of those found in its block so far;
   * null without block numbers.
   */
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

  /**
   * Returns the submissions that are the next to be found final: the first that were missed, and
   * the head with the first behind it.
   */
  foremost(line: WaitingLine): Candidate[] {
    const missed = this.#missed(line);
    const next = this.#first(line, this.#newestFinal);
    return [...missed, ...(next.length > 0 ? next : this.#first(line, 0).slice(0, 1))];
  }

  /**
   * Whether a submission is among the first that were not polled since a later one was found in a
   * block that probably has several. It is probably final.
   */
  isMissed(item: Candidate, line: WaitingLine): boolean {
    return item.order < this.#newestFinal && this.#missed(line).includes(item);
  }

  /**
   * Returns the number of submissions on behalf of which this one is polled. `finals`: number
   * observed so far.
   */
  dependents(item: Candidate, line: WaitingLine, finals: number): number {
    const isOrdered = this.#isOrdered(line);
    if (item !== this.#head(line)) {
      const next = this.#newestFinal + this.#reach(line) + WITNESSES;
      return isOrdered && item.order > next ? UNFORESEEN : 1;
    }
    const isLimited = !isOrdered && finals >= INDEPENDENT.learning;
    return Math.max(1, isLimited ? Math.min(INDEPENDENT.dependents, line.size) : line.size);
  }

  /**
   * A submission that is open although a later one is final is excluded: its lateness is no
   * evidence about the others.
   */
  #head(line: WaitingLine): Candidate | undefined {
    return line.firstAfter(this.#newestFinal) ?? line.first;
  }

  #isOrdered({ size }: WaitingLine): boolean {
    return size >= LEAST_LINE && this.#alone <= MAX_ALONE;
  }

  /** Returns the number of submissions polled at once, because those before them were final. */
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

  /** Returns the first submissions behind this order, as many as are polled at once. */
  #first(line: WaitingLine, order: number): Candidate[] {
    const items: Candidate[] = [];
    const reach = this.#reach(line);
    let item = line.firstAfter(order);
    for (; item && items.length < reach; item = line.firstAfter(item.order)) items.push(item);
    return items;
  }
}

import type { HeadPosition } from './blocks-to-wait.ts';
import { type FinalizedHead, NEVER } from './port.ts';

const MAX_HEADS = 128;
/** Number of intervals of which the slot time is the median. */
const INTERVALS = 31;
/** Heads within this time are announced together. */
const TOGETHER_MS = 50;
/** Without a head for this number of slots, or this time before a slot time is known, ms. */
const SILENCE = { slots: 3, unknownMs: 60_000 };
/** Slots this short are no slots of a chain. They are judged from this number of intervals on. */
const SHORTEST = { slotMs: 100, intervals: 8 };
/** Announcements that skip blocks: at most this number of the newest, or at most this share. */
const INCOMPLETE = { announcements: 2, share: 0.25 };
/** After this number of heads in succession below the newest one, the newest one was wrong. */
const LOWER_HEADS = 3;

/**
 * The clock follows heads by at least these shares of the difference. A larger difference means
 * irregular slots. `mostMedian`: most difference of the slot time from the median.
 */
const FOLLOW = { moment: 0.2, slot: 0.02, mostSlots: 0.25, mostMedian: 0.1, misses: 4 };

/** `dueAt`: the time at which the head was expected, without the chance in its time. */
type TimedHead = FinalizedHead & { dueAt: number };

/** `new`: above all before. `old`: a duplicate or late. `reset`: the heads before it were wrong. */
export type HeadNews = 'new' | 'old' | 'reset';

/**
 * The newest finalized heads of a chain and the times between them. Times are epoch milliseconds.
 */
export class HeadClock {
  /** In ascending order; of several blocks that became final together, the times are estimated. */
  #heads: TimedHead[] = [];
  /** The newest head before those that were announced together with the newest. */
  #base: TimedHead | null = null;
  #misses = 0;
  #hits = 1;
  /** The slot time that follows the heads; more precise than the median. */
  #gridMs = 0;
  /** Number of the first head, which a node announces at once, whenever it became final. */
  #first = 0;
  #togetherSince = 0;
  /** Number of blocks of each of the newest announcements that were not announced. */
  readonly #missing: number[] = [];
  #arrivedAt = Number.NEGATIVE_INFINITY;
  #lower = { count: 0, number: 0 };
  readonly #intervals: number[] = [];
  #slotMs: number | null;

  constructor(slotMs: number | null = null) {
    this.#slotMs = slotMs;
  }

  get newest(): TimedHead | null {
    return this.#heads.at(-1) ?? null;
  }

  /** The median time between two heads; null: not known. */
  get slotMs(): number | null {
    return this.#slotMs;
  }

  /** Share of slots without a block, from the intervals between heads. */
  get emptyShare(): number {
    if (this.#slotMs === null || this.#intervals.length === 0) return 0;
    const slotMs = this.#slotMs;
    const slots = this.#intervals.reduce(
      (sum, ms) => sum + Math.max(1, Math.round(ms / slotMs)),
      0,
    );
    return 1 - this.#intervals.length / slots;
  }

  /** When the heads count as silent if none arrives before. */
  get silentAt(): number {
    const { slots, unknownMs } = SILENCE;
    return this.#arrivedAt + (this.#slotMs === null ? unknownMs : slots * this.#slotMs);
  }

  /** Whether heads arrive faster than a chain can make blocks. */
  get isTooFast(): boolean {
    const { slotMs, intervals } = SHORTEST;
    return this.#intervals.length >= intervals && (this.#slotMs ?? slotMs) < slotMs;
  }

  /** Whether the node does not announce many of the blocks. */
  get isIncomplete(): boolean {
    const { announcements, share } = INCOMPLETE;
    const count = this.#missing.reduce((sum, missing) => sum + (missing > 0 ? 1 : 0), 0);
    return count > announcements && count > share * this.#missing.length;
  }

  observe(head: FinalizedHead, now: number): HeadNews {
    const { newest } = this;
    if (newest && head.number <= newest.number) return this.#observeLower(head, now);
    this.#lower.count = 0;
    this.#arrivedAt = now;
    if (!newest) {
      this.#heads.push({ ...head, dueAt: head.at });
      this.#first = head.number;
      return 'new';
    }
    if (!this.#base || head.at - this.#togetherSince > TOGETHER_MS) {
      this.#base = newest;
      this.#togetherSince = head.at;
      if (newest.number !== this.#first) this.#intervals.push(0);
      this.#missing.push(0);
      if (this.#missing.length > INTERVALS) this.#missing.shift();
      if (this.#intervals.length > INTERVALS) this.#intervals.shift();
    }
    this.#missing.push((this.#missing.pop() ?? 0) + head.number - newest.number - 1);
    this.#append(this.#base, head);
    return 'new';
  }

  /** Returns the newest head before `time`, and the slots since then without empty ones. */
  positionOf(time: number): HeadPosition {
    const index = this.#heads.findLastIndex(({ dueAt }) => dueAt <= time);
    const head = this.#heads[index];
    const [first] = this.#heads;
    // The first head is announced at once, and was final before.
    if (head && index > 0 && this.#slotMs !== null) {
      const nextAt = this.#heads[index + 1]?.dueAt ?? NEVER;
      const slotAt = Math.max(head.dueAt, nextAt - this.#slotMs);
      return { number: head.number, phase: Math.max(0, time - slotAt) / this.#slotMs };
    }
    if (head || !first || this.#slotMs === null)
      return { number: head?.number ?? first?.number ?? 0, phase: null };
    return { number: first.number - Math.ceil((first.at - time) / this.#slotMs), phase: null };
  }

  isKnownAt(time: number): boolean {
    return this.#heads.length > 0 && time >= (this.#heads[0] as TimedHead).at;
  }

  /** Returns when this block was announced as final; null if it is not known. */
  finalAt(block: number): number | null {
    const [first] = this.#heads;
    if (!first || block <= first.number) return null;
    return this.#heads[block - first.number]?.at ?? null;
  }

  #observeLower({ number, at }: FinalizedHead, now: number): HeadNews {
    if (number > this.#lower.number || this.#lower.count === 0) {
      this.#lower.count++;
      this.#lower.number = number;
    }
    if (number === this.newest?.number) this.#lower.count = 0;
    if (this.#lower.count < LOWER_HEADS) return 'old';
    this.#lower.count = 0;
    this.#heads = [{ number, at, dueAt: at }];
    this.#first = number;
    this.#base = null;
    this.#arrivedAt = now;
    return 'reset';
  }

  /** Appends the heads from `base` on. Blocks final together are spread evenly. */
  #append(base: TimedHead, { number, at }: FinalizedHead): void {
    const blocks = number - base.number;
    const first = this.#heads[0] as FinalizedHead;
    this.#heads.length = Math.max(0, base.number - first.number) + 1;
    if (blocks > MAX_HEADS) this.#heads = [];
    const isTimed = base.number !== this.#first;
    if (isTimed) {
      this.#intervals[this.#intervals.length - 1] = (at - base.at) / blocks;
      const sorted = [...this.#intervals].sort((a, b) => a - b);
      this.#slotMs = sorted[(sorted.length - 1) >> 1] as number;
    }
    const dueAt = isTimed ? this.#follow(base, at, blocks) : at;
    for (let block = Math.max(1, blocks - MAX_HEADS); block <= blocks; block++) {
      const between = (from: number, to: number) => from + (block / blocks) * (to - from);
      this.#heads.push({
        number: base.number + block,
        at: between(base.at, at),
        dueAt: between(base.dueAt, dueAt),
      });
    }
    this.#heads.splice(0, this.#heads.length - MAX_HEADS);
  }

  /** Returns when the head after `base` was expected, and learns from the difference. */
  #follow({ dueAt }: TimedHead, at: number, blocks: number): number {
    const slotMs = this.#slotMs as number;
    if (Math.abs(this.#gridMs / slotMs - 1) > FOLLOW.mostMedian) this.#gridMs = slotMs;
    const slots = Math.max(blocks, Math.round((at - dueAt) / this.#gridMs));
    const expectedAt = dueAt + slots * this.#gridMs;
    const differenceMs = at - expectedAt;
    if (Math.abs(differenceMs) > FOLLOW.mostSlots * this.#gridMs) {
      this.#misses++;
      // A head can be late for many reasons, but not early.
      if (differenceMs > 0 && this.#misses < FOLLOW.misses) return expectedAt;
      this.#misses = 0;
      this.#hits = 1;
      return at;
    }
    this.#misses = 0;
    // The first heads are fitted by least squares: these are the shares of the newest of n points.
    const n = ++this.#hits;
    const [moment, slot] = [(4 * n - 2) / (n * (n + 1)), 6 / (n * (n + 1))];
    this.#gridMs += (Math.max(FOLLOW.slot, slot) * differenceMs) / slots;
    return expectedAt + Math.max(FOLLOW.moment, moment) * differenceMs;
  }
}

/** Change of the score with each verdict, by its kind. */
const RATE = { good: 0.15, old: 0.25, contradiction: 0.5 };
/** Heads are not trusted from the first score on, and trusted again from the second on. */
const LIMIT = { lost: 0.6, regained: 0.15 };
/**
 * A head that comes after its block was found final is late. By then, the lag costs so many
 * requests, about as much as heads save.
 */
const LATE_COST = 0.7;
/** Observations in succession after which the node counts as late, or no longer. */
const IN_SUCCESSION = { late: 2, timely: 3 };
/** Finals after which a probe shows whether heads are late. Doubles while they are not. */
const PROBE_AFTER = { least: 8, most: 64 };
/**
 * A head off by this multiple of the mean brings the next probe closer: each waiting submission
 * counts as this number of final ones.
 */
const UNUSUAL = { multiple: 3, rate: 0.1, finals: 4 };
/** Heads for which a late node counts as late without further evidence. Quadruples each time. */
const LATE_HEADS = { least: 4, most: 1_024 };
/** A node that is further behind is of another chain, or cannot catch up soon. */
const MOST_BLOCKS_LATE = 10;
const MAX_PENDING = 64;

/** Judges the heads by what polls find. The score is an average of verdicts, 0 (right) to 1. */
export class HeadTrust {
  readonly #lateMs: number;
  #score = 0;
  #isTrusted = true;
  /** Blocks that were found final before they were announced, with the time; ascending times. */
  #pending: { block: number; at: number }[] = [];
  /** Final submissions until the next probe, and from it to the one after it. */
  #probe = { left: 0, interval: PROBE_AFTER.least };
  /** Heads for which the node still counts as late; 0: in time. `most`: without more evidence. */
  #late = { heads: 0, most: LATE_HEADS.least / 4 };
  #usualOffMs: number;
  /** Observations in succession that show the opposite. */
  #contrary = 0;

  constructor(lagPrice: number) {
    this.#lateMs = this.#usualOffMs = (1_000 * LATE_COST) / lagPrice;
  }

  get isTrusted(): boolean {
    return this.#isTrusted && !this.#isLate;
  }

  get #isLate(): boolean {
    return this.#late.heads > 0;
  }

  /** Whether a submission is to be polled when the newest head arrives, to see if it is late. */
  get isProbeDue(): boolean {
    return !this.#isLate && this.#probe.left <= 0;
  }

  /** Whether nothing suggests that heads arrive after rows are final. */
  get isTimely(): boolean {
    return !this.#isLate && this.#contrary === 0;
  }

  /** Continues after a restart: only heads in time were learned from. */
  restore(): void {
    this.#probe.left = this.#probe.interval = PROBE_AFTER.most;
  }

  /** A poll found a row open this long after the head of its block arrived (before: negative). */
  observeOpen(delayMs: number): void {
    if (delayMs < (this.#isLate ? -this.#lateMs : 0)) return;
    const { interval } = this.#probe;
    this.#probe = { left: interval, interval: Math.min(PROBE_AFTER.most, 2 * interval) };
    if (!this.#isLate) this.#contrary = 0;
    else if (++this.#contrary === IN_SUCCESSION.timely) this.#late.heads = this.#contrary = 0;
  }

  /** A row was final before its head arrived or, as a probe found, as soon as it did. */
  observeEarly(): void {
    const { most } = this.#late;
    if (this.#isLate) this.#late.heads = most;
    else if (++this.#contrary < IN_SUCCESSION.late) return;
    else this.#late.heads = this.#late.most = Math.min(LATE_HEADS.most, 4 * most);
    this.#contrary = 0;
  }

  confirm(): void {
    this.#probe.left--;
    this.#change(-this.#score * RATE.good);
  }

  /** A new head has arrived, `offMs` off. `waiting`: submissions that wait for their block. */
  nextHead(offMs: number, waiting: number): void {
    if (this.#isLate) this.#late.heads--;
    if (offMs > UNUSUAL.multiple * this.#usualOffMs) this.#probe.left -= UNUSUAL.finals * waiting;
    this.#usualOffMs += UNUSUAL.rate * (offMs - this.#usualOffMs);
  }

  /** A poll found a block final before tracking: tracked late, or the heads are too high. */
  observeOld(): void {
    this.#change(RATE.old * (1 - this.#score));
  }

  /** The heads cannot be right about the chain of the upstream. */
  contradict(): void {
    this.#change(RATE.contradiction * (1 - this.#score));
  }

  observeEarlier(block: number, at: number, newest: number): void {
    if (block > newest + MOST_BLOCKS_LATE) this.reject();
    this.#pending.push({ block, at });
    if (this.#pending.length > MAX_PENDING) this.#pending.shift();
  }

  /** Judges the blocks that were found before their head. `newest`: number of the newest head. */
  settle(newest: number, now: number): void {
    const [oldest] = this.#pending;
    if (!oldest || (oldest.at > now - this.#lateMs && oldest.block > newest)) return;
    this.#pending = this.#pending.filter(({ block, at }) => {
      if (at <= now - this.#lateMs) this.observeEarly();
      else if (block <= newest) this.confirm();
      else return true;
      return false;
    });
  }

  /** The heads are of another chain, or were until now: they are not trusted at once. */
  reject(): void {
    this.#pending = [];
    this.contradict();
    this.contradict();
  }

  #change(by: number): void {
    this.#score += by;
    if (this.#score >= LIMIT.lost) this.#isTrusted = false;
    else if (this.#score <= LIMIT.regained) this.#isTrusted = true;
  }
}

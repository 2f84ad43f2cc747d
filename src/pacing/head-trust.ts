/** Change of the score with each verdict, by its kind. */
const RATE = { good: 0.15, old: 0.25, contradiction: 0.5 };
/** Heads are not trusted from the first score on, and trusted again from the second on. */
const LIMIT = { lost: 0.6, regained: 0.15 };
/**
 * A node whose head comes later after a poll that found its block final is late: by then the lag
 * costs this number of requests, about as much as heads save.
 */
const LATE_COST = 0.7;
/** Observations in succession after which the node counts as late, or no longer. */
const IN_SUCCESSION = { late: 2, timely: 3 };
/**
 * Final submissions after which a probe finds out whether heads are late, unless other polls do.
 * Doubles each time that they are not.
 */
const PROBE_AFTER = { least: 8, most: 64 };
/**
 * A head that is off by this multiple of the mean, which follows by `rate`, brings the next probe
 * closer: each submission that waits for it counts as this number of final ones.
 */
const UNUSUAL = { multiple: 3, rate: 0.1, finals: 4 };
/** Heads for which a late node counts as late without further evidence. Quadruples each time. */
const LATE_HEADS = { least: 4, most: 1_024 };
/** A node that is further behind is of another chain, or cannot catch up soon. */
const MOST_BLOCKS_LATE = 10;
const MAX_PENDING = 64;

/**
 * Judges the heads by what polls find: whether they say something useful and true about the blocks
 * that the upstream reports. The score is a moving average of the verdicts, 0 (all right) to 1.
 */
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

  /** A poll found a block that the heads had announced. */
  confirm(): void {
    this.#probe.left--;
    this.#change(-this.#score * RATE.good);
  }

  /**
   * A new head has arrived, this much earlier or later than expected. `waiting`: submissions that
   * wait for their block.
   */
  nextHead(offMs: number, waiting: number): void {
    if (this.#isLate) this.#late.heads--;
    if (offMs > UNUSUAL.multiple * this.#usualOffMs) this.#probe.left -= UNUSUAL.finals * waiting;
    this.#usualOffMs += UNUSUAL.rate * (offMs - this.#usualOffMs);
  }

  /**
   * A poll found a block that was final before the submission was tracked: of one that was tracked
   * late, unless the numbers of the heads are too high.
   */
  observeOld(): void {
    this.#change(RATE.old * (1 - this.#score));
  }

  /** The heads cannot be right about the chain of the upstream. */
  contradict(): void {
    this.#change(RATE.contradiction * (1 - this.#score));
  }

  /** A poll found this block final, which the heads had not announced. */
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

/** Change of the score with each verdict, by its kind. */
const RATE = { good: 0.15, surprise: 0.35, old: 0.25, contradiction: 0.5 };
/** Heads are not trusted from the first score on, and trusted again from the second on. */
const LIMIT = { lost: 0.6, regained: 0.15 };
/**
 * A block that the upstream has reported as final is announced within this share of a slot, unless
 * the node lags. Without a known slot time, within this time (ms).
 */
const LATE = { slots: 0.15, unknownMs: 3_000 };
/** A node that is further behind is of another chain, or cannot catch up soon. */
const MOST_BLOCKS_LATE = 10;
const MAX_PENDING = 64;

/**
 * Judges the heads by what polls find: whether they say something useful and true about the blocks
 * that the upstream reports. The score is a moving average of the verdicts, 0 (all right) to 1.
 */
export class HeadTrust {
  #score = 0;
  #isTrusted = true;
  /** What polls found since the newest head. */
  #isSurprising = false;
  #isConfirmed = false;
  /** Blocks that were found final before they were announced, with the time; ascending times. */
  #pending: { block: number; at: number }[] = [];

  get isTrusted(): boolean {
    return this.#isTrusted;
  }

  /** A poll found a block that the heads had announced. */
  confirm(): void {
    this.#isConfirmed = true;
    this.#change(-this.#score * RATE.good);
  }

  /** A poll found a submission open although its block should have been final for long. */
  surprise(): void {
    this.#isSurprising = true;
  }

  /**
   * A new head has arrived. If polls found nothing final with the one before, but open what should
   * have been final, the heads say nothing about the upstream.
   */
  nextHead(): void {
    if (this.#isSurprising && !this.#isConfirmed) this.#change(RATE.surprise * (1 - this.#score));
    this.#isSurprising = this.#isConfirmed = false;
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
  settle(newest: number, slotMs: number | null, now: number): void {
    const lateMs = slotMs === null ? LATE.unknownMs : LATE.slots * slotMs;
    const [oldest] = this.#pending;
    if (!oldest || (oldest.at > now - lateMs && oldest.block > newest)) return;
    this.#pending = this.#pending.filter(({ block, at }) => {
      if (at <= now - lateMs) this.contradict();
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

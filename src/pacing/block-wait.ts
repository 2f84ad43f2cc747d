import { Histogram } from './distribution.ts';
import type { Candidate } from './port.ts';

/** Cells of a block, and blocks that are covered. */
const PER_BLOCK = 40;
export const WAIT_CELLS = 12 * PER_BLOCK;
/** Observations stored; weight of each relative to the next; passes of an estimate. */
const STORED = 360;
const FADE = 0.992;
const ROUNDS = 3;
const PRIOR_WEIGHT = 1.5;
/** Members of one block that are stored although they hardly narrow the estimate. */
const PLAIN = 4;
/** A submission that is this many blocks later than the median was late or sent again. */
const STRAGGLER = 1.5;
/** Share of submissions that are later than all that were seen; half of them for each block. */
const TAIL = 0.01;
/** The chain has changed if this share of finals was less likely than `unlikely`. */
const SURPRISE = { rate: 0.15, unlikely: 0.1, share: 0.45, kept: 12 };
/** Width (blocks) of the boundary in one block, and share of exceptions. */
const SOFT = 0.02;
const EXCEPTION = 0.02;

/**
 * A submission that is sent at position x (see FinalEvents) is in block ⌈x + A⌉. A is random: the
 * finality gap, the part of a slot between block and event, and the time until it is sent. Its
 * distribution is estimated from the intervals of finals by self-consistency (Turnbull, J. R. Stat.
 * Soc. B 38, 1976).
 */
export class BlockWait {
  #belief: Histogram;
  #cdf: Float64Array;
  median = 0;
  readonly #stored: { low: number; high: number }[] = [];
  #block = { number: 0, plain: 0 };
  #surprise = 0;
  /** By cell of A: likelihood of what polls showed about the boundary of one block. */
  #boundary: { number: number; likelihood: Float64Array; cdf: Float64Array } = {
    number: -1,
    likelihood: new Float64Array(0),
    cdf: new Float64Array(0),
  };

  constructor(weights?: readonly number[]) {
    this.#belief = weights ? new Histogram(weights) : prior();
    this.#cdf = this.#describe();
  }

  get weights(): number[] {
    return [...this.#belief.weights];
  }

  /** Returns P(the block of a submission at x is at most `number`), given what polls showed. */
  by(x: number, number: number): number {
    const boundary = this.#boundary;
    const a = number - x;
    const p = cdfAt(number === boundary.number ? boundary.cdf : this.#cdf, a);
    return (1 - TAIL) * p + TAIL * (1 - 0.5 ** Math.max(0, a - this.median - 0.3));
  }

  /** A poll showed whether the block of one at x is at most `number`. `seen`: its final rows. */
  observeBoundary(x: number, number: number, isFinal: boolean, seen: number): void {
    if (number !== this.#boundary.number)
      this.#boundary = { number, likelihood: new Float64Array(WAIT_CELLS).fill(1), cdf: this.#cdf };
    const { likelihood } = this.#boundary;
    for (let cell = 0; cell < WAIT_CELLS; cell++) {
      const margin = number - x - (cell + 0.5) / PER_BLOCK;
      const within = EXCEPTION + (1 - 2 * EXCEPTION) / (1 + Math.exp(-margin / SOFT));
      likelihood[cell] =
        (likelihood[cell] as number) * Math.max(1e-9, isFinal ? within : 1 - within * seen);
    }
    const most = likelihood.reduce((a, b) => Math.max(a, b), 0);
    for (let cell = 0; cell < WAIT_CELLS; cell++)
      likelihood[cell] = (likelihood[cell] as number) / most;
    this.#applyBoundary();
  }

  /** Learns from a submission that was sent at x and is in this block. */
  learn(x: number, block: number): void {
    const [low, high] = [block - 1 - x, block - x];
    if (low > STRAGGLER + this.median) return;
    const p = cdfAt(this.#cdf, high) - cdfAt(this.#cdf, low);
    this.#surprise += SURPRISE.rate * ((p < SURPRISE.unlikely ? 1 : 0) - this.#surprise);
    const isNew = block !== this.#block.number;
    if (isNew) this.#block = { number: block, plain: 0 };
    // An interval is informative if A may well be outside of it.
    if (p > 0.97 && ++this.#block.plain > PLAIN) return;
    this.#stored.push({ low, high });
    if (this.#stored.length > STORED) this.#stored.shift();
    if (this.#surprise >= SURPRISE.share) {
      this.#surprise = SURPRISE.rate;
      this.#stored.splice(0, this.#stored.length - SURPRISE.kept);
      this.#belief = prior();
    }
    if (isNew || p < 0.9 || this.#stored.length < 40) this.#estimate();
  }

  forget(): void {
    this.#stored.length = 0;
    this.#belief = prior();
    this.#cdf = this.#describe();
  }

  #estimate(): void {
    for (let round = 0; round < ROUNDS; round++) {
      const next = prior();
      let weight = 1;
      for (const { low, high } of this.#stored.toReversed()) {
        next.addBetween(cellOf(low), cellOf(high), weight, this.#belief.weights);
        weight *= FADE;
      }
      this.#belief = next.smoothed(0.5, 1);
    }
    this.#cdf = this.#describe();
    if (this.#boundary.number >= 0) this.#applyBoundary();
  }

  #describe(): Float64Array {
    const cdf = this.#belief.cdf();
    this.median = cdf.findIndex((p) => p > 0.5) / PER_BLOCK;
    return cdf;
  }

  #applyBoundary(): void {
    const { likelihood } = this.#boundary;
    this.#boundary.cdf = new Histogram(
      this.#belief.weights.map((p, cell) => p * (likelihood[cell] as number)),
    ).cdf();
  }
}

function cellOf(a: number): number {
  return Math.max(0, Math.min(WAIT_CELLS - 1, Math.floor(a * PER_BLOCK)));
}

function cdfAt(cdf: Float64Array, a: number): number {
  if (a <= 0) return 0;
  const cell = Math.floor(a * PER_BLOCK);
  if (cell >= WAIT_CELLS) return 1;
  const before = cdf[cell - 1] ?? 0;
  return before + (a * PER_BLOCK - cell) * ((cdf[cell] as number) - before);
}

/** Finality gaps of one or two blocks are the most likely. */
function prior(): Histogram {
  const weights = Float64Array.from({ length: WAIT_CELLS }, (_, cell) => {
    const a = (cell + 0.5) / PER_BLOCK;
    const near = (gap: number) => Math.exp(-0.5 * ((a - gap - 0.13) / 0.06) ** 2) / 6;
    return near(1) + 0.6 * near(2) + ((a > 0.8 ? 0.15 : 0.02) * 0.6 ** a) / PER_BLOCK;
  });
  const sum = weights.reduce((x, y) => x + y, 0);
  return new Histogram(weights.map((weight) => (PRIOR_WEIGHT * weight) / sum));
}

/** Numbers of serial senders that are considered. */
const COUNTS = [1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32, 48, Number.POSITIVE_INFINITY];
/** Departures stored. */
const DEPARTURES = 4_096;
/** Blocks of a wait that are distinguished. */
const BLOCKS = 25;
/** A serial sender gives up after this time, and the upstream sends the submission again. */
const TIMEOUT_MS = 120_000;
/** Weight of earlier finals; nats that a change needs, and that serial senders need to stay. */
const SCORE = { keep: 0.97, margin: 8, retained: 1 };
/** Likelihood of a submission that is final before, by this number of senders, it was sent. */
const IMPOSSIBLE = 0.01;
/** A final of lower weight is not learned from. */
const LEAST_WEIGHT = 0.02;

/**
 * The submissions that wait for an upstream's senders, and for finality, in order. With c serial
 * senders, each of which waits for finality, submission n is sent when n - c have left the line. c
 * is the most likely number given the blocks of the finals; Infinity: all are sent at once. Times
 * are epoch ms.
 */
export class SenderLine {
  #items: (Candidate | undefined)[] = [];
  #base = 1;
  /** Index of the first one. */
  #head = 0;
  /** Submissions that the upstream sends again: since when they wait. */
  readonly #queuedAt = new Map<Candidate, number>();
  readonly #left = new Float64Array(DEPARTURES);
  #leftCount = 0;
  /** Submissions of lower order have been sent. */
  #begun = 1;
  #size = 0;
  readonly #scores = COUNTS.map((count) => ({
    count,
    score: 0,
    blocks: new Float64Array(BLOCKS).fill(0.05),
  }));
  #block = { number: 0, members: 0 };
  senders: number;

  constructor(senders = Number.POSITIVE_INFINITY) {
    this.senders = senders;
  }

  get size(): number {
    return this.#size;
  }

  get isSerial(): boolean {
    return this.senders !== Number.POSITIVE_INFINITY;
  }

  get first(): Candidate | undefined {
    return this.#items[this.#head];
  }

  *[Symbol.iterator](): Generator<Candidate> {
    for (let order = this.#base + this.#head; order < this.#base + this.#items.length; order++) {
      const item = this.#items[order - this.#base];
      if (item) yield item;
    }
  }

  append(item: Candidate, queuedAt = item.trackedAt): void {
    if (queuedAt !== item.trackedAt) this.#queuedAt.set(item, queuedAt);
    item.order = this.#base + this.#items.length;
    this.#items.push(item);
    this.#size++;
  }

  remove(item: Candidate, at: number): void {
    if (item.order === 0) return;
    this.#items[item.order - this.#base] = undefined;
    item.order = 0;
    this.#size--;
    this.#left[this.#leftCount++ % DEPARTURES] = at;
    const items = this.#items;
    while (this.#head < items.length && !items[this.#head]) this.#head++;
    if (this.#head * 2 < items.length) return;
    this.#items = items.slice(this.#head);
    this.#base += this.#head;
    this.#head = 0;
  }

  forget(item: Candidate): void {
    this.#queuedAt.delete(item);
  }

  /** Whether it was sent more than once. */
  isAgain(item: Candidate): boolean {
    return this.#queuedAt.has(item);
  }

  queuedAt(item: Candidate): number {
    return this.#queuedAt.get(item) ?? item.trackedAt;
  }

  /** Returns when a submission was sent; null: it waits. */
  sentAt(item: Candidate, senders = this.senders): number | null {
    const left = item.order - senders - 1;
    if (!(left >= 0) || left < this.#leftCount - DEPARTURES) return this.queuedAt(item);
    if (left >= this.#leftCount) return null;
    return Math.max(this.queuedAt(item), this.#left[left % DEPARTURES] as number);
  }

  /** Yields the submissions that have been sent since the last call. */
  *begin(): Generator<Candidate> {
    for (this.#begun = Math.max(this.#begun, this.#base); ; this.#begun++) {
      const item = this.#items[this.#begun - this.#base];
      if (this.#begun >= this.#base + this.#items.length || (item && this.sentAt(item) === null))
        return;
      if (item) yield item;
    }
  }

  /** The upstream sends a submission again, behind the others. */
  requeue(item: Candidate, at: number): void {
    this.remove(item, at);
    this.append(item, at);
  }

  /** Requeues those whose sender has given up. */
  expire(now: number): void {
    if (!this.isSerial) return;
    for (const item of [...this]) {
      const sentAt = this.sentAt(item);
      if (sentAt === null || now < sentAt + TIMEOUT_MS) return;
      this.requeue(item, sentAt + TIMEOUT_MS);
    }
  }

  /**
   * Learns from a submission in this block, `blocksFrom` a time of sending. `isLong`: it waited for
   * more blocks than a submission that is sent at once. Only this is evidence for serial senders:
   * regular arrivals also fill blocks equally. Returns whether the number has changed.
   */
  learn(
    item: Candidate,
    block: number,
    blocksFrom: (sentAt: number) => number,
    isLong: boolean,
    at: number,
  ): boolean {
    if (this.#block.number !== block) this.#block = { number: block, members: 0 };
    const weight = 2 / (1 + ++this.#block.members);
    while (this.isSerial && this.#leftCount < item.order - this.senders)
      this.#left[this.#leftCount++ % DEPARTURES] = at;
    if (weight < LEAST_WEIGHT) return false;
    const keep = SCORE.keep ** weight;
    const logs = this.#scores.map(({ count, blocks }) => {
      const sentAt = this.sentAt(item, count);
      const k = sentAt === null ? 0 : Math.min(BLOCKS - 1, blocksFrom(sentAt));
      const p = k < 1 ? IMPOSSIBLE : (blocks[k] as number) / blocks.reduce((a, b) => a + b, 0);
      for (let i = 0; i < BLOCKS; i++) blocks[i] = Math.max(0.02, keep * (blocks[i] as number));
      if (k >= 1) blocks[k] = (blocks[k] as number) + weight;
      return Math.log(p);
    });
    const together = logs.at(-1) as number;
    for (const [index, candidate] of this.#scores.entries()) {
      const gain = (logs[index] as number) - together;
      const evidence = isLong || this.isSerial ? gain : Math.min(0, gain);
      candidate.score = keep * candidate.score + weight * evidence;
    }
    return this.#choose();
  }

  #choose(): boolean {
    const scoreOf = (count: number) =>
      this.#scores.find((known) => known.count === count)?.score ?? 0;
    const best = this.#scores.reduce((a, b) => (b.score >= a.score ? b : a));
    const isKept = !this.isSerial || scoreOf(this.senders) > SCORE.retained;
    if (isKept && best.score < scoreOf(this.senders) + SCORE.margin) return false;
    const chosen = best.score > SCORE.margin ? best.count : Number.POSITIVE_INFINITY;
    const hasChanged = chosen !== this.senders;
    this.senders = chosen;
    if (hasChanged) this.#begun = this.#base;
    return hasChanged;
  }
}

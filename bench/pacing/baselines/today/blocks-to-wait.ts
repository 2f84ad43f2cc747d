import { Histogram } from './age-distribution.ts';

/** Parts of a slot in which submissions begin to wait. */
const PHASES = 40;
/** The next head may be late by some phases. */
const BINS = 1.15 * PHASES;
/** Numbers of blocks from 0; the last stands for all larger ones. */
const MOST_BLOCKS = 25;
const COLUMNS = MOST_BLOCKS + 1;
export const BLOCK_COUNTS = BINS * COLUMNS;
/** Weight of earlier evidence after each block. */
const KEEP = 0.99;
/** Reach (bins) of evidence against the order of phases. */
const REACH = 1;
/** Evidence from phases that are further on the other side, in bins, has this weight. */
const ACROSS = { reach: 6, weight: 0.02 };
const WEIGHT = 0.5;
/** See SURPRISE of slots-to-wait.ts. */
const SURPRISE = { rate: 0.15, unlikely: 0.1, share: 0.45 };

/** When a submission began to wait. `phase`: slots since that head; null if it is not known. */
export type HeadPosition = { number: number; phase: number | null };

/** Number of blocks from the newest final one to that of a submission, by phase. */
export class BlocksToWait {
  readonly #counts: Histogram;
  readonly #cdfs = new Map<number, Float64Array>();
  #block = 0;
  #surprise = 0;

  constructor(counts: ArrayLike<number> = new Float64Array(BLOCK_COUNTS)) {
    this.#counts = new Histogram(counts);
  }

  get counts(): number[] {
    return [...this.#counts.weights];
  }

  /** Returns the probability that the block is at most `number`, given that it is above `above`. */
  finalBy({ number: from, phase }: HeadPosition, number: number, above: number): number {
    const cdf = this.#cdf(binOf(phase));
    const by = cdfAt(cdf, number - from);
    const before = cdfAt(cdf, above - from);
    return by <= before ? 0 : (by - before) / (1 - before);
  }

  distribution(phase: number | null): Float64Array {
    return this.#cdf(binOf(phase)).map((p, k, cdf) => p - (cdf[k - 1] ?? 0));
  }

  learn({ number: from, phase }: HeadPosition, block: number): void {
    const k = block - from;
    if (phase === null || k < 0) return;
    const bin = binOf(phase);
    const cdf = this.#cdf(bin);
    const column = Math.min(MOST_BLOCKS, k);
    const likelihood = (cdf[column] as number) - (cdf[column - 1] ?? 0);
    this.#surprise += SURPRISE.rate * ((likelihood < SURPRISE.unlikely ? 1 : 0) - this.#surprise);
    if (this.#surprise >= SURPRISE.share) {
      this.#surprise = SURPRISE.rate;
      this.#counts.fade(0.1);
    }
    if (block !== this.#block) this.#counts.fade(KEEP);
    this.#block = block;
    this.#counts.add(bin * COLUMNS + column, 1);
    this.#cdfs.clear();
  }

  forget(): void {
    this.#counts.fade(0.05);
    this.#cdfs.clear();
  }

  #cdf(bin: number): Float64Array {
    let cdf = this.#cdfs.get(bin);
    if (!cdf) {
      cdf = this.#estimate(bin);
      this.#cdfs.set(bin, cdf);
    }
    return cdf;
  }

  /**
   * A submission that begins later waits for the same block or a later one. So a later block in an
   * earlier phase is full evidence for a later one in this phase, and an earlier block in a later
   * phase for an earlier one; both also in the nearest phases on the other side.
   */
  #estimate(bin: number): Float64Array {
    const { weights } = this.#counts;
    const earlier = new Float64Array(COLUMNS);
    const later = new Float64Array(COLUMNS);
    for (let near = 0; near < BINS; near++) {
      const distance = Math.abs(near - bin);
      const across = distance <= REACH ? 1 : distance <= ACROSS.reach ? ACROSS.weight : 0;
      for (let k = 0; k < COLUMNS; k++) {
        const count = weights[near * COLUMNS + k] as number;
        later[k] = (later[k] as number) + (near < bin ? 1 : across) * count;
        earlier[k] = (earlier[k] as number) + (near > bin ? 1 : across) * count;
      }
    }
    const cdf = new Float64Array(COLUMNS).fill(1);
    let [by, above] = [0, later.reduce((sum, count) => sum + count, 0)];
    let before = 0;
    for (let k = 0; k < COLUMNS - 1; k++) {
      by += earlier[k] as number;
      above -= later[k] as number;
      const p = (by + WEIGHT * (PRIOR[k] as number)) / (by + Math.max(0, above) + WEIGHT);
      before = cdf[k] = Math.max(before, p);
    }
    return cdf;
  }
}

function binOf(phase: number | null): number {
  if (phase === null) return 0;
  return Math.max(0, Math.min(BINS - 1, Math.floor(phase * PHASES)));
}

function cdfAt(cdf: Float64Array, k: number): number {
  return k < 0 ? 0 : (cdf[Math.min(MOST_BLOCKS - 1, k)] as number);
}

/** Usually the block is the second or third after the newest final one. */
const PRIOR = Float64Array.from({ length: COLUMNS }, (_, k) =>
  k < 2 ? ([0.01, 0.16][k] as number) : 1 - 0.84 * 0.45 ** (k - 1),
);

/** Ratio of the limits of a bucket; a quantile is exact to half of the difference. */
const GROWTH = 1.08;
const LOG_GROWTH = Math.log(GROWTH);
const LEAST_MS = 1;
const MOST_MS = 8 * 86_400_000;
const SIZE = bucketOf(MOST_MS) + 1;

/** A histogram of durations from 1 ms to 8 days, of fixed size. Quantiles are exact to 4 %. */
export class DurationHistogram {
  readonly #buckets = new Uint32Array(SIZE);
  #count = 0;
  #sumMs = 0;

  get count(): number {
    return this.#count;
  }

  add(ms: number): void {
    const bucket = bucketOf(ms);
    this.#buckets[bucket] = (this.#buckets[bucket] ?? 0) + 1;
    this.#count += 1;
    this.#sumMs += Math.max(0, ms);
  }

  addAll(other: DurationHistogram): void {
    for (const [bucket, count] of other.#buckets.entries())
      if (count > 0) this.#buckets[bucket] = (this.#buckets[bucket] ?? 0) + count;
    this.#count += other.#count;
    this.#sumMs += other.#sumMs;
  }

  /** Null if empty. */
  meanMs(): number | null {
    return this.#count === 0 ? null : this.#sumMs / this.#count;
  }

  /** Returns the duration that `share` (0 to 1) of all durations do not exceed; null if empty. */
  quantileMs(share: number): number | null {
    if (this.#count === 0) return null;
    const rank = Math.max(1, Math.ceil(share * this.#count));
    let seen = 0;
    for (const [bucket, count] of this.#buckets.entries()) {
      seen += count;
      if (seen >= rank) return middleOf(bucket);
    }
    return null;
  }
}

function bucketOf(ms: number): number {
  if (!(ms > LEAST_MS)) return 0;
  return Math.ceil(Math.log(Math.min(ms, MOST_MS)) / LOG_GROWTH);
}

function middleOf(bucket: number): number {
  return bucket === 0 ? LEAST_MS : GROWTH ** (bucket - 0.5);
}

import { isObject, parseJson } from './json.ts';

/** The middle of a bucket differs from every duration in it by less than 5 %. */
const GROWTH = 1.1;
const LOG_GROWTH = Math.log(GROWTH);
/** The last bucket, which begins after 80 years. */
const LAST = 297;

/** Buckets of equal relative width: percentiles are exact to 5 %. At most 298 counts. */
export class DurationHistogram {
  readonly #counts: Record<number, number>;

  constructor(counts: Record<number, number> = {}) {
    this.#counts = counts;
  }

  /** Reads the result of `toString`. Unreadable counts are empty, so that they prevent no count. */
  static parse(text: string): DurationHistogram {
    const counts = parseJson(text);
    return new DurationHistogram(isObject(counts) ? (counts as Record<number, number>) : {});
  }

  /** Returns the bucket of a duration. Below a millisecond, it is that of a millisecond. */
  static bucketOf(ms: number): number {
    return Math.min(LAST, Math.floor(Math.log(Math.max(1, ms)) / LOG_GROWTH));
  }

  add(ms: number): void {
    this.#addTo(DurationHistogram.bucketOf(ms), 1);
  }

  merge(other: DurationHistogram): void {
    for (const [bucket, count] of Object.entries(other.#counts)) this.#addTo(Number(bucket), count);
  }

  get count(): number {
    return Object.values(this.#counts).reduce((sum, count) => sum + count, 0);
  }

  /** In ms; null without durations. */
  get mean(): number | null {
    const sum = Object.entries(this.#counts).reduce(
      (total, [bucket, count]) => total + count * middleOf(bucket),
      0,
    );
    return this.count === 0 ? null : sum / this.count;
  }

  /** In ms: what the given share of durations does not exceed; null without durations. */
  percentile(share: number): number | null {
    let left = Math.max(1, Math.ceil(share * this.count));
    for (const [bucket, count] of Object.entries(this.#counts)) {
      left -= count;
      if (left <= 0) return middleOf(bucket);
    }
    return null;
  }

  /** Returns {"12":3,"14":1} for three durations in bucket 12 and one in bucket 14. */
  toString(): string {
    return JSON.stringify(this.#counts);
  }

  #addTo(bucket: number, count: number): void {
    this.#counts[bucket] = (this.#counts[bucket] ?? 0) + count;
  }
}

function middleOf(bucket: string): number {
  return GROWTH ** (Number(bucket) + 0.5);
}

/**
 * A bucket ends at 1.1 times its start, so that its middle differs from every duration in it by
 * less than 5 %.
 */
const GROWTH = 1.1;
const LOG_GROWTH = Math.log(GROWTH);
/** The last bucket, which begins after 80 years. */
const LAST = 297;

/**
 * Durations counted in buckets of equal relative width. Histograms can be merged, and percentiles
 * are exact to 5 %. Stores at most 298 counts, regardless of the number of durations.
 */
export class DurationHistogram {
  readonly #counts = new Map<number, number>();

  /** Reads the result of `toString`. Ignores unreadable counts. */
  static parse(text: string): DurationHistogram {
    const histogram = new DurationHistogram();
    for (const part of text.split(' ')) {
      const [, bucket, count] = /^(\d{1,3}):(\d{1,15})$/.exec(part) ?? [];
      if (count !== undefined && Number(bucket) <= LAST)
        histogram.#addTo(Number(bucket), Number(count));
    }
    return histogram;
  }

  /** Durations below a millisecond count as a millisecond. */
  add(ms: number): void {
    this.#addTo(Math.min(LAST, Math.floor(Math.log(Math.max(1, ms)) / LOG_GROWTH)), 1);
  }

  merge(other: DurationHistogram): void {
    for (const [bucket, count] of other.#counts) this.#addTo(bucket, count);
  }

  get count(): number {
    return this.#counts.values().reduce((sum, count) => sum + count, 0);
  }

  /**
   * Returns the duration (ms) that the given share of the durations does not exceed; null if there
   * are none.
   */
  percentile(share: number): number | null {
    let left = Math.max(1, Math.ceil(share * this.count));
    for (const [bucket, count] of this.#sorted()) {
      left -= count;
      if (left <= 0) return GROWTH ** (bucket + 0.5);
    }
    return null;
  }

  /** Returns "12:3 14:1" for three durations in bucket 12 and one in bucket 14. */
  toString(): string {
    return this.#sorted()
      .map(([bucket, count]) => `${bucket}:${count}`)
      .join(' ');
  }

  #addTo(bucket: number, count: number): void {
    this.#counts.set(bucket, (this.#counts.get(bucket) ?? 0) + count);
  }

  #sorted(): [bucket: number, count: number][] {
    return [...this.#counts].sort(([a], [b]) => a - b);
  }
}

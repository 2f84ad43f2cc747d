import { expect, it } from 'vitest';
import { DurationHistogram } from '../../src/lib/duration-histogram.ts';

function histogramOf(durationsMs: readonly number[]): DurationHistogram {
  const histogram = new DurationHistogram();
  for (const ms of durationsMs) histogram.add(ms);
  return histogram;
}

it('returns percentiles that are exact to 5 %, from a millisecond to a year', () => {
  for (let ms = 1; ms < 366 * 86_400_000; ms *= 1.37) {
    const middle = histogramOf([1, ms, 1e12]).percentile(0.5) ?? 0;
    expect(Math.abs(middle / ms - 1)).toBeLessThan(0.05);
  }
});

it('returns the duration that the share of the durations does not exceed', () => {
  const histogram = histogramOf(
    Array.from({ length: 100 }, (_, index) => (index < 90 ? 1_000 : 60_000)),
  );
  const at = (share: number) => Math.round((histogram.percentile(share) ?? 0) / 1_000);
  expect([0, 0.5, 0.9, 0.91, 0.99, 1].map(at)).toEqual([1, 1, 1, at(1), at(1), at(1)]);
  expect(at(1)).toBeGreaterThan(57);
  expect(histogram.count).toBe(100);
  expect(histogramOf([]).percentile(0.5)).toBeNull();
});

it('can be added up, and is the same after it was stored', () => {
  const [a, b] = [histogramOf([5, 5, 70_000]), histogramOf([0, -3, 5, 1e15])];
  a.merge(b);
  expect(String(a)).toBe(String(histogramOf([5, 5, 70_000, 0, -3, 5, 1e15])));
  const stored = DurationHistogram.parse(String(a));
  expect(String(stored)).toBe(String(a));
  expect(stored.count).toBe(7);
});

it.each(['', 'x', '12:3', 'null', '[1]'])('reads the damaged text "%s" as empty', (text) =>
  expect(DurationHistogram.parse(text).count).toBe(0),
);

import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import { DurationHistogram } from '../../src/stats/duration-histogram.ts';

function histogramOf(durations: readonly number[]): DurationHistogram {
  const histogram = new DurationHistogram();
  for (const ms of durations) histogram.add(ms);
  return histogram;
}

it('returns no mean and no quantile without values', () => {
  expect([histogramOf([]).meanMs(), histogramOf([]).quantileMs(0.5)]).toEqual([null, null]);
});

it('returns every quantile to 4 % for durations between a millisecond and a week', () => {
  const durations = fc.array(fc.integer({ min: 1, max: 7 * 86_400_000 }), { minLength: 1, maxLength: 300 });
  fc.assert(
    fc.property(durations, fc.constantFrom(0, 0.5, 0.9, 0.99, 1), (all, share) => {
      const exact = all.toSorted((a, b) => a - b)[Math.max(0, Math.ceil(share * all.length) - 1)] ?? 0;
      const measured = histogramOf(all).quantileMs(share) ?? 0;
      expect(Math.abs(measured / exact - 1)).toBeLessThan(0.041);
    }),
  );
});

it('returns the exact mean', () => {
  expect(histogramOf([1, 10, 100_000]).meanMs()).toBeCloseTo(100_011 / 3);
});

it('counts durations outside its range as its limits', () => {
  expect(histogramOf([-5, 0, 0.2]).quantileMs(1)).toBe(1);
  expect(histogramOf([1e15]).quantileMs(0.5)).toBeCloseTo(8 * 86_400_000, -8);
});

it('merges several histograms without loss', () => {
  const [first, second] = [
    [1, 20, 300],
    [4_000, 50_000],
  ] as const;
  const together = histogramOf(first);
  together.addAll(histogramOf(second));
  const combined = histogramOf([...first, ...second]);
  for (const share of [0, 0.3, 0.5, 0.8, 1]) expect(together.quantileMs(share)).toBe(combined.quantileMs(share));
  expect([together.count, together.meanMs()]).toEqual([5, combined.meanMs()]);
});

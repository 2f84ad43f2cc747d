import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { backoffByAge } from '../../src/monitor/backoff.ts';

const defaults = { minIntervalMs: 2_000, maxIntervalMs: 60_000 };
const [SECOND, MINUTE, HOUR] = [1_000, 60_000, 3_600_000];
const policy = backoffByAge(defaults);
const delay = (ageMs: number, random = 0.5) => policy({ ageMs, random: () => random });

describe('the delay by age', () => {
  it.each([
    [0, 2 * SECOND],
    [6 * SECOND, 2 * SECOND],
    [15 * SECOND, 5 * SECOND],
    [30 * SECOND, 10 * SECOND],
    [60 * SECOND, 20 * SECOND],
    [3 * MINUTE, 60 * SECOND],
    [HOUR, 60 * SECOND],
    [2 * HOUR, 2 * MINUTE],
    [5 * HOUR, 5 * MINUTE],
    [24 * HOUR, 5 * MINUTE],
  ])('at an age of %i ms is %i ms before the jitter', (ageMs, delayMs) => {
    expect(delay(ageMs)).toBeCloseTo(delayMs);
  });

  it('is the shortest one for a submission from the future: a clock was moved', () => {
    expect(delay(-HOUR)).toBe(2 * SECOND);
  });

  it('jitters by 20 % either way', () => {
    expect(delay(MINUTE, 0)).toBeCloseTo(16 * SECOND);
    expect(delay(MINUTE, 1)).toBeCloseTo(24 * SECOND);
  });

  it('draws anew for each question', () => {
    const draws = [0, 0.5];
    const random = () => draws.shift() ?? 0;
    expect([policy({ ageMs: 0, random }), policy({ ageMs: 0, random })]).toEqual([1_600, 2_000]);
  });

  it('never leaves its limits and never shrinks with age', () => {
    const settings = fc
      .tuple(fc.integer({ min: 1, max: 60_000 }), fc.integer({ min: 0, max: 600_000 }))
      .map(([minIntervalMs, more]) => ({ minIntervalMs, maxIntervalMs: minIntervalMs + more }));
    const age = fc.integer({ min: -HOUR, max: 1_000 * HOUR });
    const jitter = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
    fc.assert(
      fc.property(settings, age, age, jitter, (limits, a, b, random) => {
        const at = (ageMs: number) => backoffByAge(limits)({ ageMs, random: () => random });
        expect(at(a)).toBeGreaterThanOrEqual(0.8 * limits.minIntervalMs);
        expect(at(a)).toBeLessThanOrEqual(5 * 1.2 * limits.maxIntervalMs);
        expect(at(Math.max(a, b))).toBeGreaterThanOrEqual(at(Math.min(a, b)));
      }),
    );
  });
});

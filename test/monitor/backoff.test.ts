import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { backoffMs, ceilingMs } from '../../src/monitor/backoff.ts';

const defaults = { minIntervalMs: 2_000, maxIntervalMs: 60_000 };
const [SECOND, MINUTE, HOUR] = [1_000, 60_000, 3_600_000];
const delay = (ageMs: number, random = 0.5) => backoffMs(defaults, ageMs, () => random);

const settings = fc
  .tuple(fc.integer({ min: 1, max: 60_000 }), fc.integer({ min: 0, max: 600_000 }))
  .map(([minIntervalMs, more]) => ({ minIntervalMs, maxIntervalMs: minIntervalMs + more }));
const age = fc.integer({ min: -HOUR, max: 1_000 * HOUR });
const jitter = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });

describe('the delay by age', () => {
  it.each([
    [0, 2 * SECOND],
    [4 * SECOND, 4 * SECOND],
    [20 * SECOND, 12 * SECOND],
    [MINUTE, 30 * SECOND],
    [30 * MINUTE, 30 * SECOND],
    [HOUR, MINUTE],
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
    expect(delay(MINUTE, 0)).toBeCloseTo(24 * SECOND);
    expect(delay(MINUTE, 1)).toBeCloseTo(36 * SECOND);
  });

  it('draws anew for each question', () => {
    const draws = [0, 0.5];
    const random = () => draws.shift() ?? 0;
    expect([backoffMs(defaults, 0, random), backoffMs(defaults, 0, random)]).toEqual([1_600, 2_000]);
  });

  it('never leaves its limits and never shrinks with age', () => {
    fc.assert(
      fc.property(settings, age, age, jitter, (limits, a, b, random) => {
        const at = (ageMs: number) => backoffMs(limits, ageMs, () => random);
        expect(at(a)).toBeGreaterThanOrEqual(0.8 * limits.minIntervalMs);
        expect(at(a)).toBeLessThanOrEqual(ceilingMs(limits, a));
        expect(at(Math.max(a, b))).toBeGreaterThanOrEqual(at(Math.min(a, b)));
      }),
    );
  });
});

describe('the ceiling', () => {
  it.each([
    [0, MINUTE],
    [MINUTE, MINUTE],
    [2 * MINUTE, 2 * MINUTE],
    [5 * MINUTE, 5 * MINUTE],
    [24 * HOUR, 5 * MINUTE],
  ])('at an age of %i ms is %i ms', (ageMs, ms) => {
    expect(ceilingMs(defaults, ageMs)).toBe(ms);
  });
});

import { describe, expect, it } from 'vitest';
import { ceilingMs } from '../../src/pacing/index.ts';

const MINUTE = 60_000;

describe('the safety net', () => {
  it.each([
    [-MINUTE, MINUTE],
    [0, MINUTE],
    [MINUTE, MINUTE],
    [2 * MINUTE, 2 * MINUTE],
    [5 * MINUTE, 5 * MINUTE],
    [24 * 60 * MINUTE, 5 * MINUTE],
  ])('at an age of %i ms is %i ms', (ageMs, ms) => {
    expect(ceilingMs({ maxIntervalMs: MINUTE }, ageMs)).toBe(ms);
  });
});

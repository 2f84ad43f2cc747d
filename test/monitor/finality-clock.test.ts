import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { seededRandom } from '../../bench/support/random.ts';
import { FinalityClock } from '../../src/monitor/finality-clock.ts';

const PERIOD_MS = 20_000;

/** Every block bounded from both sides by at most this much; `unevenMs`: how far a block may be beside the clock. */
function taught(blocks: readonly number[], options: { boundMs?: number; unevenMs?: number; seed?: number } = {}) {
  const { boundMs = 8_000, unevenMs = 0, seed = 1 } = options;
  const random = seededRandom(seed);
  const clock = new FinalityClock();
  for (const block of blocks) {
    const at = block * PERIOD_MS + (random() - 0.5) * 2 * unevenMs;
    clock.learn({ block, after: at - boundMs * random(), by: at + boundMs * random() });
  }
  return clock;
}

const range = (from: number, to: number) => Array.from({ length: to - from }, (_, index) => from + index);

describe('the clock of finality', () => {
  it('is not known from two blocks', () => {
    expect(taught([1, 2]).windowAfter(0)).toBeNull();
    expect(taught([1, 2]).periodMs).toBeNull();
  });

  it('is known within a second after some blocks that were each seen within sixteen', () => {
    const clock = taught(range(100, 130));
    const window = clock.windowAfter(130 * PERIOD_MS - 5_000);
    expect(clock.periodMs).toBeCloseTo(PERIOD_MS, -3);
    expect(window?.from).toBeLessThanOrEqual(130 * PERIOD_MS);
    expect(window?.until).toBeGreaterThanOrEqual(130 * PERIOD_MS);
    expect((window?.until ?? 0) - (window?.from ?? 0)).toBeLessThan(4_000);
  });

  it('tells when a block was final, the blocks in between that nobody was in included', () => {
    const clock = taught([100, 103, 104, 109, 115, 120], { boundMs: 500 });
    expect(clock.finalBy(112)).toBeCloseTo(112 * PERIOD_MS, -4);
  });

  it('has a window as wide as the clock is uneven', () => {
    const clock = taught(range(100, 132), { boundMs: 300, unevenMs: 2_000 });
    const window = clock.windowAfter(132 * PERIOD_MS);
    const widthMs = (window?.until ?? 0) - (window?.from ?? 0);
    expect(widthMs).toBeGreaterThan(2_000);
    expect(widthMs).toBeLessThan(8_000);
  });

  it('is not believed where blocks are final at any moment', () => {
    expect(taught(range(100, 132), { boundMs: 100, unevenMs: 10_000 }).windowAfter(140 * PERIOD_MS)).toBeNull();
  });

  it('is less certain the longer nothing was seen, and at last unknown', () => {
    const clock = taught(range(100, 132), { boundMs: 100 });
    const widthAt = (time: number) => {
      const window = clock.windowAfter(time);
      return window ? window.until - window.from : Number.POSITIVE_INFINITY;
    };
    expect(widthAt(140 * PERIOD_MS)).toBeLessThan(widthAt(240 * PERIOD_MS));
    expect(widthAt(5_000 * PERIOD_MS)).toBe(Number.POSITIVE_INFINITY);
  });

  it('forgets the old one within a few blocks of a new one', () => {
    const clock = taught(range(100, 132), { boundMs: 300 });
    const changedAt = 132 * PERIOD_MS;
    for (let index = 0; index < 8; index++) {
      const at = changedAt + index * 6_000;
      clock.learn({ block: 132 + index, after: at - 200, by: at + 200 });
    }
    expect(clock.periodMs).toBeCloseTo(6_000, -3);
  });

  it('stands one answer that contradicts all others, within a few blocks', () => {
    const clock = taught(range(100, 120), { boundMs: 300 });
    clock.learn({ block: 119, after: 119 * PERIOD_MS + 15_000, by: 119 * PERIOD_MS });
    for (const block of range(120, 127))
      clock.learn({ block, after: block * PERIOD_MS - 99, by: block * PERIOD_MS + 99 });
    expect(clock.windowAfter(127 * PERIOD_MS - 1_000)?.until).toBeCloseTo(127 * PERIOD_MS, -3);
  });

  it('whatever bounds an even clock is seen with, the next moment is in its window', () => {
    const bounds = fc.array(
      fc.record({ skip: fc.integer({ min: 1, max: 4 }), before: fc.nat(19_000), behind: fc.nat(19_000) }),
      { minLength: 3, maxLength: 60 },
    );
    fc.assert(
      fc.property(bounds, (seen) => {
        const clock = new FinalityClock();
        let block = 1_000;
        for (const { skip, before, behind } of seen) {
          block += skip;
          clock.learn({ block, after: block * PERIOD_MS - before - 1, by: block * PERIOD_MS + behind });
        }
        const next = (block + 1) * PERIOD_MS;
        const window = clock.windowAfter(next - 1);
        if (!window) return;
        expect(window.from).toBeLessThanOrEqual(next + 1);
        expect(window.until).toBeGreaterThanOrEqual(next - 1);
      }),
      { numRuns: 300 },
    );
  });
});

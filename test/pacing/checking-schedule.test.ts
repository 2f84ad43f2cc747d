import { describe, expect, it } from 'vitest';
import { seededRandom } from '../../bench/support/random.ts';
import {
  type CheckingProblem,
  checkingSchedule,
  nextCheck,
} from '../../src/pacing/distribution.ts';

/**
 * Cost of these polls (grid points, in order), where the event may have happened before the first
 * cell without a poll.
 */
function costOf({ cdf, widths, price, endLag }: CheckingProblem, polls: readonly number[]): number {
  let cost = 0;
  let last = 0;
  const lagUntil = (from: number, to: number, found: number) => {
    let lag = 0;
    for (let i = from; i < to; i++) {
      const before = i > 0 ? (cdf[i - 1] as number) : 0;
      lag += ((before + (cdf[i] as number)) / 2 - found) * (widths[i] as number);
    }
    return lag;
  };
  let found = 0;
  for (const poll of polls) {
    cost += 1 - found + price * lagUntil(last, poll, found);
    found = poll > 0 ? (cdf[poll - 1] as number) : 0;
    last = poll;
  }
  const end = cdf.length;
  return cost + price * (lagUntil(last, end, found) + ((cdf[end - 1] as number) - found) * endLag);
}

/** Every set of grid points from 1 to `cells`. */
function* everySchedule(cells: number): Generator<number[]> {
  for (let mask = 0; mask < 2 ** cells; mask++)
    yield Array.from({ length: cells }, (_, i) => i + 1).filter(
      (point) => mask & (1 << (point - 1)),
    );
}

function randomProblem(random: () => number): CheckingProblem {
  const cells = 1 + Math.floor(9 * random());
  const weights = Array.from({ length: cells }, () => (random() < 0.3 ? 0 : random()));
  const never = random() < 0.5 ? 0 : random();
  const total = weights.reduce((a, b) => a + b, never) || 1;
  let sum = 0;
  const cdf = weights.map((weight) => {
    sum += weight / total;
    return sum;
  });
  return {
    cdf,
    widths: cdf.map(() => 0.1 + random()),
    from: 0,
    price: 0.1 * 100 ** random(),
    endLag: 5 * random(),
  };
}

describe('the checking schedule', () => {
  it('costs no more than the best of all sets of polls', () => {
    for (let seed = 1; seed <= 150; seed++) {
      const problem = randomProblem(seededRandom(seed));
      const next = checkingSchedule(problem);
      const chosen: number[] = [];
      for (let i = next[0] ?? -1; i > 0; i = next[i] ?? -1) chosen.push(i);
      const minCost = Math.min(
        ...[...everySchedule(problem.cdf.length)].map((polls) => costOf(problem, polls)),
      );
      expect(costOf(problem, chosen), `seed ${seed}`).toBeLessThanOrEqual(minCost + 1e-9);
    }
  });

  it('has no poll that costs more than it can gain', () => {
    const problem = { cdf: [0.01, 0.02], widths: [1, 1], from: 0, price: 0.1, endLag: 1 };
    expect([...checkingSchedule(problem)]).toEqual([-1, -1]);
    expect(nextCheck(problem)).toBe(-1);
  });
});

describe('the next check', () => {
  it('is immediate if the event has probably happened, and never before the present', () => {
    const widths = [1, 1, 1, 1, 1];
    const likely = { cdf: [0.9, 0.92, 0.94, 0.96, 1], widths, from: 1, price: 5, endLag: 5 };
    expect(nextCheck(likely)).toBe(1);
    const later = { cdf: [0, 0, 0, 0.9, 1], widths, from: 1, price: 5, endLag: 5 };
    expect(nextCheck(later)).toBeGreaterThanOrEqual(4);
  });
});

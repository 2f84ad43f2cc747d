import { expect, it } from 'vitest';
import { seededRandom } from '../../bench/support/random.ts';
import { AgeDistribution } from '../../src/pacing/age-distribution.ts';

it('the age distribution finds quartiles from intervals of a fifth of the age', () => {
  const random = seededRandom(1);
  const ages = new AgeDistribution(1);
  for (let i = 0; i < 1_000; i++) {
    const age = 40_000 + 80_000 * random();
    const after = age * (1 - 0.2 * random());
    ages.learn(after, after * 1.25);
  }
  const quantile = (p: number) =>
    ages.curve().find(({ probability }) => probability >= p)?.afterMs ?? 0;
  expect(quantile(0.25) / 60_000).toBeCloseTo(1, 0);
  expect(ages.medianMs / 80_000).toBeGreaterThan(0.85);
  expect(ages.medianMs / 80_000).toBeLessThan(1.15);
});

it('the more submissions depend on a poll, the sooner it is due, even within one cell of the distribution', () => {
  const ages = new AgeDistribution(1);
  for (let i = 0; i < 50; i++) ages.learn(400_000 + 5_000 * i, 405_000 + 5_000 * i);
  const afterMs = (dependents: number) => ages.nextAgeMs(500_000, dependents) - 500_000;
  expect(afterMs(1)).toBeGreaterThan(5_000);
  expect(afterMs(16)).toBeLessThan(afterMs(1));
  // A cell is 35 s long at this age.
  expect(afterMs(64)).toBeLessThan(4_000);
});

import { expect, it } from 'vitest';
import { seededRandom } from '../../../bench/support/random.ts';
import { AgeDistribution } from '../../../src/pacing/policy/age-distribution.ts';

it('the age distribution finds quartiles from intervals of a fifth of the age', () => {
  const random = seededRandom(1);
  const ages = new AgeDistribution(1);
  for (let i = 0; i < 1_000; i++) {
    const age = 40_000 + 80_000 * random();
    const after = age * (1 - 0.2 * random());
    ages.learn(after, after * 1.25);
  }
  const quantile = (p: number) => ages.curve().find(({ probability }) => probability >= p)?.afterMs ?? 0;
  expect(quantile(0.25) / 60_000).toBeCloseTo(1, 0);
  expect(ages.medianMs / 80_000).toBeGreaterThan(0.85);
  expect(ages.medianMs / 80_000).toBeLessThan(1.15);
});

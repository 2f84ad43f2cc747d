import { expect, it } from 'vitest';
import { lowerBound } from '../../bench/pacing/lower-bound.ts';

// From an independent computation of the same schedule.
it.each([
  ['calm', false, 1.29, 0.5],
  ['usual', false, 1.58, 0.72],
  ['rough', false, 2.2, 1.52],
] as const)(
  'the optimum schedule of the world %s equals the independently computed one',
  (world, senders, requests, meanS) => {
    const bound = lowerBound(world, senders);
    expect(bound.requests).toBeCloseTo(requests, 1);
    expect(bound.meanS).toBeCloseTo(meanS, 1);
  },
);

it('the phases of serial senders increase the cost', () => {
  const { requests, meanS } = lowerBound('usual', true);
  expect(requests + meanS).toBeCloseTo(1.74 + 0.98, 1);
});

it('a higher price of lag reduces lag at the cost of more requests', () => {
  const [cheap, dear] = [lowerBound('usual', false, 0.5), lowerBound('usual', false, 2)];
  expect(dear.meanS).toBeLessThan(cheap.meanS);
  expect(dear.requests).toBeGreaterThan(cheap.requests);
});

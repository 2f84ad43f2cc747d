import { expect, it } from 'vitest';
import { arrivalsOf } from '../../bench/pacing/arrivals.ts';
import { sandboxWorld } from '../../bench/pacing/sandbox-world.ts';
import { simulate } from '../../bench/pacing/simulate.ts';
import { seededRandom } from '../../bench/support/random.ts';
import { learnedPacing } from '../../src/pacing/index.ts';

const AMPLE = { requests: 10_000, perMs: 1_000, concurrency: 10_000 };
const SLOT_S = 20;

/**
 * Requests + slots of lag × 20, per submission, in the world `usual` with slots of another length.
 */
function cost(slotS: number): number {
  const speed = SLOT_S / slotS;
  const arrivals = [
    ...arrivalsOf({ kind: 'poisson', perS: 0.3 * speed, submissions: 300 }, seededRandom(5)),
  ];
  const world = sandboxWorld({ seed: 3, world: 'usual', speed });
  const { submissions, requests } = simulate({
    world,
    arrivals,
    budget: AMPLE,
    policy: learnedPacing({ lagPrice: speed }),
    seed: 3,
  });
  const lagS = submissions.reduce(
    (sum, { detectedAt, finalAt }) => sum + (detectedAt - finalAt) / 1_000,
    0,
  );
  return (requests + speed * lagS) / submissions.length;
}

it('a chain and a price of lag that are faster by the same factor cost the same, but for the latency', () => {
  expect(cost(SLOT_S)).toBeLessThan(4);
  // A response takes up to 70 ms, which is lag, and the prior expects half a minute.
  for (const slotS of [1, 4, 12])
    expect(cost(slotS), `slots of ${slotS} s`).toBeLessThan(4 + 2 / slotS);
  // The safety net adds a poll per minute.
  expect(cost(60)).toBeLessThan(5.5);
});

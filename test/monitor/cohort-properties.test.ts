import fc from 'fast-check';
import { expect, it } from 'vitest';
import { simulate } from '../../bench/pacing/simulate.ts';
import { seededRandom } from '../../bench/support/random.ts';
import { ceilingMs } from '../../src/monitor/backoff.ts';
import { cohortPacing } from '../../src/monitor/cohort-policy.ts';
import { type Nature, randomWorld } from '../support/random-world.ts';

const settings = { minIntervalMs: 1_000, maxIntervalMs: 60_000 };
/** The longest answer, and a place in the budget that is given back only then. */
const ANSWER_MS = 100;

const LIVES: Record<string, Nature['lifeMs']> = {
  'in order, 40 s': () => 40_000,
  'any, up to 10 minutes': (random) => 600_000 * random(),
  'mostly short, some for hours': (random) => 5_000 / (1.0005 - random()),
  'the newest first': (_random, index) => Math.max(1_000, 400_000 - 2_500 * index),
  'all after ten minutes': (_random, index) => Math.max(1, 600_000 - 500 * index),
};

const upstream = fc.record({
  seed: fc.integer(),
  life: fc.constantFrom(...Object.keys(LIVES)),
  blocks: fc.constantFrom('none', 'own', 'clock', 'odd'),
  clockMs: fc.constantFrom(0, 2_000, 20_000, 90_000),
  deadEvery: fc.constantFrom(0, 1, 7, 1_000),
  submissions: fc.integer({ min: 1, max: 150 }),
  apartMs: fc.constantFrom(0, 50, 2_000, 30_000),
  requests: fc.integer({ min: 1, max: 20 }),
});

it('nobody starves: each is asked again within the ceiling and the queue of the budget, and so found final', () => {
  fc.assert(
    fc.property(upstream, ({ seed, life, blocks, clockMs, deadEvery, submissions, apartMs, requests }) => {
      const random = seededRandom(seed);
      const lifeMs = LIVES[life] ?? (() => 0);
      const world = randomWorld({ lifeMs, blocks: blocks as Nature['blocks'], clockMs, deadEvery }, random);
      const arrivals = Array.from({ length: submissions }, (_, index) => index * apartMs);
      const endMs = 7_200_000;
      const budget = { requests, perMs: 1_000, concurrency: 20 };
      const { lives } = simulate({ world, arrivals, budget, policy: cohortPacing(settings), seed, endMs });
      // Everybody before it, once over: those due by age, and those that a sweep put before them.
      const queueMs = Math.ceil((2 * submissions) / requests) * (budget.perMs + ANSWER_MS) + ANSWER_MS;
      for (const { trackedAt, askedAt, detectedAt } of lives) {
        const moments = [trackedAt, ...askedAt, Math.min(detectedAt, endMs)];
        for (const [index, at] of moments.entries()) {
          const before = moments[index - 1] ?? at;
          const ceiling = ceilingMs(settings, before - trackedAt + ANSWER_MS);
          expect(at - before, `asked at ${before} and ${at}, tracked at ${trackedAt}`).toBeLessThanOrEqual(
            ceiling + queueMs,
          );
        }
      }
    }),
    { numRuns: 120 },
  );
});

import { describe, expect, it } from 'vitest';
import { arrivalsOf } from '../../../bench/pacing/arrivals.ts';
import { BASELINES } from '../../../bench/pacing/baselines.ts';
import { type Run, simulate, type World } from '../../../bench/pacing/simulate.ts';
import { seededRandom } from '../../../bench/support/random.ts';
import { learnedPacing } from '../../../src/pacing/policy/policy.ts';
import type { PolicyFactory } from '../../../src/pacing/policy.ts';
import { ceilingMs } from '../../../src/pacing/safety-limit.ts';
import { adversarialWorld, mixture, SHAPES, worldOf } from '../../support/finality-worlds.ts';

const AMPLE = { requests: 10_000, perMs: 1_000, concurrency: 10_000 };
const LEARNED = learnedPacing({ lagPrice: 1 });
const EXPONENTIAL = BASELINES.exponential as PolicyFactory;
const SEED = 3;
/** So few that the first third lasts longer than the longest distribution. */
const RARE = { perS: 0.02, submissions: 100 };
/** A poll is answered after 70 ms at most, and one second is allowed beside. */
const SLACK_MS = 1_000;

function run(world: World, policy: PolicyFactory, { perS = 0.1, submissions = 240, endMs = Infinity } = {}): Run {
  const arrivals = arrivalsOf({ kind: 'poisson', perS, submissions }, seededRandom(SEED));
  return simulate({ world, arrivals, budget: AMPLE, policy, seed: SEED, endMs });
}

/** Requests and seconds of lag of a submission, in the mean after the first third. */
function longRunCost({ lives }: Run): number {
  const late = lives.slice(lives.length / 3);
  const costs = late.map(({ askedAt, detectedAt, finalAt }) => askedAt.length + (detectedAt - finalAt) / 1_000);
  return costs.reduce((sum, cost) => sum + cost, 0) / late.length;
}

/** By how much the worst submission went unpolled longer than the safety net allows. */
function beyondTheNet({ lives }: Run): number {
  let worst = Number.NEGATIVE_INFINITY;
  for (const { trackedAt, askedAt } of lives) {
    let before = trackedAt;
    for (const at of askedAt) {
      worst = Math.max(worst, at - before - ceilingMs({ maxIntervalMs: 60_000 }, at - trackedAt));
      before = at;
    }
  }
  return worst;
}

const shapes = [
  ...Object.entries(SHAPES),
  ...[8, 14, 46, 47, 2, 5].map((seed) => [`mixture, seed ${seed}`, mixture(seededRandom(seed * 77 + 5))] as const),
];

describe('whatever the distribution of finality time', () => {
  it.each(shapes)(
    '%s: it costs at most a tenth more than the exponential rule, and the safety net holds',
    (_, finality) => {
      const world = () => worldOf(finality, seededRandom(SEED));
      const learned = run(world(), LEARNED);
      expect(longRunCost(learned)).toBeLessThan(1.1 * longRunCost(run(world(), EXPONENTIAL)));
      expect(beyondTheNet(learned)).toBeLessThan(SLACK_MS);
    },
  );

  it.each(shapes.filter((_, i) => i % 3 === 0))('%s, but always just after a poll: the same', (_, finality) => {
    const world = () => adversarialWorld(finality, seededRandom(SEED));
    const learned = run(world(), LEARNED, RARE);
    const exponential = run(world(), EXPONENTIAL, RARE);
    expect(longRunCost(learned)).toBeLessThan(1.1 * longRunCost(exponential));
    expect(beyondTheNet(learned)).toBeLessThan(SLACK_MS);
  });

  it('never: it asks less often than the exponential rule, and the safety net holds', () => {
    const never = () => worldOf(() => ({ at: Infinity, block: null }), seededRandom(SEED));
    const learned = run(never(), LEARNED, { submissions: 50, endMs: 4 * 3_600_000 });
    expect(learned.requests).toBeLessThan(
      run(never(), EXPONENTIAL, { submissions: 50, endMs: 4 * 3_600_000 }).requests,
    );
    expect(beyondTheNet(learned)).toBeLessThan(SLACK_MS);
    for (const { askedAt } of learned.lives) expect(askedAt.at(-1)).toBeGreaterThan(4 * 3_600_000 - 301_000);
  });
});

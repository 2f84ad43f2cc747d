import { describe, expect, it } from 'vitest';
import { arrivalsOf } from '../../bench/pacing/arrivals.ts';
import { BASELINES } from '../../bench/pacing/baselines.ts';
import { sandboxWorld } from '../../bench/pacing/sandbox-world.ts';
import { type Run, START_MS, simulate, type World } from '../../bench/pacing/simulate.ts';
import { seededRandom } from '../../bench/support/random.ts';
import { learnedPacing, type PolicyFactory } from '../../src/pacing/index.ts';
import {
  adversarialWorld,
  type Finality,
  failingWorld,
  mixture,
  SHAPES,
  stallingWorld,
  worldOf,
} from '../support/virtual-time/finality-worlds.ts';
import { costOf, excessOverSafetyNet, SLACK_MS } from '../support/virtual-time/pacing.ts';

const AMPLE = { requests: 10_000, perMs: 1_000, concurrency: 10_000 };
const LEARNED = learnedPacing({ lagPrice: 1 });
const EXPONENTIAL = BASELINES.exponential as PolicyFactory;
const SEED = 3;
/** A rate so low that the first third lasts longer than the longest distribution. */
const RARE = { perS: 0.02, submissions: 100 };

function run(
  world: World,
  policy: PolicyFactory,
  { perS = 0.1, submissions = 200, endMs = Infinity } = {},
): Run {
  const arrivals = arrivalsOf({ kind: 'poisson', perS, submissions }, seededRandom(SEED));
  return simulate({ world, arrivals, budget: AMPLE, policy, seed: SEED, endMs });
}

/** Excludes the first third, during which the policy learns. */
const longRunCost = ({ submissions }: Run) => costOf(submissions.slice(submissions.length / 3));

const shapes = [
  ...Object.entries(SHAPES),
  ...[8, 46].map(
    (seed) => [`mixture, seed ${seed}`, mixture(seededRandom(seed * 77 + 5))] as const,
  ),
];

describe('for any distribution of finality time', () => {
  it.each(shapes)(
    '%s: the cost is at most 10 % above the exponential rule, and the safety net holds',
    (_, finality) => {
      const world = () => worldOf(finality, seededRandom(SEED));
      const learned = run(world(), LEARNED);
      expect(longRunCost(learned)).toBeLessThan(1.1 * longRunCost(run(world(), EXPONENTIAL)));
      expect(excessOverSafetyNet(learned.submissions)).toBeLessThan(SLACK_MS);
    },
  );

  it.each(shapes.filter((_, i) => i % 3 === 0))(
    '%s, with finality always just after a poll: the same',
    (_, finality) => {
      const world = () => adversarialWorld(finality, seededRandom(SEED));
      const learned = run(world(), LEARNED, RARE);
      const exponential = run(world(), EXPONENTIAL, RARE);
      expect(longRunCost(learned)).toBeLessThan(1.1 * longRunCost(exponential));
      expect(excessOverSafetyNet(learned.submissions)).toBeLessThan(SLACK_MS);
    },
  );

  it('never: fewer requests than the exponential rule, and the safety net holds', () => {
    const never = () => worldOf(() => ({ at: Infinity, block: null }), seededRandom(SEED));
    const learned = run(never(), LEARNED, { submissions: 50, endMs: 4 * 3_600_000 });
    expect(learned.requests).toBeLessThan(
      run(never(), EXPONENTIAL, { submissions: 50, endMs: 4 * 3_600_000 }).requests,
    );
    expect(excessOverSafetyNet(learned.submissions)).toBeLessThan(SLACK_MS);
    for (const { polledAt } of learned.submissions)
      expect(polledAt.at(-1)).toBeGreaterThan(4 * 3_600_000 - 301_000);
  });

  it('in a stall of 28 minutes all fail: they are found final soon after it', () => {
    const [fromMs, stallMs] = [START_MS + 1_800_000, 28 * 60_000];
    const world = stallingWorld(sandboxWorld({ world: 'usual', seed: SEED }), {
      fromMs,
      untilMs: fromMs + stallMs,
    });
    const { submissions } = run(world, LEARNED, { perS: 0.1, submissions: 400 });
    const hit = submissions.filter(
      ({ trackedAt }) => trackedAt >= 1_800_000 && trackedAt < 1_800_000 + stallMs,
    );
    const lags = hit.map(({ detectedAt, finalAt }) => detectedAt - finalAt).sort((a, b) => a - b);
    expect(hit.length).toBeGreaterThan(100);
    expect(lags[Math.floor(lags.length / 2)]).toBeLessThan(8_000);
    expect(lags.at(-1)).toBeLessThan(90_000);
  });

  // Each failure begins a new attempt, which would become final as fast as the first one if it
  // succeeded.
  it.each([
    ['in slots', () => sandboxWorld({ world: 'usual', seed: SEED })],
    ['without slots', () => worldOf(SHAPES.exponential as Finality, seededRandom(SEED))],
    ['behind serial senders', () => sandboxWorld({ world: 'usual', senders: 8, seed: SEED })],
  ])('%s, every attempt fails: hardly more polls than the safety net demands', (_, open) => {
    const day = 86_400_000;
    const world = failingWorld(open(), 20);
    const { submissions } = run(world, LEARNED, { perS: 0.02, submissions: 200, endMs: day });
    const failing = submissions.filter(({ submissionId }) => world.fails(submissionId));
    for (const { trackedAt, polledAt } of failing) {
      const netPolls = (day - trackedAt) / 300_000;
      expect(polledAt.length).toBeLessThan(2.5 * netPolls);
    }
    expect(excessOverSafetyNet(submissions)).toBeLessThan(SLACK_MS);
  });
});

import { describe, expect, it } from 'vitest';
import { arrivalsOf } from '../../bench/pacing/arrivals.ts';
import { RULES } from '../../bench/pacing/rules.ts';
import { sandboxWorld } from '../../bench/pacing/sandbox-world.ts';
import { type Run, simulate, type World } from '../../bench/pacing/simulate.ts';
import { seededRandom } from '../../bench/support/random.ts';
import { eventPacing, type PolicyFactory } from '../../src/pacing/index.ts';
import { SHAPES, worldOf } from '../support/virtual-time/finality-worlds.ts';
import { costOf, excessOverSafetyNet, SLACK_MS } from '../support/virtual-time/pacing.ts';

const AMPLE = { requests: 10_000, perMs: 1_000, concurrency: 10_000 };
const LEARNED = eventPacing({ lagPrice: 1 });
const EXPONENTIAL = RULES.exponential as PolicyFactory;
const SEED = 3;

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

describe('for any distribution of finality time', () => {
  it.each(Object.entries(SHAPES))(
    '%s: the cost is at most 10 % above the exponential rule, and the safety net holds',
    (_, finality) => {
      const world = () => worldOf(finality, seededRandom(SEED));
      const learned = run(world(), LEARNED);
      expect(longRunCost(learned)).toBeLessThan(1.1 * longRunCost(run(world(), EXPONENTIAL)));
      expect(excessOverSafetyNet(learned.submissions)).toBeLessThan(SLACK_MS);
    },
  );

  it('behind serial senders with stalls and timeouts, the safety net holds', () => {
    const world = sandboxWorld({ seed: 2, world: 'rough', senders: 3, stallRate: 0.05 });
    expect(excessOverSafetyNet(run(world, LEARNED).submissions)).toBeLessThan(SLACK_MS);
  });

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
});

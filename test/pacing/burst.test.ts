import { expect, it } from 'vitest';
import { arrivalsOf } from '../../bench/pacing/arrivals.ts';
import { simulate } from '../../bench/pacing/simulate.ts';
import { seededRandom } from '../../bench/support/random.ts';
import { learnedPacing } from '../../src/pacing/index.ts';
import { periodic, worldOf } from '../support/virtual-time/finality-worlds.ts';
import {
  costOf,
  countingReschedules,
  excessOverSafetyNet,
  SLACK_MS,
} from '../support/virtual-time/pacing.ts';

const AMPLE = { requests: 100_000, perMs: 1_000, concurrency: 100_000 };
const TRAINING = 300;

/** Simulates a burst within one slot, after submissions from which the slots were learned. */
function burst(size: number, hasBlocks: boolean) {
  const random = seededRandom(5);
  const training = [...arrivalsOf({ kind: 'poisson', perS: 0.5, submissions: TRAINING }, random)];
  const own = Array.from({ length: size }, () => 800_000 + 15_000 * random()).sort((a, b) => a - b);
  const { policy, reschedules } = countingReschedules(learnedPacing({ lagPrice: 1 }));
  const world = worldOf(periodic(20, { hasBlocks }), seededRandom(5));
  const { submissions } = simulate({
    world,
    arrivals: [...training, ...own],
    budget: AMPLE,
    policy,
    seed: 5,
  });
  const ofBurst = submissions.slice(TRAINING);
  const polls = ofBurst.reduce((sum, { polledAt }) => sum + polledAt.length, 0);
  return {
    polls: polls / size,
    cost: costOf(ofBurst),
    reschedules: reschedules() / size,
    beyond: excessOverSafetyNet(ofBurst),
  };
}

it.each([
  ['with', true],
  ['without', false],
])(
  '5,000 submissions in one slot, %s block numbers, cost no more and need no more reschedulings each than 1,000',
  (_, hasBlocks) => {
    const [few, many] = [burst(1_000, hasBlocks), burst(5_000, hasBlocks)];
    expect(many.cost).toBeLessThan(1.1 * few.cost);
    expect(many.polls).toBeLessThan(1.5);
    // Each may be rescheduled once, when the event of its slot has happened.
    expect(many.reschedules).toBeLessThan(few.reschedules + 1);
    expect(many.beyond).toBeLessThan(SLACK_MS);
  },
);

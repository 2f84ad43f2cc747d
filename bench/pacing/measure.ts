import type { PolicyFactory } from '../../src/pacing/index.ts';
import { learnedPacing } from '../../src/pacing/index.ts';
import { seededRandom } from '../support/random.ts';
import { arrivalsOf } from './arrivals.ts';
import { BASELINES } from './baselines.ts';
import { sandboxWorld } from './sandbox-world.ts';
import { SCENARIOS, type Scenario } from './scenarios.ts';
import { START_MS, simulate } from './simulate.ts';
import { type Summary, summarize } from './summary.ts';

const POLICIES: Record<string, PolicyFactory> = {
  dawatch: learnedPacing({ lagPrice: 1 }),
  ...BASELINES,
};
export const POLICY_NAMES = Object.keys(POLICIES);

/** One run, by names: a scenario with one policy and one seed. */
export type Measurement = { scenario: string; policy: string; seed: number };

/** Runs a measurement in virtual time, with nothing learned at the start. */
export function measure({
  scenario: scenarioName,
  policy: policyName,
  seed,
}: Measurement): Summary {
  const scenario = SCENARIOS.find(({ name }) => name === scenarioName);
  const policy = POLICIES[policyName];
  if (!scenario || !policy)
    throw new Error(`no scenario "${scenarioName}" or policy "${policyName}"`);
  const { arrivals, budget } = scenario;
  return summarize(
    simulate({
      world: worldOf(scenario, seed),
      arrivals: arrivalsOf(arrivals, seededRandom(seed)),
      budget,
      policy,
      seed,
    }),
  );
}

function worldOf({ upstream, otherGap, arrivals }: Scenario, seed: number) {
  if (otherGap === undefined || seed % 3 !== 0) return sandboxWorld({ seed, ...upstream });
  const options = { seed, ...upstream, finalityGap: otherGap.start };
  if (otherGap.later === undefined || arrivals.kind !== 'poisson') return sandboxWorld(options);
  const middleS = arrivals.submissions / arrivals.perS / 2;
  return sandboxWorld(options, { atMs: START_MS + 1_000 * middleS, blocks: otherGap.later });
}

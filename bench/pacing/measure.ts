import { chainPacing, learnedPacing, type PolicyFactory } from '../../src/pacing/index.ts';
import type { SandboxOptionsInput } from '../../src/sandbox/options.ts';
import { seededRandom } from '../support/random.ts';
import { arrivalsOf } from './arrivals.ts';
import { BASELINES } from './baselines.ts';
import { headsOf } from './heads.ts';
import { type GapChange, sandboxWorld } from './sandbox-world.ts';
import { SCENARIOS, type Scenario } from './scenarios.ts';
import { START_MS, simulate } from './simulate.ts';
import { type Summary, summarize } from './summary.ts';

/** The policy that a node of the chain tells which blocks are final. */
export const WITH_CHAIN = 'dawatch+chain';
const POLICIES: Record<string, PolicyFactory> = {
  dawatch: learnedPacing({ lagPrice: 1 }),
  [WITH_CHAIN]: chainPacing({ lagPrice: 1 }),
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
  const { options, gapChange } = chainOf(scenario, seed);
  // The latency of the announcements does not depend on the other draws.
  const announced = (startMs: number) =>
    headsOf(options, seededRandom(1_000 + seed), startMs, gapChange);
  return summarize(
    simulate({
      world: sandboxWorld(options, gapChange),
      arrivals: arrivalsOf(arrivals, seededRandom(seed)),
      budget,
      policy,
      seed,
      heads: policyName === WITH_CHAIN ? announced : undefined,
    }),
  );
}

/** Returns the options of the chain, and the change of its finality gap, if there is one. */
function chainOf(
  { upstream, otherGap, arrivals }: Scenario,
  seed: number,
): { options: SandboxOptionsInput; gapChange?: GapChange } {
  if (otherGap === undefined || seed % 3 !== 0) return { options: { seed, ...upstream } };
  const options = { seed, ...upstream, finalityGap: otherGap.start };
  if (otherGap.later === undefined || arrivals.kind !== 'poisson') return { options };
  const middleS = arrivals.submissions / arrivals.perS / 2;
  return { options, gapChange: { atMs: START_MS + 1_000 * middleS, blocks: otherGap.later } };
}

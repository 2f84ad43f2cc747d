import { eventPacing, type PolicyFactory } from '../../src/pacing/index.ts';
import { seededRandom } from '../support/random.ts';
import { arrivalsOf } from './arrivals.ts';
import { headsOf, NODES, type NodesName } from './heads.ts';
import { RULES } from './rules.ts';
import { type Chain, sandboxWorld } from './sandbox-world.ts';
import { SCENARIOS, type Scenario } from './scenarios.ts';
import { START_MS, simulate } from './simulate.ts';
import { type Summary, summarize } from './summary.ts';

/** `+chain`: nodes of the chain announce which blocks are final. */
const POLICIES: Record<string, PolicyFactory> = {
  dawatch: eventPacing({ lagPrice: 1 }),
  'dawatch+chain': eventPacing({ lagPrice: 1 }),
  ...RULES,
};
export const POLICY_NAMES = Object.keys(POLICIES);

/** One run, by names: a scenario with one policy and one seed. */
export type Measurement = { scenario: string; policy: string; nodes: NodesName; seed: number };

/** Later, the nodes are silent. Everything is final before. */
const HEADS_AFTER_LAST_MS = 2 * 3_600_000;

/** Runs a measurement in virtual time, with nothing learned at the start. */
export function measure(measurement: Measurement): Summary {
  const { seed } = measurement;
  const scenario = SCENARIOS.find(({ name }) => name === measurement.scenario);
  const policy = POLICIES[measurement.policy];
  if (!scenario || !policy) throw new Error(`unknown name in ${JSON.stringify(measurement)}`);
  const arrivals = [...arrivalsOf(scenario.arrivals, seededRandom(seed))];
  const chain = chainOf(scenario, arrivals, seed);
  const heads = headsOf(chain, NODES[measurement.nodes], {
    seed,
    firstMs: START_MS + (arrivals[0] ?? 0),
    untilMs: START_MS + (arrivals.at(-1) ?? 0) + HEADS_AFTER_LAST_MS,
  });
  const world = sandboxWorld(chain.options, chain.gapChange);
  const { budget, latencyMs } = scenario;
  return summarize(simulate({ world, arrivals, budget, policy, seed, heads, latencyMs }));
}

/** Every third seed has the other finality gap of the scenario, if it has one. */
function chainOf({ upstream, otherGap }: Scenario, arrivals: number[], seed: number): Chain {
  if (otherGap === undefined || seed % 3 !== 0) return { options: { seed, ...upstream } };
  const options = { seed, ...upstream, finalityGap: otherGap.start };
  if (otherGap.later === undefined) return { options };
  const middleMs = arrivals[Math.floor(arrivals.length / 2)] ?? 0;
  return { options, gapChange: { atMs: START_MS + middleMs, blocks: otherGap.later } };
}

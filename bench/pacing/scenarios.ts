import type { BudgetSettings } from '../../src/polling/poll-queues.ts';
import type { WorldName } from '../../src/sandbox/chain/worlds.ts';
import type { SandboxOptionsInput } from '../../src/sandbox/options.ts';
import type { Arrivals } from './arrivals.ts';
import {
  atMost,
  type Bar,
  costAtMost,
  faultyNodeBars,
  inElevenOfTwelve,
  secondNodeBar,
} from './bars.ts';
import { FAULTY_NODES, type NodesName } from './heads.ts';

export type Scenario = {
  name: string;
  upstream: SandboxOptionsInput & { world: WorldName };
  /**
   * A different finality gap for every third seed: from the start, and from the middle of the
   * arrivals on.
   */
  otherGap?: { start: number; later?: number };
  arrivals: Arrivals;
  latencyMs?: { least: number; jitter: number };
  budget: BudgetSettings;
  /** Each is measured by itself. */
  nodes: readonly NodesName[];
  bars: readonly Bar[];
  /**
   * Whether the lower bound applies: the chain has random delays, and there are no queues, limits
   * or errors.
   */
  hasLowerBound: boolean;
};

/** A budget that never limits, so that only the policies are compared. */
const AMPLE: BudgetSettings = { requests: 10_000, perMs: 1_000, concurrency: 10_000 };
const HOUR_S = 3_600;
const OTHER_GAPS = {
  calm: { start: 2 },
  usual: { start: 2 },
  rough: { start: 2, later: 1 },
  ideal: undefined,
} as const satisfies Record<WorldName, Scenario['otherGap']>;

/** An hour of arrivals, but not less than 400 and not more than 1,500. */
const poisson = (perS: number): Arrivals => ({
  kind: 'poisson',
  perS,
  submissions: Math.min(1_500, Math.max(400, perS * HOUR_S)),
});

/** 50 submissions at one moment of each hour, random within a slot. */
const BURSTS: Arrivals = {
  kind: 'bursts',
  size: 50,
  everyS: HOUR_S,
  delayMaxS: 60,
  submissions: 600,
};

type Changes = Partial<Omit<Scenario, 'upstream'>> & { upstream?: SandboxOptionsInput };

function scenario(world: WorldName, perS: number, changes: Changes): Scenario {
  return {
    name: `parallel ${world}, ${perS}/s`,
    arrivals: poisson(perS),
    budget: AMPLE,
    nodes: ['none', 'healthy'],
    bars: [],
    hasLowerBound: false,
    ...changes,
    upstream: { ...changes.upstream, world },
  };
}

function parallel(world: WorldName, perS: number, changes: Changes = {}): Scenario {
  const otherGap = OTHER_GAPS[world];
  return scenario(world, perS, { ...(otherGap && { otherGap }), ...changes });
}

/** Always with the finality gap of the world: a longer one is more than three senders can do. */
function senders(count: number, world: WorldName, load: number | 'bursts'): Scenario {
  const isBurst = load === 'bursts';
  return scenario(world, isBurst ? 0 : load, {
    name: `${count} senders ${world}, ${isBurst ? load : `${load}/s`}`,
    upstream: { senders: count },
    ...(isBurst && { arrivals: BURSTS }),
    hasLowerBound: count === 8 && !isBurst,
  });
}

/** Short, because what is assumed about the first submissions must not harm the next ones. */
function regular(
  name: string,
  arrivals: { size?: number; everyS: number; delayMaxS?: number; submissions: number },
): Scenario {
  const { size = 1, everyS, delayMaxS = everyS } = arrivals;
  return parallel('usual', size / everyS, {
    name: `regular usual, ${name}`,
    arrivals: { kind: 'regular', ...arrivals, size, delayMaxS },
    nodes: ['none', 'healthy', 'silent at first'],
    bars: (['healthy', 'silent at first'] as const).flatMap((nodes) => [
      inElevenOfTwelve(nodes, 'p99S', 3),
      atMost(nodes, 'requests', 1.2),
    ]),
  });
}

function withLatency(name: string, least: number, jitter: number, perS: number): Scenario {
  return parallel('usual', perS, {
    name: `latency ${name}, parallel usual, ${perS}/s`,
    latencyMs: { least, jitter },
  });
}

function withSlots(slotS: number, perS: number): Scenario {
  const name = `slots of ${slotS} s, parallel usual, ${perS}/s`;
  return parallel('usual', perS, { name, upstream: { slotS } });
}

function withFaultyNodes(perS: number): Scenario {
  return parallel('usual', perS, {
    name: `faulty nodes, parallel usual, ${perS}/s`,
    arrivals: { kind: 'poisson', perS, submissions: Math.max(240, 600 * perS) },
    nodes: ['none', ...FAULTY_NODES.flatMap((node) => [node, `${node} + healthy`] as const)],
    bars: FAULTY_NODES.flatMap((node) => [
      ...faultyNodeBars(node),
      secondNodeBar(node, `${node} + healthy`),
    ]),
  });
}

const COMPARABLE = { hasLowerBound: true };

const ALL: readonly Scenario[] = [
  ...[2, 0.2, 0.02].map((perS) => parallel('calm', perS, COMPARABLE)),
  ...[2, 0.2, 0.02].map((perS) => parallel('usual', perS, COMPARABLE)),
  ...[2, 0.2].map((perS) => parallel('rough', perS, COMPARABLE)),
  parallel('rough', 0.02, COMPARABLE),
  parallel('usual', 2, {
    name: 'first five minutes, parallel usual, 2/s',
    arrivals: { kind: 'poisson', perS: 2, submissions: 600 },
    bars: [
      atMost('none', 'requests', 1.7),
      atMost('none', 'meanS', 0.9),
      atMost('healthy', 'requests', 1.2),
      atMost('healthy', 'meanS', 0.6),
    ],
  }),
  ...[2, 0.2, 0.02].map((perS) => parallel('ideal', perS, { name: `ideal, ${perS}/s` })),
  ...([0.06, 0.03, 'bursts'] as const).flatMap((load) => [
    senders(8, 'calm', load),
    senders(8, 'usual', load),
    senders(3, 'usual', load),
  ]),
  parallel('usual', 0.5, {
    name: 'limit of 60 requests per 60 s, parallel usual, 0.5/s',
    upstream: { rateLimit: 60, rateLimitPerS: 60 },
    budget: { requests: 60, perMs: 60_000, concurrency: 60 },
    bars: [atMost('none', 'throttled', 0), atMost('healthy', 'throttled', 0)],
  }),
  parallel('usual', 2, {
    name: '5 % stragglers, 5 % Error, parallel usual, 2/s',
    upstream: { stragglerRate: 0.05, errorRate: 0.05 },
  }),
  parallel('usual', 20, {
    name: 'default budget, parallel usual, 20/s',
    arrivals: { kind: 'poisson', perS: 20, submissions: 6_000 },
    budget: { requests: 50, perMs: 1_000, concurrency: 32 },
    bars: [atMost('none', 'meanS', 4.3)],
  }),
  regular('one every 2 s', { everyS: 2, submissions: 300 }),
  regular('one every 6 s', { everyS: 6, submissions: 200 }),
  regular('one every 10 s', { everyS: 10, submissions: 200 }),
  regular('one every 20 s', { everyS: 20, submissions: 150 }),
  // The first submission is made when blocks become final.
  regular('one with each head', { everyS: 20, delayMaxS: 1, submissions: 150 }),
  regular('one every 60 s', { everyS: 60, submissions: 100 }),
  regular('a pair every second', { size: 2, everyS: 1, submissions: 600 }),
  withLatency('30 ms', 30, 0, 2),
  withLatency('200 to 400 ms', 200, 200, 2),
  withLatency('200 to 400 ms', 200, 200, 0.2),
  ...[6, 12].flatMap((slotS) => [withSlots(slotS, 2), withSlots(slotS, 0.2)]),
  withFaultyNodes(2),
  withFaultyNodes(0.2),
];

/** Mean costs of the seeds 1 to 12, and 5 % more: without a node, and with a healthy one. */
const COSTS: Record<string, readonly [number, number]> = {
  'parallel calm, 2/s': [1.78, 1.78],
  'parallel calm, 0.2/s': [1.96, 1.8],
  'parallel calm, 0.02/s': [2.32, 1.91],
  'parallel usual, 2/s': [2.06, 1.73],
  'parallel usual, 0.2/s': [2.37, 1.78],
  'parallel usual, 0.02/s': [3.11, 1.86],
  'parallel rough, 2/s': [2.87, 2.3],
  'parallel rough, 0.2/s': [3.74, 2.35],
  'parallel rough, 0.02/s': [5.86, 2.61],
  'first five minutes, parallel usual, 2/s': [2.21, 1.8],
  'ideal, 2/s': [1.61, 1.58],
  'ideal, 0.2/s': [1.65, 1.66],
  'ideal, 0.02/s': [1.76, 1.73],
  '8 senders calm, 0.06/s': [2.89, 2.66],
  '8 senders usual, 0.06/s': [3.33, 2.74],
  '3 senders usual, 0.06/s': [3.8, 3.17],
  '8 senders calm, 0.03/s': [2.92, 2.7],
  '8 senders usual, 0.03/s': [3.4, 2.73],
  '3 senders usual, 0.03/s': [3.63, 2.99],
  '8 senders calm, bursts': [3.93, 3.77],
  '8 senders usual, bursts': [4.18, 3.88],
  '3 senders usual, bursts': [4.94, 4.59],
  'limit of 60 requests per 60 s, parallel usual, 0.5/s': [2.8, 2.13],
  '5 % stragglers, 5 % Error, parallel usual, 2/s': [2.48, 2.06],
  'default budget, parallel usual, 20/s': [6.69, 5.98],
  'regular usual, one every 2 s': [2.31, 1.79],
  'regular usual, one every 6 s': [2.48, 1.81],
  'regular usual, one every 10 s': [2.69, 1.91],
  'regular usual, one every 20 s': [2.82, 1.87],
  'regular usual, one with each head': [3.07, 1.96],
  'regular usual, one every 60 s': [3.36, 2.04],
  'regular usual, a pair every second': [2.23, 1.81],
  'latency 30 ms, parallel usual, 2/s': [2.01, 1.72],
  'latency 200 to 400 ms, parallel usual, 2/s': [2.35, 1.97],
  'latency 200 to 400 ms, parallel usual, 0.2/s': [2.66, 1.95],
  'slots of 6 s, parallel usual, 2/s': [2.57, 1.73],
  'slots of 6 s, parallel usual, 0.2/s': [3.32, 1.89],
  'slots of 12 s, parallel usual, 2/s': [2.06, 1.74],
  'slots of 12 s, parallel usual, 0.2/s': [2.52, 1.79],
};

export const SCENARIOS: readonly Scenario[] = ALL.map((scenario) => {
  const costs = COSTS[scenario.name];
  return costs ? { ...scenario, bars: [...costAtMost(costs), ...scenario.bars] } : scenario;
});

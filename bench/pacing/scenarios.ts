import type { BudgetSettings } from '../../src/polling/poll-queues.ts';
import type { WorldName } from '../../src/sandbox/chain/worlds.ts';
import type { SandboxOptionsInput } from '../../src/sandbox/options.ts';
import type { Arrivals } from './arrivals.ts';
import {
  atMost,
  atMostToday,
  type Bar,
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
    bars: [atMostToday('none', 1.04), atMostToday('healthy', 1.04)],
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

const MUCH_BELOW_TODAY = { bars: [atMostToday('none', 0.9), atMostToday('healthy', 1.04)] };
const COMPARABLE = { hasLowerBound: true };

export const SCENARIOS: readonly Scenario[] = [
  ...[2, 0.2, 0.02].map((perS) => parallel('calm', perS, COMPARABLE)),
  ...[2, 0.2, 0.02].map((perS) => parallel('usual', perS, COMPARABLE)),
  ...[2, 0.2].map((perS) => parallel('rough', perS, { ...COMPARABLE, ...MUCH_BELOW_TODAY })),
  parallel('rough', 0.02, COMPARABLE),
  parallel('usual', 2, {
    name: 'first five minutes, parallel usual, 2/s',
    arrivals: { kind: 'poisson', perS: 2, submissions: 600 },
    bars: [
      ...MUCH_BELOW_TODAY.bars,
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
    bars: [
      atMostToday('none', 1.04),
      atMostToday('healthy', 1.04),
      atMost('none', 'throttled', 0),
      atMost('healthy', 'throttled', 0),
    ],
  }),
  parallel('usual', 2, {
    name: '5 % stragglers, 5 % Error, parallel usual, 2/s',
    upstream: { stragglerRate: 0.05, errorRate: 0.05 },
  }),
  parallel('usual', 20, {
    name: 'default budget, parallel usual, 20/s',
    arrivals: { kind: 'poisson', perS: 20, submissions: 6_000 },
    budget: { requests: 50, perMs: 1_000, concurrency: 32 },
    bars: [atMostToday('none', 1.04), atMostToday('healthy', 1.04), atMost('none', 'meanS', 4.3)],
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

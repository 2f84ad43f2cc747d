import type { BudgetSettings } from '../../src/polling/poll-queues.ts';
import type { WorldName } from '../../src/sandbox/chain/worlds.ts';
import type { SandboxOptionsInput } from '../../src/sandbox/options.ts';
import type { Arrivals } from './arrivals.ts';

/** Upper limits for dawatch. `cost`: requests + seconds of mean lag. */
type Bars = {
  requests?: number;
  meanS?: number;
  p99S?: number;
  cost?: number;
  throttled?: number;
};

export type Scenario = {
  name: string;
  upstream: SandboxOptionsInput & { world: WorldName };
  /**
   * A different finality gap for every third seed: from the start, and from the middle of the
   * arrivals on.
   */
  otherGap?: { start: number; later?: number };
  arrivals: Arrivals;
  budget: BudgetSettings;
  bars: Bars;
  /** Upper limits with the finalized blocks of a node. */
  chainBars?: Bars;
  /**
   * Whether the lower bound applies: the chain has random delays, and there are no queues, limits
   * or errors.
   */
  hasLowerBound: boolean;
};

/** A budget that never limits, so that only the policies are compared. */
const AMPLE: BudgetSettings = { requests: 10_000, perMs: 1_000, concurrency: 10_000 };
const HOUR_S = 3_600;
const MIN_SUBMISSIONS = 1_000;

/**
 * Requests + seconds of mean lag of the cohort policy at commit de6cbd9, in the sandbox of that
 * commit (a block at each multiple of 20 s, final 40 s after it), the worst of the seeds 1, 2 and
 * 3, with the arrivals below.
 */
const COHORT_COSTS = { '2': 1.606, '0.2': 1.656, '0.02': 1.858 } as const;

const bars = (requests: number, meanS: number, p99S: number): Bars => ({ requests, meanS, p99S });

/** At least one hour of arrivals and 1,000 submissions. */
const poisson = (perS: number): Arrivals => ({
  kind: 'poisson',
  perS,
  submissions: Math.max(MIN_SUBMISSIONS, perS * HOUR_S),
});

/** 50 submissions at one moment of each hour, random within a slot. */
const BURSTS: Arrivals = {
  kind: 'bursts',
  size: 50,
  everyS: HOUR_S,
  delayMaxS: 60,
  submissions: MIN_SUBMISSIONS,
};

function parallel(
  world: WorldName,
  rates: Record<string, Bars>,
  otherGap?: Scenario['otherGap'],
): Scenario[] {
  return Object.entries(rates).map(([perS, bars]) => ({
    name: world === 'ideal' ? `ideal, ${perS}/s` : `parallel ${world}, ${perS}/s`,
    upstream: { world },
    ...(otherGap && { otherGap }),
    arrivals: poisson(Number(perS)),
    budget: AMPLE,
    bars,
    hasLowerBound: world !== 'ideal',
  }));
}

function senders(
  count: number,
  world: WorldName,
  loads: [name: string, arrivals: Arrivals, bars: Bars][],
): Scenario[] {
  return loads.map(([name, arrivals, bars]) => ({
    name: `${count} senders ${world}, ${name}`,
    upstream: { world, senders: count },
    arrivals,
    budget: AMPLE,
    bars,
    hasLowerBound: count === 8 && arrivals.kind === 'poisson',
  }));
}

const CHAIN_BARS: Record<string, Bars> = {
  'parallel usual, 2/s': bars(1.12, 0.5, 2),
  'parallel usual, 0.2/s': bars(1.15, 0.55, 2),
  'parallel usual, 0.02/s': bars(1.2, 0.6, 2),
  'parallel rough, 2/s': bars(1.35, 1.1, 5),
  'parallel rough, 0.2/s': bars(1.4, 1.1, 5),
  'parallel rough, 0.02/s': bars(1.45, 1.2, 5),
  '8 senders usual, 0.06/s': bars(1.6, 1, 4),
  '8 senders usual, bursts': bars(2.2, 1, 4),
  'first five minutes, parallel usual, 2/s': { requests: 1.2 },
};

const WITHOUT_CHAIN: readonly Scenario[] = [
  ...parallel(
    'calm',
    { '2': bars(1.35, 0.7, 5), '0.2': bars(1.6, 0.7, 5), '0.02': bars(1.9, 0.8, 6) },
    { start: 2 },
  ),
  ...parallel('usual', { '2': bars(1.6, 1, 7), '0.2': bars(1.9, 1, 7), '0.02': bars(2.2, 1.2, 8) }),
  ...parallel(
    'rough',
    { '2': bars(2.4, 2.2, 25), '0.2': bars(2.8, 2.2, 25), '0.02': bars(3, 2.4, 25) },
    { start: 2, later: 1 },
  ),
  {
    name: 'first five minutes, parallel usual, 2/s',
    upstream: { world: 'usual' },
    arrivals: { kind: 'poisson', perS: 2, submissions: 600 },
    budget: AMPLE,
    bars: { requests: 2 },
    hasLowerBound: false,
  },
  ...parallel('ideal', {
    '2': { cost: 1.1 * COHORT_COSTS['2'] },
    '0.2': { cost: 1.1 * COHORT_COSTS['0.2'] },
    '0.02': { cost: 1.1 * COHORT_COSTS['0.02'] },
  }),
  ...senders(8, 'calm', [
    ['0.06/s', poisson(0.06), bars(1.9, 1.2, 6)],
    ['0.03/s', poisson(0.03), bars(1.9, 1.2, 6)],
    ['bursts', BURSTS, bars(4.5, 1.8, 12)],
  ]),
  ...senders(8, 'usual', [
    ['0.06/s', poisson(0.06), bars(2.2, 1.4, 7)],
    ['0.03/s', poisson(0.03), bars(2.2, 1.4, 7)],
    ['bursts', BURSTS, bars(4.5, 2, 12)],
  ]),
  ...senders(3, 'usual', [
    ['0.06/s', poisson(0.06), bars(4, 2, 10)],
    ['0.03/s', poisson(0.03), bars(2.4, 1.5, 8)],
    ['bursts', BURSTS, bars(8, 2.5, 20)],
  ]),
  {
    name: 'limit of 60 requests per 60 s, parallel usual, 0.5/s',
    upstream: { world: 'usual', rateLimit: 60, rateLimitPerS: 60 },
    arrivals: poisson(0.5),
    budget: { requests: 60, perMs: 60_000, concurrency: 60 },
    bars: { throttled: 0, meanS: 2.5 },
    hasLowerBound: false,
  },
  {
    name: '5 % stragglers, 5 % Error, parallel usual, 2/s',
    upstream: { world: 'usual', stragglerRate: 0.05, errorRate: 0.05 },
    arrivals: poisson(2),
    budget: AMPLE,
    bars: bars(2.1, 1.3, 10),
    hasLowerBound: false,
  },
];

export const SCENARIOS: readonly Scenario[] = WITHOUT_CHAIN.map((scenario) => {
  const chainBars = CHAIN_BARS[scenario.name];
  return { ...scenario, ...(chainBars && { chainBars }) };
});

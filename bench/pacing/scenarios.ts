import type { BudgetSettings } from '../../src/monitor/budget.ts';
import type { SandboxOptionsInput } from '../../src/sandbox/options.ts';
import type { Arrivals } from './arrivals.ts';

/** What dawatch is to reach at most; undefined: no bar. */
type Bars = { requests?: number; meanLagS?: number; p99LagS?: number };

export type Scenario = {
  name: string;
  upstream: SandboxOptionsInput;
  arrivals: Arrivals;
  budget: BudgetSettings;
  bars: Bars;
  /** Left out where the others would only take hours to say nothing. */
  baselines: boolean;
};

/** More than anybody needs, so that only the rules are compared. */
const AMPLE: BudgetSettings = { requests: 10_000, perMs: 1_000, concurrency: 10_000 };
const HOUR_S = 3_600;

const parallel = (perS: number, submissions: number, bars: Bars): Scenario => ({
  name: `parallel sending, ${perS} /s`,
  upstream: {},
  arrivals: { kind: 'poisson', perS, submissions },
  budget: AMPLE,
  bars,
  baselines: true,
});

/** Blocks every 20 s, final after 40 s, unless said otherwise. All begin with nothing learned. */
export const SCENARIOS: readonly Scenario[] = [
  parallel(20, 36_000, { requests: 1.5, meanLagS: 1.5, p99LagS: 10 }),
  parallel(2, 7_200, { requests: 2, meanLagS: 1.5, p99LagS: 10 }),
  parallel(0.2, 2_880, { requests: 3.5, meanLagS: 1.5, p99LagS: 10 }),
  parallel(0.02, 1_440, { requests: 6, meanLagS: 2, p99LagS: 10 }),
  {
    name: '8 serial senders, 0.1 /s',
    upstream: { senders: 8 },
    arrivals: { kind: 'poisson', perS: 0.1, submissions: 2_880 },
    budget: AMPLE,
    bars: { requests: 7, meanLagS: 3, p99LagS: 20 },
    baselines: true,
  },
  {
    name: '8 serial senders, 0.133 /s: as much as they can send',
    upstream: { senders: 8 },
    arrivals: { kind: 'poisson', perS: 0.133, submissions: 2_880 },
    budget: AMPLE,
    bars: { requests: 7, meanLagS: 3, p99LagS: 20 },
    baselines: true,
  },
  {
    name: '3 serial senders, bursts of 200',
    // Rows in the order of submission. With rows in any order nobody can know whose turn it is: see the next one.
    upstream: { senders: 3, rowDelayMs: 0 },
    arrivals: { kind: 'bursts', size: 200, everyS: 2 * HOUR_S, submissions: 1_000 },
    budget: AMPLE,
    bars: { requests: 6, meanLagS: 5, p99LagS: 30 },
    baselines: true,
  },
  {
    name: '3 serial senders, bursts of 200 in random order',
    upstream: { senders: 3 },
    arrivals: { kind: 'bursts', size: 200, everyS: 2 * HOUR_S, submissions: 1_000 },
    budget: AMPLE,
    bars: {},
    baselines: true,
  },
  {
    name: '10 % stragglers, 5 % Error, 2 /s',
    upstream: { stragglerRate: 0.1, errorRate: 0.05 },
    arrivals: { kind: 'poisson', perS: 2, submissions: 7_200 },
    budget: AMPLE,
    bars: { requests: 3.5, meanLagS: 3, p99LagS: 20 },
    baselines: true,
  },
  {
    name: 'blocks of 6 s, final after 18 s, 2 /s',
    upstream: { blockTimeS: 6, finalityS: 18 },
    arrivals: { kind: 'poisson', perS: 2, submissions: 7_200 },
    budget: AMPLE,
    bars: { requests: 2.5, meanLagS: 1.5, p99LagS: 8 },
    baselines: true,
  },
  {
    name: 'limit of 60 requests per 60 s, 0.5 /s',
    upstream: { rateLimit: 60, rateLimitPerS: 60 },
    arrivals: { kind: 'poisson', perS: 0.5, submissions: 3_600 },
    budget: { requests: 60, perMs: 60_000, concurrency: 60 },
    bars: { meanLagS: 5 },
    baselines: true,
  },
  {
    name: 'limit of 1 request per 1 s, 0.5 /s',
    upstream: { rateLimit: 1, rateLimitPerS: 1 },
    arrivals: { kind: 'poisson', perS: 0.5, submissions: 3_600 },
    budget: { requests: 1, perMs: 1_000, concurrency: 1 },
    bars: { meanLagS: 5 },
    baselines: true,
  },
  {
    name: 'cold start, 100,000 tracked, 50 requests/s',
    upstream: {},
    arrivals: { kind: 'backlog', submissions: 100_000 },
    budget: { requests: 50, perMs: 1_000, concurrency: 50 },
    bars: {},
    baselines: false,
  },
];

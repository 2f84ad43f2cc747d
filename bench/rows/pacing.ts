import { type Measurement, measure } from '../pacing/measure.ts';
import type { Metric, Round, Row } from '../row.ts';

/** Some scenarios of `npm run bench:pacing`, which has all of them and their bars. */
const SCENARIOS = [
  'parallel usual, 2/s',
  'parallel usual, 0.2/s',
  'parallel usual, 0.02/s',
  'first five minutes, parallel usual, 2/s',
  'parallel rough, 0.2/s',
  '8 senders usual, 0.06/s',
];
const ALONE = { policy: 'dawatch', nodes: 'none' } as const;
const WITH_NODE = { policy: 'dawatch+chain', nodes: 'healthy' } as const;
const LOOP = { policy: 'every 5 s', nodes: 'none' } as const;
const SEEDS = 12;

/** Requests of each submission, and its lag, without a node and with one. */
const metrics = SCENARIOS.map((scenario): Metric => {
  const alone = { scenario, ...ALONE };
  const withNode = { scenario, ...WITH_NODE };
  return {
    what: `requests per submission, ${scenario}`,
    unit: '',
    value: (round) => measured(round, alone, 'requests'),
    context: (medians) =>
      `lag ${lagOf(medians, alone)}; node: ${measured(medians, withNode, 'requests').toFixed(2)}, ${lagOf(medians, withNode)}`,
  };
});
const loop = { scenario: 'parallel usual, 2/s', ...LOOP };
metrics.push({
  what: `the same, polled every 5 s, ${loop.scenario}`,
  unit: '',
  value: (round) => measured(round, loop, 'requests'),
  context: (medians) => `lag ${lagOf(medians, loop)}`,
});

/**
 * The requests and the lag of the pacing policy in virtual time, against the sandbox's model. Each
 * round is one seed, and nothing is learned at its start.
 */
export const row: Row = {
  rounds: SEEDS,
  metrics,
  open: () =>
    Promise.resolve({
      // A warm-up would show nothing: the time is virtual.
      round: (seed) => Promise.resolve(seed === 0 ? {} : roundOf(seed)),
      close: () => Promise.resolve(),
    }),
};

type Run = Omit<Measurement, 'seed'>;

function roundOf(seed: number): Round {
  const runs: Run[] = SCENARIOS.flatMap((scenario) =>
    [ALONE, WITH_NODE].map((side) => ({ scenario, ...side })),
  );
  return Object.fromEntries(
    [...runs, loop].flatMap((run) => {
      const { requests, meanS, p99S } = measure({ ...run, seed });
      return Object.entries({ requests, meanS, p99S }).map(([name, value]) => [
        keyOf(run, name),
        value,
      ]);
    }),
  );
}

const keyOf = ({ scenario, policy }: Run, name: string) => `${scenario} ${policy} ${name}`;

function measured(round: Round, run: Run, name: string): number {
  return round[keyOf(run, name)] ?? Number.NaN;
}

function lagOf(medians: Round, run: Run): string {
  return `${measured(medians, run, 'meanS').toFixed(2)} s, ${measured(medians, run, 'p99S').toFixed(1)} s`;
}

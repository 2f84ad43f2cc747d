import { expect, it } from 'vitest';
import { arrivalsOf } from '../../bench/pacing/arrivals.ts';
import { sandboxWorld } from '../../bench/pacing/sandbox-world.ts';
import { simulate } from '../../bench/pacing/simulate.ts';
import { summarize } from '../../bench/pacing/summary.ts';
import { seededRandom } from '../../bench/support/random.ts';
import { eventPacing } from '../../src/pacing/index.ts';
import type { BudgetSettings } from '../../src/polling/poll-queues.ts';

const AMPLE = { requests: 10_000, perMs: 1_000, concurrency: 10_000 };
const MINUTE = { requests: 60, perMs: 60_000, concurrency: 64 };

/** Runs the sandbox's world `usual` from the first submission on, with nothing learned before. */
function run(
  seed: number,
  { perS, submissions = 400 }: { perS: number; submissions?: number },
  budget = AMPLE,
) {
  return simulate({
    world: sandboxWorld({ seed, world: 'usual' }),
    arrivals: arrivalsOf({ kind: 'poisson', perS, submissions }, seededRandom(seed)),
    budget,
    policy: eventPacing({ lagPrice: 1 }),
    seed,
  });
}

it.each<[string, number, number, number, BudgetSettings]>([
  ['2 submissions/s', 8, 2 / 3, 2, AMPLE],
  ['a request budget that delays polls', 3, 0.35, 0.5, MINUTE],
])(
  'the estimated detection lag agrees with the true one, the first submissions included, at %s: over %d chains, the mean and the 99 % quantile differ by a share of %d at most',
  (_, chains, share, perS, budget) => {
    const summaries = Array.from({ length: chains }, (_, index) =>
      summarize(run(index + 1, { perS }, budget)),
    );
    // A quantile of one run is the lag of its four slowest submissions.
    const ratio = (estimated: 'estimatedMeanS' | 'estimatedP99S', measured: 'meanS' | 'p99S') =>
      sum(summaries.map((run) => run[estimated])) / sum(summaries.map((run) => run[measured]));
    expect(ratio('estimatedMeanS', 'meanS')).toBeGreaterThan(1 - share);
    expect(ratio('estimatedMeanS', 'meanS')).toBeLessThan(1 + share);
    expect(ratio('estimatedP99S', 'p99S')).toBeGreaterThan(1 - share);
    expect(ratio('estimatedP99S', 'p99S')).toBeLessThan(1 + share);
  },
);

it('has no estimate until ten submissions, or another one of the same block, were found final', () => {
  const { submissions } = run(1, { perS: 0.02, submissions: 40 });
  const found = submissions.toSorted((a, b) => a.detectedAt - b.detectedAt);
  const without = found.findLastIndex(({ estimatedLagMs }) => estimatedLagMs === null);
  expect(found[0]?.estimatedLagMs).toBeNull();
  expect(without).toBeLessThan(10);
});

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

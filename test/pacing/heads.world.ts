import { describe, expect, it } from 'vitest';
import { arrivalsOf } from '../../bench/pacing/arrivals.ts';
import { headsOf, NODES } from '../../bench/pacing/heads.ts';
import { sandboxWorld } from '../../bench/pacing/sandbox-world.ts';
import { type ReportedHead, type Run, START_MS, simulate } from '../../bench/pacing/simulate.ts';
import { seededRandom } from '../../bench/support/random.ts';
import { eventPacing, type FinalizedHead } from '../../src/pacing/index.ts';
import type { SandboxOptionsInput } from '../../src/sandbox/options.ts';
import { costOf, excessOverSafetyNet, SLACK_MS } from '../support/virtual-time/pacing.ts';

const AMPLE = { requests: 10_000, perMs: 1_000, concurrency: 10_000 };
const LEARNED = eventPacing({ lagPrice: 1 });
const CHAIN = eventPacing({ lagPrice: 1 });
const SEED = 5;
const OPTIONS = { seed: SEED, world: 'usual' } as const;
const MINUTE_MS = 60_000;

function run(
  policy = CHAIN,
  heads: readonly ReportedHead[] = [],
  perS = 0.5,
  submissions = 500,
): Run {
  const arrivals = arrivalsOf({ kind: 'poisson', perS, submissions }, seededRandom(SEED));
  return simulate({
    world: sandboxWorld(OPTIONS),
    arrivals,
    budget: AMPLE,
    policy,
    seed: SEED,
    heads,
  });
}

/** What a node of a chain announces. */
const announced = (options: SandboxOptionsInput) =>
  headsOf({ options }, NODES.healthy, {
    seed: SEED,
    firstMs: START_MS,
    untilMs: START_MS + 60 * MINUTE_MS,
  });

const honest = announced(OPTIONS);

/** Returns the heads as changed by `change`, in the order of their arrival. */
const changed = (change: (head: FinalizedHead, index: number) => FinalizedHead[]) =>
  honest
    .flatMap(({ head }, index) => change(head, index).map((head) => ({ head, at: head.at })))
    .sort((a, b) => a.at - b.at);

/** What the learned policy does without heads, and the chain's with honest ones. */
const learned = run(LEARNED);
const LEARNED_COST = costOf(learned.submissions);
const SETTLED_COST = costOf(learned.submissions.filter(isSettled));
const CHAIN_COST = costOf(run(CHAIN, honest).submissions);

/** Whether a submission was tracked two minutes after the last change of the heads, or later. */
function isSettled({ trackedAt }: Run['submissions'][number]): boolean {
  return trackedAt > 6 * MINUTE_MS;
}

/** Returns the polls of each submission. */
function pollsOf({ submissions }: Run): number[][] {
  return submissions.map(({ polledAt }) => polledAt);
}

describe('without heads', () => {
  it('every poll is that of the learned policy', () => {
    expect(pollsOf(run(CHAIN))).toEqual(pollsOf(learned));
  });
});

describe('with heads', () => {
  it('cost is lower than without', () => {
    expect(CHAIN_COST).toBeLessThan(0.85 * LEARNED_COST);
  });

  it('after the heads fall silent, cost is that of the learned policy', () => {
    const silentMs = 8 * MINUTE_MS;
    const silent = honest.filter(({ at }) => at < START_MS + silentMs);
    const { submissions } = run(CHAIN, silent);
    const isLater = ({ trackedAt }: { trackedAt: number }) => trackedAt > silentMs + MINUTE_MS;
    expect(costOf(submissions.filter(isLater))).toBeLessThan(
      1.15 * costOf(learned.submissions.filter(isLater)),
    );
    expect(excessOverSafetyNet(submissions)).toBeLessThan(SLACK_MS);
  });
});

describe('heads that are useless', () => {
  const shifted = (blocks: number) =>
    changed((head) => [{ ...head, number: head.number + blocks }]);
  const late = (lagMs: number) => changed((head) => [{ ...head, at: head.at + lagMs }]);
  const sources: Record<string, ReportedHead[]> = {
    'of a node that lags by 30 s': late(30_000),
    'with numbers that are too high by 2': shifted(2),
    'of another chain with slots of 6 s': announced({ seed: 8, world: 'usual', slotS: 6 }),
    'with one number that is far too high': changed((head, index) =>
      index === 12 ? [{ number: 4e9, at: head.at - 5_000 }, head] : [head],
    ),
    'with numbers that begin again': changed((head, index) => [
      index < 12 ? head : { ...head, number: head.number - 1_000_000 },
    ]),
  };
  it.each(Object.keys(sources))('%s cost hardly more than none', (name) => {
    const { submissions } = run(CHAIN, sources[name]);
    expect(costOf(submissions)).toBeLessThan(1.35 * LEARNED_COST);
    expect(costOf(submissions.filter(isSettled))).toBeLessThan(1.15 * SETTLED_COST);
    expect(excessOverSafetyNet(submissions)).toBeLessThan(SLACK_MS);
  });
});

import { describe, expect, it } from 'vitest';
import { cohortPacing } from '../../src/monitor/cohort-policy.ts';
import { type Candidate, NEVER, type PacingPolicy } from '../../src/monitor/policy.ts';
import { observation, VERDICTS } from '../support/domain.ts';
import { learnedBy } from '../support/learned.ts';

/** Block 20 is final at NOW, the next ones every 20 s; submissions are final after 40 s. */
const NOW = 1_760_000_000_000;

/** A policy, and submissions that were tracked a minute and less before NOW, the oldest first. */
function rig(
  count: number,
  learned: string | null = learnedBy(NOW),
  random = 0.5,
): { policy: PacingPolicy; items: Candidate[] } {
  const policy = cohortPacing({ minIntervalMs: 1_000, maxIntervalMs: 60_000 })({
    move: (item, dueAt) => Object.assign(item, { dueAt }),
    random: () => random,
  });
  if (learned) policy.recall(learned);
  const items = Array.from({ length: count }, (_, index) => candidate(NOW - 60_000 + 100 * index));
  for (const item of items) enrol(policy, item, null, NOW);
  return { policy, items };
}

function candidate(trackedAt: number): Candidate {
  return { trackedAt, dueAt: trackedAt, before: null, after: null, order: 0, openAt: NEVER };
}

function enrol(policy: PacingPolicy, item: Candidate, polledAt: number | null, now: number): void {
  Object.assign(item, { dueAt: policy.enrol(item, { polledAt }, now) });
}

function answer(policy: PacingPolicy, item: Candidate | undefined, at: number, block: number | 'open' | 'none'): void {
  if (!item) throw new Error('no such submission');
  const blockNumber = block === 'none' ? null : block;
  const verdict = blockNumber === 'open' ? VERDICTS.pending : { ...VERDICTS.finalized, blockNumber };
  Object.assign(item, { dueAt: policy.learn(item, observation(verdict, at), at) });
}

describe('the line', () => {
  it('is left by whoever was overtaken, and that one is asked by itself, at blocks', () => {
    const { policy, items } = rig(4);
    answer(policy, items[2], NOW + 20_100, 21);
    answer(policy, items[0], NOW + 20_200, 'open');
    expect(items[0]?.order).toBe(0);
    expect(policy.why(items[0] as Candidate, NOW + 20_200)).toBe('alone');
    expect(Math.abs((items[0]?.dueAt ?? 0) - (NOW + 40_000))).toBeLessThan(1_000);
  });

  it('is kept by whoever stands behind those that are final', () => {
    const { policy, items } = rig(4);
    answer(policy, items[0], NOW + 20_100, 21);
    answer(policy, items[1], NOW + 20_200, 'open');
    expect(items[1]?.order).toBeGreaterThan(0);
  });

  it('has five scouts instead of two where many are overtaken: one alone at the head would hide a block', () => {
    const { policy, items } = rig(100);
    expect(policy.describe(NOW).scouts).toBe(2);
    for (let block = 1; block <= 5; block++) {
      const at = NOW + 20_000 * block;
      answer(policy, items[10 * block], at + 100, 20 + block);
      answer(policy, items[10 * block - 1], at + 200, 'open');
    }
    expect(policy.describe(NOW + 100_300)).toMatchObject({ scouts: 5, mode: 'cohorts' });
  });
});

describe('the one that is asked between two blocks', () => {
  /** One was final with block 21; the next one, old enough for block 22, is asked a tenth of a period before that. */
  const doubted = () => {
    const { policy, items } = rig(1, learnedBy(NOW), 0.1);
    const doubter = candidate(NOW - 10_000);
    enrol(policy, doubter, null, NOW);
    answer(policy, items[0], NOW + 20_100, 21);
    expect(policy.why(doubter, NOW + 20_300)).toBe('doubt');
    expect(Math.abs(doubter.dueAt - (NOW + 38_000))).toBeLessThan(1_000);
    return { policy, doubter };
  };

  it.each<[string, number | 'open', string]>([
    ['final already, so it is not the blocks that make final', 22, 'by_age'],
    ['open, as it should be', 'open', 'cohorts'],
    ['final with the block before, as it should be', 21, 'cohorts'],
    ['final with a block that the chain can not have: that says nothing', 2 ** 50, 'cohorts'],
  ])('is %s', (_name, block, mode) => {
    const { policy, doubter } = doubted();
    answer(policy, doubter, NOW + 30_000, block);
    expect(policy.describe(NOW + 30_100).mode).toBe(mode);
  });

  it('is asked once: afterwards it is a scout again', () => {
    const { policy, doubter } = doubted();
    answer(policy, doubter, NOW + 38_000, 'open');
    expect(policy.why(doubter, NOW + 38_100)).toBe('scout');
  });
});

describe('after a restart', () => {
  /** They were asked in vain a moment ago, and are final since the block before. */
  const resumed = (policy: PacingPolicy) => {
    for (let index = 0; index < 12; index++) {
      const item = candidate(NOW - 60_000 + 100 * index);
      enrol(policy, item, NOW + 8_000, NOW + 8_100);
      answer(policy, item, NOW + 8_200 + 10 * index, 20);
    }
  };

  it('a last question that found nothing out is not taken for one that found them not final', () => {
    const { policy } = rig(0);
    const before = policy.describe(NOW + 9_000).next;
    resumed(policy);
    expect(policy.describe(NOW + 9_000)).toMatchObject({ mode: 'cohorts', next: before });
  });

  it('a clock that is set back then hides nothing of what is heard from now on', () => {
    const { policy } = rig(0, null);
    enrol(policy, candidate(NOW + 3_500_000), NOW + 3_600_000, NOW + 3_600_000);
    for (let block = 0; block < 4; block++) {
      const at = NOW + 20_000 * block;
      const item = candidate(at - 40_000);
      enrol(policy, item, null, at - 5_000);
      answer(policy, item, at - 100, 'open');
      answer(policy, item, at + 100, block);
    }
    expect(policy.describe(NOW + 61_000).mode).toBe('cohorts');
  });

  it('with nothing learned, the age of those from before teaches nothing', () => {
    const { policy } = rig(0, null);
    for (let index = 0; index < 12; index++) {
      const item = candidate(NOW - 600_000 + 100 * index);
      enrol(policy, item, NOW - 5_000, NOW);
      answer(policy, item, NOW + 100, 'none');
    }
    expect(policy.describe(NOW + 200).leastAgeMs).toBe(0);
  });
});

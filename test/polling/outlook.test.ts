import { expect, it } from 'vitest';
import { LEARNS_NOTHING } from '../../bench/pacing/rules.ts';
import type { PacingPolicy } from '../../src/pacing/index.ts';
import type { Scheduler } from '../../src/polling/scheduler.ts';
import { observation, VERDICTS } from '../support/ledger/domain.ts';
import { createScheduler, learnedBy } from '../support/virtual-time/pacing.ts';

const NOW = 1_760_000_000_000;

/** Submissions a and b, tracked at NOW, with a policy that polls them `firstMs` later. */
function schedulerOf({ firstMs = 0, requests = 100 } = {}): Scheduler {
  const policy: PacingPolicy = {
    ...LEARNS_NOTHING,
    register: (item) => item.trackedAt + firstMs,
    learn: (_item, _observation, now) => now + 60_000,
    describe: learnedBy,
  };
  const budget = { requests, perMs: 10_000, concurrency: 50 };
  const scheduler = createScheduler({ ...budget, policy: () => policy });
  for (const submissionId of ['a', 'b'])
    scheduler.add({ submissionId, trackedAt: NOW, seen: false }, NOW);
  return scheduler;
}

it('nothing delays a poll that is due, or due later, while the budget allows it', () => {
  expect(schedulerOf().outlook(NOW).isDelayed).toBe(false);
  expect(schedulerOf({ firstMs: 40_000 }).outlook(NOW).isDelayed).toBe(false);
});

it('an exhausted budget delays the next poll until it is available, and none that is due after that', () => {
  const scheduler = schedulerOf({ requests: 1 });
  expect(scheduler.next(NOW)).toEqual(['a']);
  expect(scheduler.outlook(NOW)).toMatchObject({
    budget: { requests: 1, perMs: 10_000, concurrency: 50, used: 1 },
    isDelayed: true,
  });
  scheduler.observe(observation('pending', NOW + 50, 'a'), true, NOW + 50);
  expect(scheduler.outlook(NOW + 50).isDelayed).toBe(true);
  expect(scheduler.outlook(NOW + 10_051)).toMatchObject({ budget: { used: 0 }, isDelayed: false });
  expect(scheduler.next(NOW + 10_051)).toEqual(['b']);
  scheduler.observe(observation('pending', NOW + 10_100, 'b'), true, NOW + 10_100);
  expect(scheduler.outlook(NOW + 10_100).isDelayed).toBe(false);
});

it('a pause delays the next poll', () => {
  const scheduler = schedulerOf();
  const throttled = { ...VERDICTS.throttled, retryAfterMs: 7_000 };
  scheduler.observe(observation(throttled, NOW, scheduler.next(NOW, 1)[0]), true, NOW);
  expect(scheduler.outlook(NOW).isDelayed).toBe(true);
  expect(scheduler.outlook(NOW + 7_000).isDelayed).toBe(false);
});

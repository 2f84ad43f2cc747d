import { describe, expect, it } from 'vitest';
import { LEARNS_NOTHING } from '../../bench/pacing/rules.ts';
import type { PacingPolicy, PolicyReason } from '../../src/pacing/index.ts';
import { Scheduler } from '../../src/polling/scheduler.ts';
import { MADE_UP_ID } from '../../src/polling/upstream-health.ts';
import { observation, VERDICTS } from '../support/ledger/domain.ts';
import { failNext, learnedBy } from '../support/virtual-time/pacing.ts';

const NOW = 1_760_000_000_000;
const RECHECK_MS = 3_600_000;
const FIRST_MS = 40_000;

/** Submissions tracked at NOW, by default with a policy that polls them 40 s later. */
function schedulerOf(
  ids: string[],
  options: { firstMs?: number; requests?: number; why?: PolicyReason } = {},
): Scheduler {
  const { firstMs = 0, requests = 100, why = 'slot' } = options;
  const policy: PacingPolicy = {
    ...LEARNS_NOTHING,
    register: (item) => item.trackedAt + firstMs,
    learn: (_item, _observation, now) => now + FIRST_MS,
    describe: learnedBy,
    reasonOf: () => why,
  };
  const scheduler = new Scheduler({
    settings: {
      budget: { requests, perMs: 10_000, concurrency: 50 },
      breaker: { failures: 1, probeMs: 1_000, maxProbeMs: 30_000 },
      leaseMs: 30_000,
      recheckMs: RECHECK_MS,
    },
    policy: () => policy,
    random: () => 0.5,
  });
  for (const submissionId of ids) scheduler.add({ submissionId, trackedAt: NOW, seen: false }, NOW);
  return scheduler;
}

describe('the next poll', () => {
  it.each<PolicyReason>(['slot', 'scout', 'age', 'net'])(
    'is that of the policy, with its reason: %s',
    (why) => {
      const next = schedulerOf(['a', 'b'], { firstMs: FIRST_MS, why }).outlook(NOW).next;
      expect(next).toEqual({ submissionId: 'a', at: NOW + FIRST_MS, reason: why, heldBy: null });
    },
  );

  it('is the recheck of a finalized submission', () => {
    const scheduler = schedulerOf(['a']);
    scheduler.observe(observation('finalized', NOW, scheduler.next(NOW)[0]), true, NOW);
    expect(scheduler.outlook(NOW).next).toMatchObject({ reason: 'recheck', at: NOW + RECHECK_MS });
  });

  it('is the probe during an outage', () => {
    const scheduler = schedulerOf(['a', 'b']);
    scheduler.observe(observation('unavailable', NOW, scheduler.next(NOW, 1)[0]), true, NOW);
    expect(scheduler.outlook(NOW).next, 'the control').toEqual({
      submissionId: MADE_UP_ID,
      reason: 'probe',
      at: NOW,
      heldBy: null,
    });
    failNext(scheduler, 'unavailable', NOW);
    expect(scheduler.outlook(NOW).next).toMatchObject({
      reason: 'probe',
      at: scheduler.health.probeAt,
    });
  });
});

describe('the next poll is held', () => {
  it('by an exhausted budget: until a result arrives, then until the budget is available', () => {
    const scheduler = schedulerOf(['a', 'b'], { requests: 1 });
    expect(scheduler.next(NOW)).toEqual(['a']);
    const { budget, next } = scheduler.outlook(NOW);
    expect(budget).toEqual({ requests: 1, perMs: 10_000, concurrency: 50, used: 1 });
    expect(next).toMatchObject({ submissionId: 'b', at: null, heldBy: 'budget' });
    scheduler.observe(observation('pending', NOW + 50, 'a'), true, NOW + 50);
    expect(scheduler.outlook(NOW + 50).next).toMatchObject({
      submissionId: 'b',
      at: NOW + 10_051,
      heldBy: 'budget',
    });
    expect(scheduler.outlook(NOW + 10_051)).toMatchObject({
      budget: { used: 0 },
      next: { heldBy: null },
    });
  });

  it('by a pause', () => {
    const scheduler = schedulerOf(['a', 'b']);
    const throttled = { ...VERDICTS.throttled, retryAfterMs: 7_000 };
    scheduler.observe(observation(throttled, NOW, scheduler.next(NOW, 1)[0]), true, NOW);
    expect(scheduler.outlook(NOW).next).toMatchObject({
      submissionId: 'b',
      at: NOW + 7_000,
      heldBy: 'pause',
    });
  });
});

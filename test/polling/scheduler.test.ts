import { describe, expect, it } from 'vitest';
import { observation } from '../support/ledger/domain.ts';
import {
  byAge,
  createScheduler,
  DELAY_MS,
  drain,
  ids,
  LEASE_MS,
  paced,
  RECHECK_MS,
  schedulerOf,
} from '../support/virtual-time/pacing.ts';

describe('the next polls', () => {
  it('include a submission once, even if it is added repeatedly or while in flight', () => {
    const scheduler = schedulerOf(['a', 'a']);
    expect(drain(scheduler, 0)).toEqual(['a']);
    scheduler.add(paced('a'), 0);
    expect(scheduler).toMatchObject({ size: 1, inFlight: 1 });
    expect(drain(scheduler, 0)).toEqual([]);
  });

  it('include a finalized submission again after the recheck interval, if it stays scheduled', () => {
    const scheduler = schedulerOf(['a', 'b']);
    scheduler.next(0);
    scheduler.observe(observation('finalized', 5, 'a'), true, 5);
    scheduler.observe(observation('finalized', 5, 'b'), false, 5);
    expect(scheduler.size).toBe(1);
    expect(scheduler.next(5 + RECHECK_MS - 1)).toEqual([]);
    expect(scheduler.next(5 + RECHECK_MS)).toEqual(['a']);
  });
});

describe('after a restart', () => {
  const watched = {
    submissionId: 'a',
    trackedAt: 1_000,
    seen: true,
    polledAt: null,
    finalizedAt: null,
  };

  it('the delay of the policy counts from the last poll', () => {
    const scheduler = createScheduler();
    scheduler.resume({ ...watched, polledAt: 5_000 }, 6_000);
    expect(scheduler.wakeAt()).toBe(5_000 + DELAY_MS);
  });

  it('a finalized submission is due at its recheck time, or at once if that has passed', () => {
    const scheduler = createScheduler();
    scheduler.resume({ ...watched, polledAt: 9_000, finalizedAt: 8_000 }, 600_000);
    expect(scheduler.wakeAt()).toBe(8_000 + RECHECK_MS);
    scheduler.resume(
      { ...watched, submissionId: 'b', polledAt: 500_000, finalizedAt: 8_000 },
      600_000,
    );
    scheduler.remove('a', 0);
    expect(scheduler.wakeAt()).toBe(500_000);
  });

  it('stored times in the future, from a clock that was ahead, delay a poll by at most one interval', () => {
    const scheduler = createScheduler();
    scheduler.resume({ ...watched, trackedAt: 90_000 }, 10_000);
    expect(scheduler.next(10_000)).toEqual(['a']);
    scheduler.resume({ ...watched, submissionId: 'b', trackedAt: 1, polledAt: 90_000_000 }, 10_000);
    expect(scheduler.next(10_000 + DELAY_MS)).toEqual(['b']);
    scheduler.resume(
      { ...watched, submissionId: 'c', polledAt: 5, finalizedAt: 90_000_000 },
      10_000,
    );
    expect(scheduler.next(10_000 + RECHECK_MS)).toContain('c');
  });
});

describe('a removal', () => {
  it('of a submission in flight that is tracked again leaves nothing of its earlier age', () => {
    const scheduler = createScheduler({ policy: byAge });
    scheduler.add(paced('a'), 0);
    scheduler.next(0);
    scheduler.observe(observation('pending', 0, 'a'), true, 0);
    const later = 10 * 60_000;
    expect(scheduler.next(later)).toEqual(['a']);
    scheduler.remove('a', later);
    scheduler.add(paced('a', { dueAt: later }), later);
    scheduler.observe(observation('pending', later + 100, 'a'), true, later + 100);
    // The interval grows with the age, from 2 s to 30 s.
    expect(scheduler.wakeAt() - later).toBeLessThan(3_000);
  });
});

describe('a batch without results', () => {
  it('is polled again, completely, after the lease', () => {
    const scheduler = schedulerOf(ids(4));
    expect(scheduler.next(0)).toHaveLength(4);
    expect(scheduler.wakeAt()).toBe(LEASE_MS);
    expect(scheduler.next(LEASE_MS).sort()).toEqual(ids(4));
    expect(scheduler.inFlight).toBe(4);
  });

  it('yields to submissions that have been due longer', () => {
    const scheduler = schedulerOf(ids(4), { concurrency: 2 });
    expect(scheduler.next(0)).toEqual(['s0', 's1']);
    expect(drain(scheduler, LEASE_MS)).toEqual(['s2', 's3']);
  });
});

import { describe, expect, it } from 'vitest';
import { observation } from '../support/domain.ts';
import { createScheduler, DELAY_MS, drain, ids, LEASE_MS, paced, RECHECK_MS, schedulerOf } from '../support/pacing.ts';

describe('whom to ask next', () => {
  it('gives what is due, the longest overdue first, and nothing that is not', () => {
    const scheduler = createScheduler();
    for (const [id, dueAt] of Object.entries({ late: 30, now: 50, soon: 51, first: 10 }))
      scheduler.add(paced(id, { dueAt }), 0);
    expect(scheduler.next(50)).toEqual(['first', 'late', 'now']);
    expect(scheduler.wakeAt()).toBe(51);
    expect(scheduler.next(51)).toEqual(['soon']);
  });

  it('gives none twice before it was answered', () => {
    const scheduler = schedulerOf(['a']);
    expect(scheduler.next(0)).toEqual(['a']);
    expect(scheduler.next(LEASE_MS - 1)).toEqual([]);
  });

  it('asks again after the delay of its policy', () => {
    const scheduler = schedulerOf(['a']);
    scheduler.next(0);
    scheduler.observe(observation('pending', 100, 'a'), true, 100);
    expect(scheduler.wakeAt()).toBe(100 + DELAY_MS);
    expect(scheduler.next(100 + DELAY_MS - 1)).toEqual([]);
    expect(scheduler.next(100 + DELAY_MS)).toEqual(['a']);
  });

  it('knows a submission once, however often it is added, even while it is in flight', () => {
    const scheduler = schedulerOf(['a', 'a']);
    expect(drain(scheduler, 0)).toEqual(['a']);
    scheduler.add(paced('a'), 0);
    expect(scheduler).toMatchObject({ size: 1, inFlight: 1 });
    expect(drain(scheduler, 0)).toEqual([]);
  });

  it('has nothing to wake for when there is nobody', () => {
    expect(createScheduler().wakeAt()).toBe(Number.POSITIVE_INFINITY);
    expect(createScheduler().next(0)).toEqual([]);
  });

  it('asks a finalized submission once more after the time of its recheck, if it stays watched', () => {
    const scheduler = schedulerOf(['a', 'b']);
    scheduler.next(0);
    scheduler.observe(observation('finalized', 5, 'a'), true, 5);
    scheduler.observe(observation('finalized', 5, 'b'), false, 5);
    expect(scheduler.size).toBe(1);
    expect(scheduler.next(5 + RECHECK_MS - 1)).toEqual([]);
    expect(scheduler.next(5 + RECHECK_MS)).toEqual(['a']);
  });

  it('asks again at the moment named when an answer could not be kept', () => {
    const scheduler = schedulerOf(['a']);
    scheduler.next(0);
    scheduler.retry('a', 300, 1);
    scheduler.retry('nobody', 300, 1);
    expect(scheduler).toMatchObject({ size: 1, inFlight: 0 });
    expect(scheduler.next(299)).toEqual([]);
    expect(scheduler.next(300)).toEqual(['a']);
  });
});

describe('after a restart', () => {
  const watched = { submissionId: 'a', trackedAt: 1_000, seen: true, polledAt: null, finalizedAt: null };

  it('asks at once about one that was never asked about', () => {
    const scheduler = createScheduler();
    scheduler.resume(watched, 1_000);
    expect(scheduler.next(1_000)).toEqual(['a']);
  });

  it('goes on with the distance to the last answer', () => {
    const scheduler = createScheduler();
    scheduler.resume({ ...watched, polledAt: 5_000 }, 6_000);
    expect(scheduler.wakeAt()).toBe(5_000 + DELAY_MS);
  });

  it('asks a finalized one when its recheck is due, and at once when that is past', () => {
    const scheduler = createScheduler();
    scheduler.resume({ ...watched, polledAt: 9_000, finalizedAt: 8_000 }, 600_000);
    expect(scheduler.wakeAt()).toBe(8_000 + RECHECK_MS);
    scheduler.resume({ ...watched, submissionId: 'b', polledAt: 500_000, finalizedAt: 8_000 }, 600_000);
    scheduler.remove('a', 0);
    expect(scheduler.wakeAt()).toBe(500_000);
  });

  it('asks at once, at the latest after one distance, where a clock that was ahead left times still to come', () => {
    const scheduler = createScheduler();
    scheduler.resume({ ...watched, trackedAt: 90_000 }, 10_000);
    expect(scheduler.next(10_000)).toEqual(['a']);
    scheduler.resume({ ...watched, submissionId: 'b', trackedAt: 1, polledAt: 90_000_000 }, 10_000);
    expect(scheduler.next(10_000 + DELAY_MS)).toEqual(['b']);
    scheduler.resume({ ...watched, submissionId: 'c', polledAt: 5, finalizedAt: 90_000_000 }, 10_000);
    expect(scheduler.next(10_000 + RECHECK_MS)).toContain('c');
  });

  it('does not go on with one that it has already', () => {
    const scheduler = schedulerOf(['a']);
    scheduler.resume({ ...watched, polledAt: 5_000 }, 6_000);
    expect(scheduler.size).toBe(1);
    expect(scheduler.next(0)).toEqual(['a']);
  });
});

describe('the budget', () => {
  it('caps a batch, and names the moment when more may be sent', () => {
    const scheduler = schedulerOf(ids(5), { requests: 3, perMs: 1_000 });
    const first = drain(scheduler, 0);
    expect(first).toHaveLength(3);
    for (const id of first) scheduler.observe(observation('pending', 200, id), false, 200);
    expect(scheduler.wakeAt()).toBe(1_200);
    expect(scheduler.next(1_199)).toEqual([]);
    expect(drain(scheduler, 1_200)).toEqual(['s3', 's4']);
  });

  it('is not given back by an answer or a removal', () => {
    const scheduler = schedulerOf(ids(4), { requests: 2 });
    for (const id of scheduler.next(0)) scheduler.observe(observation('pending', 1, id), false, 1);
    expect(scheduler.next(1)).toEqual([]);
    scheduler.remove('s2', 0);
    expect(scheduler.next(1)).toEqual([]);
  });

  it('is whole only after one window when a process before this one may just have spent it', () => {
    const scheduler = schedulerOf(ids(2), { requests: 2 });
    scheduler.resumeBudget(400, 500);
    expect(scheduler.next(1_499)).toEqual([]);
    expect(scheduler.wakeAt()).toBe(1_500);
    expect(scheduler.next(1_500)).toHaveLength(2);
  });

  it('is whole at once when the process before this one stopped long ago', () => {
    const scheduler = schedulerOf(ids(2), { requests: 2 });
    scheduler.resumeBudget(0, LEASE_MS + 1_000);
    expect(scheduler.next(LEASE_MS + 1_000)).toHaveLength(2);
  });
});

describe('the concurrency', () => {
  it('caps what is in flight; each answer makes room for one', () => {
    const scheduler = schedulerOf(ids(5), { concurrency: 2 });
    expect(drain(scheduler, 0)).toEqual(['s0', 's1']);
    expect(scheduler.inFlight).toBe(2);
    scheduler.observe(observation('pending', 1, 's1'), true, 1);
    expect(drain(scheduler, 1)).toEqual(['s2']);
    scheduler.retry('s0', 900, 2);
    expect(drain(scheduler, 2)).toEqual(['s3']);
  });

  it('a second answer to the same question makes no second room', () => {
    const scheduler = schedulerOf(ids(5), { concurrency: 2 });
    scheduler.next(0);
    for (const at of [1, 2]) scheduler.observe(observation('pending', at, 's0'), true, at);
    expect(scheduler.inFlight).toBe(1);
    expect(drain(scheduler, 2)).toEqual(['s2']);
  });

  it('an answer about somebody unknown makes no room and adds nobody', () => {
    const scheduler = schedulerOf(ids(2), { concurrency: 1 });
    scheduler.next(0);
    scheduler.observe(observation('pending', 1, 'stranger'), true, 1);
    expect(scheduler).toMatchObject({ size: 2, inFlight: 1 });
  });
});

describe('a removal', () => {
  it('takes a waiting submission out', () => {
    const scheduler = schedulerOf(['a', 'b']);
    scheduler.remove('a', 0);
    scheduler.remove('a', 0);
    scheduler.remove('nobody', 0);
    expect(drain(scheduler, 0)).toEqual(['b']);
  });

  it('while in flight makes room only when its answer comes, which brings nobody back', () => {
    const scheduler = schedulerOf(['a', 'b'], { concurrency: 1 });
    expect(scheduler.next(0)).toEqual(['a']);
    scheduler.remove('a', 0);
    expect(scheduler.inFlight).toBe(1);
    expect(scheduler.next(0)).toEqual([]);
    scheduler.observe(observation('pending', 1, 'a'), true, 1);
    expect(scheduler).toMatchObject({ size: 1, inFlight: 0 });
    expect(drain(scheduler, LEASE_MS)).toEqual(['b']);
  });

  it('happens by itself when an answer ends the watch', () => {
    const scheduler = schedulerOf(['a']);
    scheduler.next(0);
    scheduler.observe(observation('rejected', 1, 'a'), false, 1);
    expect(scheduler).toMatchObject({ size: 0, inFlight: 0 });
    expect(scheduler.wakeAt()).toBe(Number.POSITIVE_INFINITY);
  });
});

describe('a batch without an answer', () => {
  it('is asked about again after the lease, all of it', () => {
    const scheduler = schedulerOf(ids(4));
    expect(scheduler.next(0)).toHaveLength(4);
    expect(scheduler.wakeAt()).toBe(LEASE_MS);
    expect(scheduler.next(LEASE_MS).sort()).toEqual(ids(4));
    expect(scheduler.inFlight).toBe(4);
  });

  it('makes room for others that have waited longer', () => {
    const scheduler = schedulerOf(ids(4), { concurrency: 2 });
    expect(scheduler.next(0)).toEqual(['s0', 's1']);
    expect(drain(scheduler, LEASE_MS)).toEqual(['s2', 's3']);
  });

  it('wakes at the end of the lease, however late one asks for the moment', () => {
    const scheduler = schedulerOf(ids(3), { concurrency: 2 });
    scheduler.next(0);
    expect(scheduler.wakeAt()).toBe(LEASE_MS);
  });

  it('costs nothing when it is answered late after all', () => {
    const scheduler = schedulerOf(['a'], { concurrency: 1 });
    scheduler.next(0);
    expect(scheduler.next(LEASE_MS)).toEqual(['a']);
    for (const at of [LEASE_MS + 1, LEASE_MS + 2]) scheduler.observe(observation('pending', at, 'a'), true, at);
    expect(scheduler).toMatchObject({ size: 1, inFlight: 0 });
    expect(drain(scheduler, LEASE_MS + 2 + DELAY_MS)).toEqual(['a']);
  });
});

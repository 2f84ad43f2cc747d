import { describe, expect, it } from 'vitest';
import type { Scheduler } from '../../src/pacing/scheduler.ts';
import { observation, VERDICTS, type VerdictName } from '../support/domain.ts';
import { DELAY_MS, drain, ids, LEASE_MS, PROBE_MS, paced, schedulerOf } from '../support/pacing.ts';

const throttled = (retryAfterMs: number | null) => ({ ...VERDICTS.throttled, retryAfterMs });

/** Asks and answers until the breaker is open; says when. */
function breakOpen(scheduler: Scheduler, how: 'unavailable' | 'unauthorized' = 'unavailable'): number {
  for (const [index, id] of drain(scheduler, 0).entries()) scheduler.observe(observation(how, index, id), true, index);
  expect(scheduler.breaker.isOpen).toBe(true);
  return scheduler.breaker.openedAt;
}

describe('a pause', () => {
  it('lasts as long as Retry-After says, for every submission', () => {
    const scheduler = schedulerOf(ids(3), { concurrency: 1 });
    scheduler.next(0);
    scheduler.observe(observation(throttled(7_000), 10, 's0'), true, 10);
    expect(scheduler.wakeAt()).toBe(7_010);
    expect(scheduler.next(7_009)).toEqual([]);
    expect(scheduler.next(7_010)).toEqual(['s1']);
  });

  it('comes with a 503 that names one too', () => {
    const scheduler = schedulerOf(ids(3), { concurrency: 1 });
    scheduler.next(0);
    scheduler.observe(observation({ ...VERDICTS.unavailable, retryAfterMs: 5_000 }, 10, 's0'), true, 10);
    expect(scheduler.wakeAt()).toBe(5_010);
    expect(scheduler.next(5_009)).toEqual([]);
  });

  it('is never made shorter by an answer that asks for less', () => {
    const scheduler = schedulerOf(ids(3), { concurrency: 2 });
    scheduler.next(0);
    scheduler.observe(observation(throttled(7_000), 0, 's0'), true, 0);
    scheduler.observe(observation(throttled(1_000), 1, 's1'), true, 1);
    expect(scheduler.wakeAt()).toBe(7_000);
  });

  it('without Retry-After doubles from 1 s to 60 s with each throttled attempt, and begins anew after another answer', () => {
    const scheduler = schedulerOf(['a']);
    let now = 0;
    const pauseAfter = (name: VerdictName) => {
      now = Math.max(now, scheduler.wakeAt()) + DELAY_MS;
      const [id = ''] = scheduler.next(now);
      scheduler.observe(observation(name, now, id), true, now);
      scheduler.add(paced('due', { dueAt: now }), 0);
      const pauseMs = scheduler.wakeAt() - now;
      scheduler.remove('due', 0);
      return pauseMs;
    };
    const pauses = Array.from({ length: 8 }, () => pauseAfter('throttled'));
    expect(pauses).toEqual([1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000]);
    pauseAfter('pending');
    expect(pauseAfter('throttled')).toBe(1_000);
  });

  it('is not made longer by the other answers to the same batch', () => {
    const scheduler = schedulerOf(ids(9), { concurrency: 8 });
    for (const id of scheduler.next(0)) scheduler.observe(observation('throttled', 0, id), true, 0);
    expect(scheduler.wakeAt()).toBe(1_000);
  });

  it('says nothing of the health of the upstream', () => {
    const scheduler = schedulerOf(ids(9));
    for (const id of scheduler.next(0)) expect(scheduler.observe(observation('throttled', 0, id), true, 0)).toBeNull();
    expect(scheduler.breaker.isOpen).toBe(false);
  });
});

describe('while the upstream is out', () => {
  it.each([
    ['unavailable', 'down'],
    ['unauthorized', 'unauthorized'],
  ] as const)('%s answers open the breaker, which is said once: %s', (name, state) => {
    const scheduler = schedulerOf(ids(5));
    const told = scheduler.next(0).map((id) => scheduler.observe(observation(name, 0, id), true, 0));
    expect(told).toEqual([null, null, state, null, null]);
  });

  it('sends one probe at a time, at growing distance, each about somebody else, due or not', () => {
    const scheduler = schedulerOf(ids(5));
    const openedAt = breakOpen(scheduler);
    const probes: string[] = [];
    const distances: number[] = [];
    for (let last = openedAt, i = 0; i < 4; i++) {
      const now = scheduler.wakeAt();
      expect(scheduler.next(now - 1)).toEqual([]);
      const batch = drain(scheduler, now);
      expect(batch).toHaveLength(1);
      probes.push(...batch);
      distances.push(now - last);
      scheduler.observe(observation('unavailable', now, batch[0]), true, now);
      last = now;
    }
    expect(distances).toEqual([PROBE_MS, 2 * PROBE_MS, 4 * PROBE_MS, 8 * PROBE_MS]);
    expect(new Set(probes).size).toBe(4);
  });

  it('keeps to the budget and to a pause with its probes', () => {
    const exhausted = schedulerOf(ids(3), { requests: 3, perMs: 20_000 });
    breakOpen(exhausted);
    expect(exhausted.wakeAt()).toBe(20_000);
    expect(exhausted.next(19_999)).toEqual([]);
    expect(drain(exhausted, 20_000)).toHaveLength(1);

    const paused = schedulerOf(ids(3));
    breakOpen(paused);
    paused.observe(observation(throttled(9_000), 5, 's0'), true, 5);
    expect(paused.next(9_004)).toEqual([]);
    expect(drain(paused, 9_005)).toHaveLength(1);
  });

  it('a good answer closes the breaker, and everybody due is asked again', () => {
    const scheduler = schedulerOf(ids(5));
    breakOpen(scheduler);
    const now = 50_000;
    const [probe = ''] = scheduler.next(now);
    expect(scheduler.observe(observation('pending', now, probe), true, now)).toBe('closed');
    expect(drain(scheduler, now)).toHaveLength(4);
  });

  it('a probe that is never answered is followed by another one', () => {
    const scheduler = schedulerOf(['a']);
    breakOpen(schedulerOf(ids(3)));
    scheduler.restoreOutage('down', 0, 100);
    expect(scheduler.next(100)).toEqual(['a']);
    const now = scheduler.wakeAt();
    expect(now).toBeLessThanOrEqual(100 + LEASE_MS);
    expect(drain(scheduler, now)).toEqual(['a']);
  });

  it('an outage that began before a restart goes on, with a probe at once', () => {
    const scheduler = schedulerOf(ids(3));
    scheduler.restoreOutage('unauthorized', 111, 5_000);
    expect(scheduler.breaker).toMatchObject({ state: 'unauthorized', isOpen: true, openedAt: 111 });
    expect(drain(scheduler, 5_000)).toHaveLength(1);
  });
});

describe('what an answer says of the upstream', () => {
  /** Three answers of this kind, the breaker opening at three. */
  function stateAfter(name: VerdictName, seen: boolean): string {
    const scheduler = schedulerOf([]);
    for (const id of ids(3)) scheduler.add(paced(id, { seen }), 0);
    for (const id of scheduler.next(0)) scheduler.observe(observation(name, 0, id), true, 0);
    return scheduler.breaker.state;
  }

  it.each<[VerdictName, string, string]>([
    ['pending', 'closed', 'closed'],
    ['finalized', 'closed', 'closed'],
    ['error', 'closed', 'closed'],
    ['not_found', 'closed', 'closed'],
    ['not_found_500', 'closed', 'down'],
    ['rejected', 'closed', 'closed'],
    ['throttled', 'closed', 'closed'],
    ['unavailable', 'down', 'down'],
    ['unauthorized', 'unauthorized', 'unauthorized'],
  ])('%s: %s of submissions never seen, %s of those it has shown before', (name, fresh, seen) => {
    expect(stateAfter(name, false)).toBe(fresh);
    expect(stateAfter(name, true)).toBe(seen);
  });

  it.each(['pending', 'error', 'finalized'] as const)(
    'once it was shown as %s, a submission counts as seen',
    (name) => {
      const scheduler = schedulerOf(['a'], { failures: 1 });
      scheduler.next(0);
      scheduler.observe(observation('not_found_500', 1, 'a'), true, 1);
      expect(scheduler.breaker.isOpen).toBe(false);
      scheduler.observe(observation(name, 2, 'a'), true, 2);
      expect(scheduler.observe(observation('not_found_500', 3, 'a'), true, 3)).toBe('down');
    },
  );

  it('"Record not found" of a new submission ends an outage: something answers again', () => {
    const scheduler = schedulerOf(ids(3));
    breakOpen(scheduler);
    scheduler.next(PROBE_MS + 2);
    expect(scheduler.observe(observation('not_found_500', 2_000, 's0'), true, 2_000)).toBe('closed');
  });
});

describe('a 500 "Record not found"', () => {
  it('of submissions seen before opens the breaker, and one of a new submission does not close it again', () => {
    const scheduler = schedulerOf(ids(3));
    for (const id of drain(scheduler, 0)) scheduler.observe(observation('pending', 0, id), true, 0);
    const turns: (string | null)[] = [];
    scheduler.add(paced('new', { dueAt: 0 }), 0);
    for (let now = 0; now < 120_000; now += 500)
      for (const id of scheduler.next(now))
        turns.push(scheduler.observe(observation('not_found_500', now, id), true, now));
    expect(turns.filter((turn) => turn !== null)).toEqual(['down']);
  });

  it('of a new submission ends an outage when nothing that was ever seen is left to tell by', () => {
    const scheduler = schedulerOf(ids(3));
    const openedAt = breakOpen(scheduler);
    const probeAt = scheduler.wakeAt();
    const [id = ''] = scheduler.next(probeAt);
    expect(openedAt).toBeLessThan(probeAt);
    expect(scheduler.observe(observation('not_found_500', probeAt, id), true, probeAt)).toBe('closed');
  });
});

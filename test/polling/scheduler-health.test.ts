import { describe, expect, it } from 'vitest';
import type { Scheduler } from '../../src/polling/scheduler.ts';
import { MADE_UP_ID } from '../../src/polling/upstream-health.ts';
import { observation, VERDICTS, type VerdictName } from '../support/ledger/domain.ts';
import {
  DELAY_MS,
  drain,
  failNext,
  ids,
  LEASE_MS,
  PROBE_MS,
  paced,
  schedulerOf,
} from '../support/virtual-time/pacing.ts';

/** Fails polls, and then the control, which opens the circuit breaker. Returns when it opened. */
function breakOpen(
  scheduler: Scheduler,
  how: 'unavailable' | 'unauthorized' = 'unavailable',
): number {
  for (const [index, id] of drain(scheduler, 0).entries())
    scheduler.observe(observation(how, index, id), true, index);
  expect(scheduler.health.isUp).toBe(true);
  failNext(scheduler, how, scheduler.size);
  expect(scheduler.health.isUp).toBe(false);
  return scheduler.health.since;
}

/** An outage that an earlier process recorded. */
function restore(scheduler: Scheduler, state: 'down' | 'unauthorized', at: number, now: number) {
  const none = { reason: null, pausedUntil: null, pollingUntil: null };
  const unused = { snapshot: null, genesisHash: null };
  scheduler.health.restore({ state, outSince: at, ...none, ...unused }, undefined, now);
}

describe('a pause', () => {
  it('without Retry-After doubles from 1 s to 60 s with each throttled attempt, and starts at 1 s again after another response', () => {
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

  it('is not requested by a 4xx that concerns only its request', () => {
    const scheduler = schedulerOf(ids(3), { concurrency: 1 });
    const refused = { ...VERDICTS.unavailable, reason: 'refused', retryAfterMs: 7_000 } as const;
    scheduler.next(0);
    scheduler.observe(observation(refused, 10, 's0'), true, 10);
    expect(scheduler.next(10)).toEqual(['s1']);
  });

  it('is not extended by the other responses to the same batch', () => {
    const scheduler = schedulerOf(ids(9), { concurrency: 8 });
    for (const id of scheduler.next(0)) scheduler.observe(observation('throttled', 0, id), true, 0);
    expect(scheduler.wakeAt()).toBe(1_000);
  });
});

describe('during an outage', () => {
  it('one probe at a time is sent, at growing intervals: every second one a control, the others each for another submission, due or not', () => {
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
    expect(probes.filter((id) => id === MADE_UP_ID)).toHaveLength(2);
    expect(new Set(probes).size).toBe(3);
  });

  it('a probe without a result is followed by another one', () => {
    const scheduler = schedulerOf(['a']);
    breakOpen(schedulerOf(ids(3)));
    restore(scheduler, 'down', 0, 100);
    expect(scheduler.next(100)).toEqual([MADE_UP_ID]);
    const now = scheduler.wakeAt();
    expect(now).toBeLessThanOrEqual(100 + LEASE_MS);
    expect(drain(scheduler, now)).toEqual(['a']);
  });
});

describe('the circuit breaker by kind of response', () => {
  /**
   * Returns the state after three responses of this kind, and one for a control; the circuit
   * breaker opens at three failures.
   */
  function stateAfter(name: VerdictName, seen: boolean): string {
    const scheduler = schedulerOf([]);
    for (const id of ids(3)) scheduler.add(paced(id, { seen }), 0);
    for (const id of scheduler.next(0)) scheduler.observe(observation(name, 0, id), true, 0);
    failNext(scheduler, name, 0);
    return scheduler.health.state;
  }

  it.each<[VerdictName, string, string]>([
    ['pending', 'up', 'up'],
    ['finalized', 'up', 'up'],
    ['error', 'up', 'up'],
    ['not_found', 'up', 'up'],
    ['not_found_500', 'up', 'down'],
    ['rejected', 'up', 'up'],
    ['throttled', 'up', 'up'],
    ['unavailable', 'down', 'down'],
    ['unauthorized', 'unauthorized', 'unauthorized'],
  ])('%s: %s for submissions never seen, %s for submissions seen before', (name, fresh, seen) => {
    expect(stateAfter(name, false)).toBe(fresh);
    expect(stateAfter(name, true)).toBe(seen);
  });
});

it('a control whose key is refused is repeated at once, until it is not or the circuit breaker opens', () => {
  const scheduler = schedulerOf([]);
  const control = (name: VerdictName, now: number) => {
    expect(scheduler.next(now)).toEqual([MADE_UP_ID]);
    return scheduler.observe(observation(name, now, MADE_UP_ID), false, now);
  };
  scheduler.health.wantProof();
  expect([control('unauthorized', 0), control('not_found_500', 1)]).toEqual([null, null]);
  expect(scheduler.next(2)).toEqual([]);
  scheduler.health.wantProof();
  const states = [3, 4, 5].map((now) => control('unauthorized', now));
  expect(states).toEqual([null, null, 'unauthorized']);
});

describe('an upstream that lost submissions which it returned before', () => {
  /**
   * A scheduler with an open circuit breaker: the upstream has returned `lost` submissions, and
   * finds none of them any more.
   */
  function withLost(lost: number): { scheduler: Scheduler; now: number } {
    const scheduler = schedulerOf([], { concurrency: 1_000 });
    const names = Array.from({ length: lost }, (_, index) => `lost-${index}`);
    for (const name of names) scheduler.add(paced(name), 0);
    for (const id of drain(scheduler, 0)) scheduler.observe(observation('pending', 0, id), true, 0);
    const now = 10_000;
    for (const id of drain(scheduler, now))
      scheduler.observe(observation('not_found_500', now, id), true, now);
    failNext(scheduler, 'not_found_500', now);
    expect(scheduler.health.isUp).toBe(false);
    return { scheduler, now };
  }

  /**
   * Polls until `untilMs`. Returns the states of the circuit breaker that were reported, and the
   * ids of the polls.
   */
  function run(
    scheduler: Scheduler,
    fromMs: number,
    untilMs: number,
    isReturned: (id: string) => boolean,
  ) {
    const states: (string | null)[] = [];
    const polled: string[] = [];
    for (let now = fromMs; now < untilMs; now = Math.max(now + 1, scheduler.wakeAt()))
      for (const id of scheduler.next(now)) {
        polled.push(id);
        states.push(
          scheduler.observe(
            observation(isReturned(id) ? 'pending' : 'not_found_500', now, id),
            true,
            now,
          ),
        );
      }
    return { states: states.filter((state) => state !== null), polled };
  }

  it('is probed with a new submission within two probes, which closes the circuit breaker', () => {
    const { scheduler, now } = withLost(500);
    scheduler.add(paced('new', { dueAt: now }), now);
    const { states, polled } = run(scheduler, now, now + 4 * PROBE_MS, (id) => id === 'new');
    expect(states[0]).toBe('up');
    expect(polled.indexOf('new')).toBeLessThan(2);
  });

  it.each([0, 1, 20, 299])(
    'is up again after the probe of the only one that it still has, wherever that is: %i',
    (kept) => {
      const { scheduler, now } = withLost(300);
      // Ids that the upstream never had are tried, too.
      for (const id of ids(3)) scheduler.add(paced(id, { dueAt: now }), now);
      let probes = 0;
      for (
        let at = now;
        !scheduler.health.isUp && probes < 4 * 303;
        at = Math.max(at + 1, scheduler.wakeAt())
      )
        for (const id of scheduler.next(at)) {
          probes++;
          const response = id === `lost-${kept}` ? 'pending' : 'not_found_500';
          scheduler.observe(observation(response, at, id), true, at);
        }
      expect(scheduler.health.isUp).toBe(true);
    },
  );

  it('stays up: each lost submission counts as a failure only until another one was returned', () => {
    const { scheduler, now } = withLost(20);
    scheduler.add(paced('new', { dueAt: now }), now);
    run(scheduler, now, now + 60_000, (id) => id === 'new');
    const { states, polled } = run(scheduler, now + 60_000, now + 600_000, (id) => id === 'new');
    expect(states).toEqual([]);
    expect(new Set(polled).size).toBe(21);
  });
});

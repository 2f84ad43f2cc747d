import { describe, expect, it } from 'vitest';
import type { HttpResult } from '../../src/lib/http-call.ts';
import {
  finalized,
  MINUTE_MS,
  notFound,
  openWatcher,
  pending,
  recordNotFound,
  response,
  START_MS,
} from '../support/virtual-time/virtual-watcher.ts';

const HOUR_MS = 60 * MINUTE_MS;
const FAR = { deadlineAt: START_MS + 1_000 * HOUR_MS, stuckAt: START_MS + 1_000 * HOUR_MS };
/** The responses of upstreams for an unknown id: deployed versions, and older ones. */
const NOT_FOUND = [
  ['500 "Record not found"', recordNotFound],
  ['404', notFound],
] as const;

type World = ReturnType<typeof openWatcher>;

/**
 * Advances in steps until the submission is final. Returns the minutes that passed; Infinity above
 * the limit.
 */
async function minutesUntilFinal(world: World, id: string, limitMinutes: number): Promise<number> {
  const from = world.clock.now();
  while (world.get(id).status === 'tracking' && world.clock.now() - from < limitMinutes * MINUTE_MS)
    await world.clock.advance(MINUTE_MS / 2);
  return world.get(id).status === 'tracking'
    ? Number.POSITIVE_INFINITY
    : (world.clock.now() - from) / MINUTE_MS;
}

describe.each(NOT_FOUND)('an id that is not found (%s)', (_name, missing) => {
  /** One id that is never found, beside one that stays pending. */
  const openWithNeighbor = (respond: () => HttpResult = () => missing) => {
    const world = openWatcher({ respond: (id) => (id === 'neighbor' ? pending : respond()) });
    world.track(['neighbor', 'a'], FAR);
    return world;
  };

  it('ends as unknown after its grace period if other submissions prove that the store works', async () => {
    const world = openWithNeighbor();
    await world.clock.advance(14.9 * MINUTE_MS);
    expect(world.get('a').status).toBe('tracking');
    expect(await minutesUntilFinal(world, 'a', 60)).toBeLessThan(6);
    expect(world.statuses('a')).toEqual(['tracking', 'unknown']);
    expect(world.get('a').polls).toBeGreaterThan(5);
  });

  it('does not end after a single response although the server was down for longer than the grace period', async () => {
    let response = missing;
    const world = openWithNeighbor(() => response);
    world.track(['late'], FAR);
    await world.isDownFor(10 * HOUR_MS);
    await world.clock.advance(5 * MINUTE_MS);
    expect([world.get('a').status, world.get('late').status]).toEqual(['tracking', 'tracking']);
    expect(world.get('a').polls).toBeGreaterThan(1);
    response = pending;
    await world.clock.advance(10 * MINUTE_MS);
    expect(world.get('late').status).toBe('pending');
  });

  it('that waits in a long backlog gets as many responses as its grace period requires, and still ends', async () => {
    const found = new Set<string>(['neighbor']);
    const world = openWatcher({
      respond: (id) => (found.has(id) ? pending : missing),
      scheduler: { budget: { requests: 4, perMs: MINUTE_MS, concurrency: 4 } },
    });
    const ids = Array.from({ length: 120 }, (_, index) => `id-${index}`);
    world.track(['neighbor', ...ids], FAR);
    await world.clock.advance(45 * MINUTE_MS);
    expect(ids.filter((id) => world.get(id).status !== 'tracking')).toEqual([]);
    expect(
      Math.max(...ids.map((id) => world.get(id).polls)),
      'the queue is as long as meant',
    ).toBeLessThan(5);
    for (const id of ids.slice(0, 40)) found.add(id);
    await world.clock.advance(6 * HOUR_MS);
    expect(ids.slice(0, 40).filter((id) => world.get(id).status !== 'pending')).toEqual([]);
    expect(ids.slice(40).filter((id) => world.get(id).status !== 'unknown')).toEqual([]);
    for (const id of ids.slice(40)) expect(world.get(id).polls).toBeGreaterThan(3);
  });

  it('does not end during a Retry-After that is longer than its grace period', async () => {
    let httpResponse: HttpResult = missing;
    const world = openWithNeighbor(() => httpResponse);
    await world.clock.advance(10_000);
    httpResponse = response(429, '', { retryAfter: '3600' });
    await world.clock.advance(MINUTE_MS);
    httpResponse = missing;
    await world.clock.advance(65 * MINUTE_MS);
    expect(world.get('a').status).toBe('tracking');
    expect(await minutesUntilFinal(world, 'a', 60)).toBeLessThan(20);
  });
});

describe('"Record not found" for every id, because the database fails,', () => {
  /** An upstream whose store shows nothing while `broken`. */
  const openBreakable = () => {
    const state = { broken: false, visible: new Set<string>() };
    const world = openWatcher({
      respond: (id) => (!state.broken && state.visible.has(id) ? pending : recordNotFound),
    });
    return { world, state };
  };

  it('ends no id while a submission is open that the upstream has returned before', async () => {
    const { world, state } = openBreakable();
    state.visible.add('seen');
    world.track(['seen'], FAR);
    await world.clock.advance(MINUTE_MS);
    state.broken = true;
    world.track(['a', 'b'], FAR);
    await world.clock.advance(2 * HOUR_MS);
    expect([world.get('a').status, world.monitor.health().upstreams[0]?.state]).toEqual([
      'tracking',
      'down',
    ]);
    state.broken = false;
    state.visible.add('a');
    await world.clock.advance(10 * MINUTE_MS);
    expect([world.get('a').status, world.get('b').status]).toEqual(['pending', 'tracking']);
    expect(await minutesUntilFinal(world, 'b', 60)).toBeLessThan(12);
  });

  it.each(['', ', over a restart'])(
    'ends no id if all open submissions are new, because a finalized one is polled as a proof%s',
    async (how) => {
      const world = openWatcher({
        respond: (id): HttpResult =>
          broken || !visible.has(id) ? recordNotFound : id === 'old' ? finalized : pending,
      });
      let broken = false;
      const visible = new Set(['old']);
      world.track(['old'], FAR);
      await world.clock.advance(MINUTE_MS);
      expect(world.get('old').status).toBe('finalized');
      broken = true;
      if (how) await world.isDownFor(MINUTE_MS);
      world.track(['a', 'b'], FAR);
      await world.clock.advance(2 * HOUR_MS);
      expect([world.get('a').status, world.get('b').status]).toEqual(['tracking', 'tracking']);
      broken = false;
      visible.add('a');
      await world.clock.advance(10 * MINUTE_MS);
      expect([world.get('a').status, world.get('b').status]).toEqual(['pending', 'tracking']);
      expect(await minutesUntilFinal(world, 'b', 60)).toBeLessThan(20);
      expect(world.statuses('old')).toEqual(['tracking', 'finalized']);
    },
  );
});

describe('without a proof that the store works', () => {
  it('an id ends after four times its grace period', async () => {
    const world = openWatcher({ respond: () => recordNotFound });
    world.track(['a'], FAR);
    await world.clock.advance(55 * MINUTE_MS);
    expect(world.get('a').status).toBe('tracking');
    expect(await minutesUntilFinal(world, 'a', 60)).toBeLessThan(15);
    expect(world.get('a').status).toBe('unknown');
  });

  it('an id still ends at its deadline', async () => {
    const world = openWatcher({
      respond: (id) => (id === 'gone' && !isGone ? finalized : recordNotFound),
    });
    let isGone = false;
    world.track(['gone'], FAR);
    await world.clock.advance(MINUTE_MS);
    isGone = true;
    world.track(['a'], { ...FAR, deadlineAt: START_MS + 2 * HOUR_MS });
    await world.clock.advance(2 * HOUR_MS - MINUTE_MS - 1);
    expect(world.get('a').status, 'the upstream forgot what it once showed').toBe('tracking');
    await world.clock.advance(1);
    expect(world.get('a').status).toBe('expired');
  });

  it('a finalized submission that waits for its recheck is not polled as a proof', async () => {
    const world = openWatcher({
      respond: (id) => (id === 'old' ? finalized : recordNotFound),
      recheck: true,
      scheduler: { recheckMs: 30 * MINUTE_MS },
    });
    world.track(['old', 'a'], FAR);
    await world.clock.advance(29 * MINUTE_MS);
    expect(world.get('old')).toMatchObject({ polls: 1, watched: true });
    await world.clock.advance(5 * MINUTE_MS);
    expect(world.get('old').watched).toBe(false);
    expect(await minutesUntilFinal(world, 'a', 60)).toBeLessThan(30);
  });
});

describe('Retry-After', () => {
  const throttled = response(429, '', { retryAfter: '3000' });

  it('stops deadlines while it blocks all polls', async () => {
    let response: HttpResult = pending;
    const world = openWatcher({ respond: () => response });
    world.track(['a'], { deadlineAt: START_MS + 10 * MINUTE_MS });
    await world.clock.advance(5 * MINUTE_MS);
    response = throttled;
    await world.clock.advance(2 * MINUTE_MS);
    response = pending;
    await world.clock.advance(50 * MINUTE_MS);
    expect(world.get('a').status).toBe('pending');
    const movedMs = world.monitor.deadlineAt(world.get('a')) - START_MS - 10 * MINUTE_MS;
    expect(movedMs).toBe(50 * MINUTE_MS);
    await world.clock.advance(10 * MINUTE_MS);
    expect(world.get('a').status).toBe('expired');
  });

  it('stops them after a restart, too, and the next process respects it', async () => {
    let response: HttpResult = throttled;
    const world = openWatcher({ respond: () => response });
    world.track(['a'], { deadlineAt: START_MS + 10 * MINUTE_MS });
    await world.clock.advance(MINUTE_MS);
    response = pending;
    await world.isDownFor(5 * MINUTE_MS);
    await world.clock.advance(43 * MINUTE_MS);
    expect(world.polls).toHaveLength(1);
    await world.clock.advance(2 * MINUTE_MS);
    expect(world.polls[1]?.at).toBeGreaterThanOrEqual(START_MS + 50 * MINUTE_MS);
    expect(world.get('a').status).toBe('pending');
    expect(world.monitor.deadlineAt(world.get('a'))).toBe(START_MS + 60 * MINUTE_MS);
  });
});

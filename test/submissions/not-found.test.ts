import { describe, expect, it, test } from 'vitest';
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

  it('does not end within two minutes, however short its grace period', async () => {
    const world = openWithNeighbor();
    world.track(['short'], { ...FAR, graceEndsAt: world.clock.now() });
    await world.clock.advance(1.9 * MINUTE_MS);
    expect(world.get('short').status).toBe('tracking');
    expect(await minutesUntilFinal(world, 'short', 10)).toBeLessThan(5);
  });

  it('does not end with its first response, however long the server was down before', async () => {
    let response = missing;
    const world = openWithNeighbor(() => response);
    await world.isDownFor(10 * HOUR_MS);
    world.track(['late'], { ...FAR, graceEndsAt: world.clock.now() + 15 * MINUTE_MS });
    await world.clock.advance(5 * MINUTE_MS);
    expect(world.get('late').status).toBe('tracking');
    response = pending;
    await world.clock.advance(10 * MINUTE_MS);
    expect(world.get('late').status).toBe('pending');
  });
});

test.each(NOT_FOUND)(
  'a finalized submission that is no longer found (%s) is polled again, and corrected after its grace period',
  async (_name, missing) => {
    let found: HttpResult = finalized;
    const world = openWatcher({
      respond: (id) => (id === 'neighbor' ? pending : found),
      recheck: true,
    });
    world.track(['neighbor', 'a'], FAR);
    await world.clock.advance(MINUTE_MS / 2);
    found = missing;
    await world.clock.advance(15 * MINUTE_MS);
    expect(world.get('a')).toMatchObject({ watched: true, version: 2, upstreamState: 'Finalized' });
    await world.clock.advance(5 * MINUTE_MS);
    expect(world.get('a')).toMatchObject({ status: 'finalized', version: 3, upstreamState: null });
    expect(world.get('a').error).toMatch(/not found/);
    found = finalized;
    await world.clock.advance(5 * MINUTE_MS);
    expect(world.get('a')).toMatchObject({ watched: false, version: 4, error: null });
    expect(world.ledger.events.after(0, 10).map(({ type }) => type)).toEqual([
      'submission.finalized',
      'submission.corrected',
      'submission.corrected',
    ]);
  },
);

test('an answer that ends no submission ends no recheck either, and a deadline ends both', async () => {
  let found: HttpResult = finalized;
  const world = openWatcher({ respond: () => found, recheck: true });
  world.track(['a'], { ...FAR, deadlineAt: START_MS + 10 * MINUTE_MS });
  await world.clock.advance(MINUTE_MS / 2);
  found = response(406, { error: 'invalid id' });
  await world.clock.advance(5 * MINUTE_MS);
  expect(world.get('a')).toMatchObject({ watched: true, version: 2 });
  await world.clock.advance(6 * MINUTE_MS);
  expect(world.get('a')).toMatchObject({ watched: false, version: 2 });
});

test('a finalized submission that only tests the upstream is not changed by its polls', async () => {
  let isBroken = false;
  const world = openWatcher({
    respond: (id) => (id === 'old' ? (isBroken ? pending : finalized) : recordNotFound),
  });
  world.track(['old'], FAR);
  await world.clock.advance(MINUTE_MS);
  isBroken = true;
  const before = world.get('old');
  world.track(['a'], FAR);
  await world.clock.advance(60 * MINUTE_MS);
  expect(world.polls.filter(({ submissionId }) => submissionId === 'old').length).toBeGreaterThan(
    1,
  );
  expect(world.get('old')).toEqual(before);
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

describe('the proof that the database works', () => {
  it('is not needed if the upstream has never returned a submission', async () => {
    const world = openWatcher({ respond: () => recordNotFound });
    world.track(['a'], FAR);
    await world.clock.advance(14 * MINUTE_MS);
    expect(world.get('a').status).toBe('tracking');
    expect(await minutesUntilFinal(world, 'a', 60)).toBeLessThan(8);
    expect(world.get('a').status).toBe('unknown');
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

test('the next process respects a Retry-After', async () => {
  let current: HttpResult = response(429, '', { retryAfter: '3000' });
  const world = openWatcher({ respond: () => current });
  world.track(['a'], FAR);
  await world.clock.advance(MINUTE_MS);
  current = pending;
  await world.isDownFor(5 * MINUTE_MS);
  await world.clock.advance(43 * MINUTE_MS);
  expect(world.polls).toHaveLength(1);
  await world.clock.advance(2 * MINUTE_MS);
  expect(world.polls[1]?.at).toBeGreaterThanOrEqual(START_MS + 50 * MINUTE_MS);
});

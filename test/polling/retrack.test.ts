import { expect, test } from 'vitest';
import type { HttpResult } from '../../src/lib/http-call.ts';
import { trackRequest } from '../support/ledger/ledger-file.ts';
import {
  finalized,
  MINUTE_MS,
  openWatcher,
  pending,
  response,
} from '../support/virtual-time/virtual-watcher.ts';

const rejected = response(406, { id: 'a', state: 'ERROR', error: 'invalid id' });

test('a submission that is tracked again is polled until it is final, and waiters wait for that', async () => {
  let current: HttpResult = pending;
  const world = openWatcher({ respond: () => current });
  world.track(['a'], { deadlineAt: world.clock.now() + MINUTE_MS });
  await world.clock.advance(30 * MINUTE_MS);
  expect(world.statuses('a')).toEqual(['tracking', 'pending', 'expired']);
  const polls = world.polls.length;
  world.track(['a'], { retrack: true });
  let isOver = false;
  const wait = world.monitor
    .waitUntilFinal(() => world.get('a'), 60 * MINUTE_MS)
    .then(() => {
      isOver = true;
    });
  await world.clock.advance(5 * MINUTE_MS);
  expect([world.polls.length > polls, isOver]).toEqual([true, false]);
  current = finalized;
  await world.clock.advance(10 * MINUTE_MS);
  await wait;
  expect(world.statuses('a')).toEqual([
    'tracking',
    'pending',
    'expired',
    'tracking',
    'pending',
    'finalized',
  ]);
});

test('the late result of a poll from before the retrack does not end the submission, which is polled again', async () => {
  const late = Promise.withResolvers<HttpResult>();
  const responses: (HttpResult | Promise<HttpResult>)[] = [late.promise];
  const world = openWatcher({ respond: () => responses.shift() ?? finalized });
  world.track(['a']);
  await world.clock.advance(10_000);
  expect(world.polls).toHaveLength(1);
  world.cancel(['a']);
  world.track(['a'], { retrack: true });
  late.resolve(rejected);
  await world.clock.advance(0);
  expect(world.get('a').polls).toBe(2);
  expect(world.statuses('a')).toEqual(['tracking', 'cancelled', 'tracking', 'finalized']);
});

test('an earlier deadline takes effect when it passes, however rarely the submission is polled', async () => {
  const world = openWatcher({ respond: () => pending });
  world.track(['a', 'b']);
  await world.clock.advance(20 * MINUTE_MS);
  const deadlineAt = world.clock.now() + 90_000;
  for (const id of ['a', 'b'])
    expect(
      world.update(id, { deadlineAt: id === 'a' ? deadlineAt : deadlineAt + 1_000 })?.kind,
    ).toBe('updated');
  await world.clock.advance(90_000);
  expect(['a', 'b'].map((id) => world.get(id).status)).toEqual(['expired', 'pending']);
  await world.clock.advance(1_000);
  expect(world.get('b').status).toBe('expired');
});

test.each<[string, HttpResult]>([
  ['an outage', response(503, 'down')],
  ['a pause that the upstream requested', response(429, 'slow', { retryAfter: '60' })],
])('during %s, the next poll of no submission is in the past', async (_what, trouble) => {
  const world = openWatcher({ respond: () => trouble });
  const ids = ['a', 'b', 'c', 'd', 'e', 'f'];
  world.track(ids);
  for (let second = 0; second < 55; second++) {
    await world.clock.advance(1_000);
    for (const id of ids)
      expect(world.monitor.nextPollAt(world.get(id)), id).toBeGreaterThanOrEqual(world.clock.now());
  }
  expect(world.polls.length).toBeGreaterThan(0);
});

test('the next poll of an open submission is known, and that of a final one is not', async () => {
  let current: HttpResult = response(404, { error: 'not found' });
  const world = openWatcher({ respond: () => current });
  world.track(['a']);
  expect([world.get('a').polledAt, world.get('a').notFoundSince]).toEqual([null, null]);
  expect(world.monitor.nextPollAt(world.get('a'))).toBeGreaterThanOrEqual(world.clock.now());
  await world.clock.advance(5 * MINUTE_MS);
  const first = world.polls[0]?.at;
  expect(world.get('a').notFoundSince).toBe(first);
  const nextAt = world.monitor.nextPollAt(world.get('a')) ?? 0;
  const polls = world.polls.length;
  await world.clock.advance(nextAt - world.clock.now() - 1);
  expect(world.polls).toHaveLength(polls);
  current = finalized;
  await world.clock.advance(2);
  expect(world.get('a')).toMatchObject({
    status: 'finalized',
    polledAt: nextAt,
    notFoundSince: null,
  });
  expect(world.monitor.nextPollAt(world.get('a'))).toBeNull();
});

test('a submission that is tracked again while older ones are being registered is polled', async () => {
  const world = openWatcher({ respond: () => finalized });
  const far = world.clock.now() + 600 * MINUTE_MS;
  const limits = { deadlineAt: far, graceEndsAt: far, stuckAt: far };
  const ids = Array.from({ length: 6_000 }, (_, index) => `id-${index}`);
  world.restartWith((ledger) => {
    const all = ['first', ...ids].map((id) => trackRequest(id, limits));
    ledger.track(all, world.clock.now());
    ledger.cancel(['first'], world.clock.now());
  });
  expect(world.monitor.pacing()[0]?.tracked).toBe(5_000);
  world.trackAll([trackRequest('first', { ...limits, retrack: true })]);
  await world.clock.advance(MINUTE_MS);
  expect(world.get('first').status).toBe('finalized');
});

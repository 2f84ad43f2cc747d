import { expect, test } from 'vitest';
import { LEARNS_NOTHING } from '../../bench/pacing/rules.ts';
import type { HttpResult } from '../../src/lib/http-call.ts';
import type { Candidate } from '../../src/pacing/index.ts';
import type { Entry } from '../../src/polling/poll-queues.ts';
import { trackRequest } from '../support/ledger/ledger-file.ts';
import {
  finalized,
  MINUTE_MS,
  openWatcher,
  response,
} from '../support/virtual-time/virtual-watcher.ts';

test.each<[string, HttpResult]>([
  ['rejection', response(406, { id: 'a', state: 'ERROR', error: 'invalid id' })],
  ['"not found"', response(404, { error: 'not found' })],
  ['failure', response(503, 'down')],
])(
  'a late %s of a poll from before the retrack does not count, and the id is polled again',
  async (_what, result) => {
    const [late, next] = [Promise.withResolvers<HttpResult>(), Promise.withResolvers<HttpResult>()];
    const responses = [late.promise, next.promise];
    const world = openWatcher({ respond: () => responses.shift() ?? finalized });
    world.track(['a']);
    await world.clock.advance(10_000);
    expect(world.polls).toHaveLength(1);
    world.cancel(['a']);
    world.track(['a'], { retrack: true });
    late.resolve(result);
    await world.clock.advance(0);
    expect(world.get('a')).toMatchObject({
      status: 'tracking',
      polledAt: null,
      notFoundSince: null,
    });
    next.resolve(finalized);
    await world.clock.advance(0);
    expect(world.get('a').polls).toBe(2);
    expect(world.statuses('a')).toEqual(['tracking', 'cancelled', 'tracking', 'finalized']);
  },
);

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
  const isFirst = (item: Candidate) => (item as Entry).submissionId === 'first';
  const world = openWatcher({
    respond: () => finalized,
    policy: () => ({
      ...LEARNS_NOTHING,
      register: (item, _, now) => (isFirst(item) ? now : now + 600 * MINUTE_MS),
      learn: (_item, _observation, now) => now,
    }),
  });
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

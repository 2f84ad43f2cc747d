import { expect, test } from 'vitest';
import type { HttpResult } from '../../src/lib/http-call.ts';
import {
  databaseDown,
  finalized,
  MINUTE_MS,
  openWatcher,
  pending,
  unauthorized,
} from '../support/virtual-time/virtual-watcher.ts';

const kinds = (results: { kind: string; observation?: { kind: string } }[]) =>
  results.map(({ kind, observation }) => observation?.kind ?? kind);

test('two hundred concurrent polls of one submission share one request', async () => {
  const world = openWatcher({ respond: () => pending });
  const polls = Promise.all(
    Array.from({ length: 200 }, () => world.monitor.pollOnDemand('default', 'untracked')),
  );
  await world.clock.advance(100);
  expect(new Set(kinds(await polls))).toEqual(new Set(['pending']));
  expect(world.polls.length).toBe(1);
  expect(world.ledger.submissions.get('untracked')).toBeUndefined();
  expect(world.monitor.health().upstreams[0]).toMatchObject({ tracked: 0, inFlight: 0 });
});

test('an on-demand poll of a submission that is in flight costs no request', async () => {
  const hanging = Promise.withResolvers<HttpResult>();
  const world = openWatcher({ respond: () => hanging.promise });
  world.track(['a']);
  const poll = world.monitor.pollOnDemand('default', 'a');
  await world.clock.advance(10);
  hanging.resolve(finalized);
  await world.clock.advance(10);
  expect(kinds([await poll])).toEqual(['finalized']);
  expect(world.polls.length).toBe(1);
  expect(world.get('a').status).toBe('finalized');
});

test('the observation of a tracked submission is committed before the on-demand poll resolves', async () => {
  let response = pending;
  const world = openWatcher({ respond: () => response });
  world.track(['a']);
  await world.clock.advance(10 * MINUTE_MS);
  response = finalized;
  let status: string | undefined;
  const poll = world.monitor.pollOnDemand('default', 'a').then(() => {
    status = world.get('a').status;
  });
  await world.clock.advance(10);
  await poll;
  expect(status).toBe('finalized');
});

test('on-demand and scheduled polls share the budget, and neither starves', async () => {
  const budget = { requests: 10, perMs: 10_000, concurrency: 4 };
  const world = openWatcher({ respond: () => pending, scheduler: { budget } });
  world.track(Array.from({ length: 100 }, (_, index) => `due-${index}`));
  const failed: string[] = [];
  for (let index = 0; index < 100; index++)
    void world.monitor.pollOnDemand('default', `other-${index}`).then((result) => {
      if (result.kind === 'failed') failed.push(result.reason);
    });
  await world.clock.advance(60_000);
  const times = world.polls.map(({ at }) => at);
  const sent = world.polls.filter(({ submissionId }) => submissionId.startsWith('other'));
  const maxPerWindow = Math.max(
    ...times.map((from) => times.filter((at) => at >= from && at < from + 10_000).length),
  );
  expect(maxPerWindow).toBe(10);
  expect(sent.length).toBeGreaterThan(3);
  expect(world.polls.length - sent.length).toBeGreaterThan(10);
  expect(new Set(failed)).toEqual(new Set(['busy']));
  expect(sent.length + failed.length).toBe(100);
});

test('an on-demand poll fails when the budget stays exhausted, with the time of a retry', async () => {
  const world = openWatcher({
    respond: () => pending,
    scheduler: { budget: { requests: 1, perMs: MINUTE_MS, concurrency: 1 } },
  });
  const first = world.monitor.pollOnDemand('default', 'a');
  await world.clock.advance(10);
  expect(kinds([await first])).toEqual(['pending']);
  expect(await world.monitor.pollOnDemand('default', 'b')).toMatchObject({
    reason: 'busy',
    retryAfterMs: MINUTE_MS + 1 - 10,
  });
  expect(world.polls.length).toBe(1);
});

test.each([
  ['is out', databaseDown],
  ['refuses us', unauthorized],
])(
  'while the upstream %s, an on-demand poll fails at once, without a request',
  async (_how, response) => {
    const world = openWatcher({
      respond: () => response,
      scheduler: { breaker: { failures: 2, probeMs: 60_000, maxProbeMs: 60_000 } },
    });
    world.track(['a', 'b']);
    await world.clock.advance(100);
    const before = world.polls.length;
    expect(await world.monitor.pollOnDemand('default', 'c')).toMatchObject({
      reason: 'upstream',
    });
    expect(world.polls.length).toBe(before);
  },
);

test('at most 10,000 polls wait, first in, first out', async () => {
  const world = openWatcher({
    respond: () => pending,
    scheduler: { budget: { requests: 1, perMs: 1_000, concurrency: 1 } },
  });
  const refused: string[] = [];
  for (let index = 0; index < 10_100; index++)
    void world.monitor.pollOnDemand('default', `id-${index}`).then((result) => {
      if (result.kind === 'failed') refused.push(`id-${index}`);
    });
  await world.clock.advance(3_000);
  expect(refused).toHaveLength(99);
  expect(refused[0]).toBe('id-10001');
  expect(world.polls.map(({ submissionId }) => submissionId)).toEqual(['id-0', 'id-1', 'id-2']);
});

/** A watcher whose upstream has failed for half an hour, until `recover` is called. */
async function openDuringOutage() {
  let response: HttpResult = databaseDown;
  const world = openWatcher({
    respond: () => response,
    scheduler: { breaker: { failures: 2, probeMs: 1_000, maxProbeMs: 10 * MINUTE_MS } },
  });
  world.track(['a']);
  await world.clock.advance(30 * MINUTE_MS);
  const recover = () => {
    response = pending;
  };
  return { world, recover };
}

test('during an outage one caller at a time probes, a second after the last probe, and the others are refused', async () => {
  const { world, recover } = await openDuringOutage();
  expect(world.monitor.health().upstreams[0]?.state).toBe('down');
  const sent = world.polls.length;
  const calls = () =>
    Promise.all(['b', 'c', 'd'].map((id) => world.monitor.pollOnDemand('default', id)));
  const first = calls();
  await world.clock.advance(10);
  expect(kinds(await first)).toEqual(['unavailable', 'failed', 'failed']);
  expect(kinds(await calls())).toEqual(['failed', 'failed', 'failed']);
  expect(world.polls.slice(sent).map(({ submissionId }) => submissionId)).toEqual(['b']);
  recover();
  await world.clock.advance(1_000);
  const third = calls();
  await world.clock.advance(10);
  expect(kinds(await third)).toEqual(['pending', 'failed', 'failed']);
  expect(world.monitor.health().upstreams[0]?.state).toBe('up');
});

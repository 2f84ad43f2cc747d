import { expect, test } from 'vitest';
import { LedgerError } from '../../src/ledger/errors.ts';
import type { HttpResult } from '../../src/lib/http-call.ts';
import { byAge } from '../support/virtual-time/pacing.ts';
import {
  data,
  databaseDown,
  finalized,
  MINUTE_MS,
  notFound,
  openWatcher,
  pending,
  response,
  START_MS,
  unauthorized,
} from '../support/virtual-time/virtual-watcher.ts';

test('a submission is polled until it is finalized, and not afterwards', async () => {
  let response: HttpResult = notFound;
  const world = openWatcher({ respond: () => response });
  world.track(['a']);
  await world.clock.advance(3_000);
  response = pending;
  await world.clock.advance(30_000);
  response = finalized;
  await world.clock.advance(30_000);

  expect(world.statuses('a')).toEqual(['tracking', 'pending', 'finalized']);
  const { polls, finalizedAt, envelope: kept } = world.get('a');
  expect(polls).toBe(world.polls.length);
  expect(finalizedAt).toBeGreaterThan(START_MS + 33_000);
  expect(kept).toContain('1'.repeat(39));
  const pollsBefore = world.polls.length;
  await world.clock.advance(60 * MINUTE_MS);
  expect(world.polls.length).toBe(pollsBefore);
  expect(world.clock.pending).toBe(0);
});

test('a new process continues with the learned state of the previous one', async () => {
  const restored: string[] = [];
  let polls = 0;
  const world = openWatcher({
    respond: () => pending,
    policy: (deps) => ({
      ...byAge(deps),
      confirm(_item, now) {
        polls++;
        return now;
      },
      snapshot: () => `${polls} polls`,
      restore: (learned) => restored.push(learned),
    }),
  });
  world.track(['a']);
  await world.clock.advance(3 * MINUTE_MS);
  world.restart();
  expect(restored).toEqual([expect.stringMatching(/^[1-9]\d* polls$/)]);
});

test('twenty kills before the first response do not spend it either', async () => {
  const world = openWatcher({
    respond: () => new Promise(() => undefined),
    scheduler: { budget: { requests: 5, perMs: 60_000, concurrency: 5 } },
  });
  world.track(Array.from({ length: 40 }, (_, index) => `id-${index}`));
  for (let round = 0; round < 20; round++) {
    await world.clock.advance(1_000);
    world.restart();
  }
  expect(world.polls.length).toBe(5);
});

test('an outage opens the circuit breaker, is reported once with its duration, and ends nothing that is not due', async () => {
  let response: HttpResult = pending;
  const world = openWatcher({ respond: () => response });
  const ids = Array.from({ length: 10 }, (_, index) => `id-${index}`);
  world.track(ids, { deadlineAt: START_MS + 60 * MINUTE_MS });
  await world.clock.advance(5 * MINUTE_MS);
  response = databaseDown;
  await world.clock.advance(30 * MINUTE_MS);
  expect(world.monitor.health().upstreams[0]?.state).toBe('down');
  expect(ids.every((id) => world.get(id).status === 'pending')).toBe(true);
  response = pending;
  await world.clock.advance(2 * MINUTE_MS);
  expect(world.turns.map(({ event }) => event)).toEqual(['upstream.down', 'upstream.up']);
  expect(world.turns[1]?.lastedMs).toBeGreaterThan(28 * MINUTE_MS);
  expect(world.turns[1]?.reason).toContain('HTTP 500 Database');
  expect(world.get('id-0').status).toBe('pending');
});

test('an upstream that is down stays so while a request that tests it is in flight', async () => {
  let response: HttpResult | Promise<never> = databaseDown;
  const world = openWatcher({ respond: () => response });
  const states = () => world.monitor.health().upstreams.map(({ state }) => state);
  expect(states()).toEqual(['up']);
  world.track(['a', 'b']);
  await world.clock.advance(5 * MINUTE_MS);
  expect(states()).toEqual(['down']);
  response = new Promise(() => undefined);
  // The longest time between two probes.
  await world.clock.advance(31_000);
  expect(states()).toEqual(['down']);
});

test('an outage continues after a restart', async () => {
  let response: HttpResult = databaseDown;
  const world = openWatcher({ respond: () => response });
  world.track(['a'], { deadlineAt: START_MS + 60 * MINUTE_MS });
  await world.clock.advance(5 * MINUTE_MS);
  world.restart();
  expect(world.monitor.health().upstreams[0]?.state).toBe('down');
  await world.clock.advance(20 * MINUTE_MS);
  response = pending;
  await world.clock.advance(MINUTE_MS);
  expect(world.get('a').status).toBe('pending');
  expect(world.turns.map(({ event }) => event)).toEqual(['upstream.down', 'upstream.up']);
});

test('refused credentials raise one alert, are probed slowly, and lose no submission', async () => {
  let response: HttpResult = unauthorized;
  const world = openWatcher({ respond: () => response });
  const ids = Array.from({ length: 50 }, (_, index) => `id-${index}`);
  world.track(ids, { deadlineAt: START_MS + 100 * MINUTE_MS });
  await world.clock.advance(60 * MINUTE_MS);
  expect(world.polls.length).toBeLessThan(32 + 160);
  expect(world.turns.map(({ event }) => event)).toEqual(['upstream.unauthorized']);
  response = finalized;
  await world.clock.advance(5 * MINUTE_MS);
  expect(ids.every((id) => world.get(id).status === 'finalized')).toBe(true);
});

test('a 429 stops all polls until its Retry-After has passed', async () => {
  let httpResponse: HttpResult = response(429, '', { retryAfter: '90' });
  const world = openWatcher({
    respond: () => httpResponse,
    scheduler: { budget: { requests: 50, perMs: 1_000, concurrency: 4 } },
  });
  world.track(Array.from({ length: 20 }, (_, index) => `id-${index}`));
  await world.clock.advance(1);
  expect(world.polls.length).toBe(4);
  httpResponse = finalized;
  await world.clock.advance(89_000);
  expect(world.polls.length).toBe(4);
  await world.clock.advance(30_000);
  expect(world.get('id-19').status).toBe('finalized');
});

test('pauses without another response in between are one, which is reported once', async () => {
  let httpResponse: HttpResult = response(429, 'Slow down', { retryAfter: '25' });
  const reported: unknown[] = [];
  const world = openWatcher({
    respond: () => httpResponse,
    listener: { paused: (pause) => reported.push(pause) },
  });
  const shown = () => world.monitor.upstreams()[0];
  world.track(['a']);
  await world.clock.advance(20_000);
  expect([shown()?.state, reported]).toEqual(['up', []]);
  await world.clock.advance(5 * MINUTE_MS);
  const since = world.polls[0]?.at;
  expect(shown()).toMatchObject({
    state: 'paused',
    reason: 'HTTP 429 Slow down',
    pause: { since },
  });
  expect(reported).toMatchObject([{ upstream: 'default', reason: 'HTTP 429 Slow down' }]);
  expect(world.polls.length).toBeGreaterThan(5);
  httpResponse = pending;
  await world.clock.advance(MINUTE_MS);
  expect(shown()).toMatchObject({ state: 'up', reason: null, pause: null });
});

test('short pauses with no request between them are not a long one', async () => {
  const reported: unknown[] = [];
  const world = openWatcher({
    respond: () => response(429, 'Slow down', { retryAfter: '2' }),
    listener: { paused: (pause) => reported.push(pause) },
  });
  world.track(['a']);
  await world.clock.advance(1_000);
  world.cancel(['a']);
  await world.clock.advance(60 * MINUTE_MS);
  world.track(['b']);
  await world.clock.advance(1_000);
  expect(world.polls.length).toBe(2);
  expect([world.monitor.upstreams()[0]?.state, reported]).toEqual(['up', []]);
});

test('a finalized submission whose data changes is corrected with an event', async () => {
  let httpResponse: HttpResult = finalized;
  const world = openWatcher({ respond: () => httpResponse, recheck: true });
  world.track(['a', 'b']);
  await world.clock.advance(1_000);
  httpResponse = response(200, {
    state: 'Finalized',
    error: null,
    data: { ...data, block_hash: '0x07e4' },
  });
  await world.clock.advance(10 * MINUTE_MS);
  expect(world.statuses('a')).toEqual(['tracking', 'finalized', 'finalized']);
  expect(world.get('a').envelope).toContain('0x07e4');
  expect(world.get('a').polls).toBe(2);
});

test('cancelling stops the polls, including one in flight', async () => {
  const hanging = Promise.withResolvers<HttpResult>();
  const world = openWatcher({ respond: () => hanging.promise });
  world.track(['a']);
  await world.clock.advance(100);
  expect(world.cancel(['a'])[0]?.status).toBe('cancelled');
  hanging.resolve(finalized);
  await world.clock.advance(10 * MINUTE_MS);
  expect(world.statuses('a')).toEqual(['tracking', 'cancelled']);
  expect(world.polls.length).toBe(1);
});

test('a full ledger loses observations but no submissions, and accepts writes again once there is space', async () => {
  let failures = 0;
  let recoveries = 0;
  const world = openWatcher({
    respond: () => finalized,
    listener: { writeFailed: () => failures++, ledgerRecovered: () => recoveries++ },
  });
  world.track(['a']);
  const { ledger } = world;
  const record = ledger.store.record.bind(ledger.store);
  ledger.store.record = () => {
    throw new LedgerError('full', 'the disk is full');
  };
  await world.clock.advance(10_000);
  expect(failures).toBeGreaterThan(1);
  expect(world.monitor.health().ledgerWritable).toBe(false);
  ledger.store.record = record;
  await world.clock.advance(5_000);
  expect(recoveries).toBeGreaterThan(0);
  expect(world.monitor.health().ledgerWritable).toBe(true);
  expect(world.get('a').status).toBe('finalized');
});

test('while the ledger cannot be written nothing is polled: the budget is not spent on lost results', async () => {
  const world = openWatcher({ respond: () => pending });
  world.track(['a', 'b']);
  await world.clock.advance(1_000);
  const { ledger } = world;
  const { record } = ledger.store;
  const { setPolling } = ledger.upstreams;
  const full = () => {
    throw new LedgerError('full', 'the disk is full');
  };
  Object.assign(ledger.store, { record: full });
  Object.assign(ledger.upstreams, { setPolling: full });
  await world.clock.advance(10 * MINUTE_MS);
  expect(world.polls.length).toBeLessThanOrEqual(4);
  Object.assign(ledger.store, { record });
  Object.assign(ledger.upstreams, { setPolling });
  await world.clock.advance(MINUTE_MS);
  expect(world.polls.length).toBeGreaterThan(5);
  expect(world.monitor.health().ledgerWritable).toBe(true);
});

test('an observation that cannot be recorded does not affect the others', async () => {
  const world = openWatcher({ respond: () => finalized });
  const { ledger } = world;
  const record = ledger.store.record.bind(ledger.store);
  ledger.store.record = (observations, context) => {
    if (observations.some(({ submissionId }) => submissionId === 'poison'))
      throw new Error('this one cannot be kept');
    return record(observations, context);
  };
  world.track(['a', 'poison', 'b']);
  await world.clock.advance(5 * MINUTE_MS);
  expect(world.get('a')).toMatchObject({ status: 'finalized', polls: 1 });
  expect(world.get('b')).toMatchObject({ status: 'finalized', polls: 1 });
  expect(world.get('poison').status).toBe('tracking');
  expect(world.monitor.health().ledgerWritable).toBe(true);
  expect(world.polls.length).toBeLessThan(10);
});

test('stopping is limited in time, and drops later results', async () => {
  const hanging = Promise.withResolvers<HttpResult>();
  let failures = 0;
  const world = openWatcher({
    respond: () => hanging.promise,
    listener: { writeFailed: () => failures++ },
  });
  world.track(['a']);
  await world.clock.advance(100);
  const stopped = world.monitor.stop(1_000);
  await world.clock.advance(1_000);
  await stopped;
  hanging.resolve(finalized);
  await world.clock.advance(MINUTE_MS);
  expect(world.get('a').status).toBe('tracking');
  expect([failures, world.turns, world.clock.pending]).toEqual([0, [], 0]);
});

test('stopping waits for results in flight and commits them', async () => {
  const hanging = Promise.withResolvers<HttpResult>();
  const world = openWatcher({ respond: () => hanging.promise });
  world.track(['a']);
  await world.clock.advance(100);
  const stopped = world.monitor.stop(1_000);
  hanging.resolve(finalized);
  await stopped;
  expect(world.get('a').status).toBe('finalized');
});

test('a settled submission that an on-demand poll finds changed is rechecked until it is settled again', async () => {
  let response = finalized;
  const world = openWatcher({ respond: () => response, recheck: true });
  world.track(['a']);
  await world.clock.advance(10 * MINUTE_MS);
  expect(world.get('a').watched).toBe(false);
  const from = world.clock.now();
  const before = world.polls.length;
  response = pending;
  const poll = world.monitor.pollOnDemand('default', 'a');
  await world.clock.advance(1.5 * MINUTE_MS);
  expect(await poll).toMatchObject({ kind: 'observed' });
  expect(world.get('a')).toMatchObject({ watched: true, upstreamState: 'Pending' });
  response = finalized;
  await world.clock.advance(10 * MINUTE_MS);
  expect(world.get('a')).toMatchObject({ watched: false, upstreamState: 'Finalized' });
  expect(world.polls.slice(before).map(({ at }) => at - from)).toEqual([
    0,
    MINUTE_MS,
    2 * MINUTE_MS,
  ]);
  expect(world.monitor.pacing()[0]?.tracked).toBe(0);
});

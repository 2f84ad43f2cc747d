import { describe, expect, it } from 'vitest';
import { LedgerError } from '../../src/ledger/errors.ts';
import type { HttpResult } from '../../src/lib/http-call.ts';
import { DelayLog } from '../../src/polling/delay-log.ts';
import type { Delay } from '../../src/submissions/delay.ts';
import {
  databaseDown,
  finalized,
  MINUTE_MS,
  openWatcher,
  pending,
  response,
  START_MS,
  unauthorized,
} from '../support/virtual-time/virtual-watcher.ts';

type World = ReturnType<typeof openWatcher>;

/** The delays of a submission that is tracked since the start, with times in seconds since then. */
function delaysIn(world: World, id = 'a') {
  const seconds = (at: number | null) => at && (at - START_MS) / 1_000;
  return world.monitor
    .delaysBetween(world.get(id), START_MS, world.clock.now())
    .map(({ cause, reason, beganAt, endedAt }) => ({
      cause,
      reason,
      from: seconds(beganAt),
      to: seconds(endedAt),
    }));
}

describe('a submission that is late can tell why', () => {
  /** Polls for a minute, then for 43 s under the trouble, and then until everything is recorded. */
  async function delaysOf(trouble: HttpResult, ids = ['a', 'b', 'c']) {
    let current: HttpResult = pending;
    const world = openWatcher({ respond: () => current });
    world.track(ids);
    await world.clock.advance(MINUTE_MS);
    current = trouble;
    await world.clock.advance(43_000);
    current = pending;
    await world.clock.advance(10 * MINUTE_MS);
    const delays = delaysIn(world);
    world.restart();
    expect(delaysIn(world).slice(0, delays.length), 'after a restart').toEqual(delays);
    return delays;
  }

  it.each<[string, HttpResult, string, string]>([
    ['an outage', databaseDown, 'upstream_down', 'HTTP 500 Database connection error'],
    [
      'a connection that is refused',
      { kind: 'failure', reason: 'network', detail: 'the connection was refused' },
      'upstream_down',
      'the connection was refused',
    ],
    [
      'a body in gzip',
      response(200, '\u001f\ufffd\b'),
      'upstream_down',
      'HTTP 200, gzip, not JSON',
    ],
    ['a page', response(200, '<html>\n\n'), 'upstream_down', 'HTTP 200, not JSON: <html>'],
    ['a refused key', unauthorized, 'key_refused', 'HTTP 401 Invalid API key'],
    [
      'a firewall that refuses the request',
      response(403, 'error code: 1020'),
      'upstream_down',
      'a proxy or firewall refused the request: HTTP 403 error code: 1020',
    ],
    ['a pause', response(429, 'slow', { retryAfter: '40' }), 'paused', 'HTTP 429 slow'],
  ])('%s', async (_what, trouble, cause, reason) => {
    const delays = await delaysOf(trouble);
    expect(delays).toEqual([{ cause, reason, from: expect.any(Number), to: expect.any(Number) }]);
    const [{ from, to } = { from: 0, to: 0 }] = delays;
    expect(from).toBeGreaterThanOrEqual(60);
    expect(from).toBeLessThan(75);
    expect(to).toBeGreaterThanOrEqual(100);
  });

  it('failures that end before the circuit breaker opens, if they last for ten seconds', async () => {
    let current: HttpResult = databaseDown;
    const world = openWatcher({
      respond: () => current,
      scheduler: { breaker: { failures: 100, probeMs: 1_000, maxProbeMs: 30_000 } },
    });
    world.track(['a']);
    await world.clock.advance(30_000);
    current = finalized;
    await world.clock.advance(MINUTE_MS);
    expect(delaysIn(world)).toMatchObject([
      { cause: 'upstream_down', reason: 'HTTP 500 Database connection error' },
    ]);
    expect(world.turns).toEqual([]);
  });

  it('failures so far, before they open the circuit breaker', async () => {
    const world = openWatcher({ respond: () => databaseDown });
    world.track(['a']);
    await world.clock.advance(8_000);
    expect(world.turns).toEqual([]);
    expect(delaysIn(world)).toEqual([
      {
        cause: 'upstream_down',
        reason: 'HTTP 500 Database connection error',
        from: expect.any(Number),
        to: null,
      },
    ]);
    expect(world.monitor.delaysBetween(world.get('a'), START_MS - MINUTE_MS, START_MS)).toEqual([]);
  });

  it('but not failures of another submission alone, however long they last', async () => {
    let bad: HttpResult = databaseDown;
    const world = openWatcher({ respond: (id) => (id === 'bad' ? bad : pending) });
    world.track(['a', 'bad']);
    for (let minute = 0; minute < 30; minute++) {
      await world.clock.advance(MINUTE_MS);
      expect(delaysIn(world)).toEqual([]);
    }
    bad = finalized;
    await world.clock.advance(MINUTE_MS);
    expect(delaysIn(world)).toEqual([]);
  });

  it('failures of the submission alone, which are its error when it expires', async () => {
    const world = openWatcher({ respond: (id) => (id === 'bad' ? databaseDown : pending) });
    world.track(['a']);
    world.track(['bad'], { deadlineAt: START_MS + 30 * MINUTE_MS });
    await world.clock.advance(20 * MINUTE_MS);
    expect(delaysIn(world, 'bad')).toEqual([
      {
        cause: 'upstream_down',
        reason: expect.stringMatching(/^HTTP 500 Database connection error, \d+ times$/),
        from: expect.any(Number),
        to: null,
      },
    ]);
    await world.clock.advance(20 * MINUTE_MS);
    expect(world.get('bad')).toMatchObject({
      status: 'expired',
      error: expect.stringMatching(
        /^HTTP 500 Database connection error, \d+ times since 20\d\d-.*Z$/,
      ),
    });
  });

  it('a request budget that is exhausted for longer than the submission is open', async () => {
    const world = openWatcher({
      respond: () => pending,
      scheduler: { budget: { requests: 1, perMs: 10 * MINUTE_MS, concurrency: 1 } },
    });
    const ids = ['a', 'b', 'c'];
    world.track(ids);
    await world.clock.advance(MINUTE_MS);
    expect(world.polls).toHaveLength(1);
    expect(delaysIn(world)).toEqual([
      {
        cause: 'budget_exhausted',
        reason: 'more polls were due than the request budget allows: 1 in 600 s, 1 at once',
        from: expect.any(Number),
        to: null,
      },
    ]);
    for (const id of ids)
      expect(world.monitor.nextPollAt(world.get(id)), id).toBeGreaterThan(world.clock.now());
  });

  it('an exhausted request budget', async () => {
    const world = openWatcher({
      respond: () => finalized,
      scheduler: { budget: { requests: 2, perMs: 10_000, concurrency: 2 } },
    });
    world.track(Array.from({ length: 10 }, (_, index) => `id-${index}`));
    await world.clock.advance(5 * MINUTE_MS);
    expect(delaysIn(world, 'id-0')).toEqual([
      {
        cause: 'budget_exhausted',
        reason: 'more polls were due than the request budget allows: 2 in 10 s, 2 at once',
        from: expect.any(Number),
        to: expect.any(Number),
      },
    ]);
  });

  it('a server that did not run', async () => {
    const world = openWatcher({ respond: () => pending });
    world.track(['a']);
    await world.clock.advance(MINUTE_MS);
    await world.monitor.stop(0);
    await world.isDownFor(10 * MINUTE_MS);
    expect(delaysIn(world)).toEqual([
      { cause: 'server_down', reason: 'the server did not run', from: 60, to: 660 },
    ]);
  });

  it('a server that was killed, since the newest poll', async () => {
    const world = openWatcher({ respond: () => pending });
    world.track(['a']);
    await world.clock.advance(MINUTE_MS);
    const { polledAt } = world.get('a');
    await world.isDownFor(12_000);
    expect(delaysIn(world)).toEqual([
      {
        cause: 'server_down',
        reason: 'the server did not run',
        from: ((polledAt ?? 0) - START_MS) / 1_000,
        to: 72,
      },
    ]);
  });

  it('a machine that slept', async () => {
    const world = openWatcher({ respond: () => pending });
    world.track(['a']);
    await world.clock.advance(MINUTE_MS);
    world.clock.skip(5 * MINUTE_MS);
    await world.clock.advance(MINUTE_MS);
    expect(delaysIn(world)).toMatchObject([{ cause: 'clock_stepped', from: 60, to: 360 }]);
  });

  it('a full disk', async () => {
    const world = openWatcher({ respond: () => pending });
    world.track(['a']);
    const { ledger } = world;
    const { record, recordPolling } = ledger;
    const full = () => {
      throw new LedgerError('full', 'no space left to write /secret/path');
    };
    Object.assign(ledger, { record: full, recordPolling: full });
    await world.clock.advance(MINUTE_MS);
    Object.assign(ledger, { record, recordPolling });
    await world.clock.advance(MINUTE_MS);
    expect(delaysIn(world)).toMatchObject([
      { cause: 'ledger_unavailable', reason: 'the disk is full' },
    ]);
  });
});

it('the events of an outage name its reason, and the last one its duration', async () => {
  let current: HttpResult = databaseDown;
  const world = openWatcher({ respond: () => current });
  world.track(['a', 'b']);
  await world.clock.advance(MINUTE_MS);
  current = pending;
  await world.clock.advance(MINUTE_MS);
  const reason = 'HTTP 500 Database connection error';
  expect(world.turns).toMatchObject([
    { event: 'upstream.down', reason },
    { event: 'upstream.up', reason, lastedMs: expect.any(Number) },
  ]);
  expect(world.turns[1]?.lastedMs).toBeGreaterThan(55_000);
  const events = world.ledger.events.after(0, 10);
  expect(events.map((event) => 'upstream' in event && event.reason)).toEqual([reason, reason]);
});

describe('the log of delays', () => {
  const never = { state: 'up', pollingUntil: null } as const;
  const delay = (beganAt: number, endedAt: number | null): Delay => ({
    cause: 'paused',
    reason: 'HTTP 429',
    beganAt,
    endedAt,
  });

  it('joins delays of one cause that follow each other within ten seconds', () => {
    const log = new DelayLog();
    log.begin('paused', 'one', { beganAt: 0, endedAt: 1_000 });
    log.begin('key_refused', 'other', { beganAt: 1_500, endedAt: 2_000 });
    log.begin('paused', 'two', { beganAt: 11_000, endedAt: 12_000 });
    log.begin('paused', 'three', { beganAt: 22_001, endedAt: 23_000 });
    expect(log.overlapping(0, 99_000)).toMatchObject([
      { reason: 'two', beganAt: 0, endedAt: 12_000 },
      { reason: 'other' },
      { reason: 'three' },
    ]);
  });

  it('rounds its times: poll times have fractions, which the ledger refuses', () => {
    const log = new DelayLog();
    log.begin('budget_exhausted', 'late', { beganAt: 10.6, endedAt: null });
    log.begin('paused', '429', { beganAt: 10.4, endedAt: 20.4 });
    expect(log.overlapping(0, 99)).toMatchObject([
      { beganAt: 10, endedAt: 20 },
      { beganAt: 11, endedAt: null },
    ]);
  });

  it('shows the newest twenty that overlap a time, and keeps the newest thousand', () => {
    const log = new DelayLog();
    const stored = Array.from({ length: 1_100 }, (_, at) => delay(at * 100, at * 100 + 50));
    log.restore(stored, never, 200_000);
    expect(log.overlapping(0, 200_000).map(({ beganAt }) => beganAt)).toEqual(
      stored.slice(-20).map(({ beganAt }) => beganAt),
    );
    expect(log.overlapping(20_050, 20_101)).toEqual([delay(20_100, 20_150)]);
    expect(log.overlapping(0, 10_000), 'dropped').toEqual([]);
  });

  it('ends the delays of an earlier process with it, except the outage that continues', () => {
    const log = new DelayLog();
    const outage = { ...delay(0, null), cause: 'upstream_down' } as const;
    log.restore([outage, delay(10, null)], { state: 'down', pollingUntil: 40 }, 90);
    expect(log.overlapping(0, 100)).toEqual([outage, delay(10, 40)]);
  });
});

import { describe, expect, it } from 'vitest';
import { LedgerError } from '../../src/ledger/errors.ts';
import { peopleRetryDelayMs, type SendResult } from '../../src/notifications/channels/channel.ts';
import { rawConnection } from '../support/ledger/ledger-file.ts';
import {
  DAY_MS,
  DISPATCHER_START_MS,
  delivered,
  failed,
  numbered,
  openDispatcher,
} from '../support/virtual-time/virtual-dispatcher.ts';

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

/**
 * A receiver that accepts everything, and a ledger that records no result while its disk is full.
 */
function openOnDisk(disk: { isFull: boolean }) {
  return openDispatcher({
    receive: () => delivered,
    store: (store) => ({
      ...store,
      recordResults(...arguments_) {
        if (disk.isFull) throw new LedgerError('full', 'no room');
        store.recordResults(...arguments_);
      },
    }),
  });
}

type World = ReturnType<typeof openDispatcher>;
const url = (index: number) => `https://hangs-${index}.example`;

describe('when an event is sent', () => {
  it('at once, to every subscriber, and only once', async () => {
    const world = openDispatcher({ receive: () => delivered });
    const all = world.webhook('https://a.example');
    const other = world.webhook('https://b.example', { types: ['submission.*'] });
    world.webhook('https://c.example', { types: ['alert.*'] });
    world.finalize('s1');
    await world.clock.advance(0);
    expect(new Map(world.sent.map(({ destination, at }) => [destination, at]))).toEqual(
      new Map([
        [`webhook:${all}`, 0],
        [`webhook:${other}`, 0],
      ]),
    );
    await world.clock.advance(10 * DAY_MS);
    expect(world.sent).toHaveLength(2);
    expect(world.deliveries().map(({ state, attempts }) => [state, attempts])).toEqual([
      ['delivered', 1],
      ['delivered', 1],
    ]);
  });

  it('again after 5 s, 5 min, 30 min, 2 h, 5 h, 10 h, 14 h, 20 h and 24 h, always with the same id; then it is a dead letter', async () => {
    const world = openDispatcher({ receive: () => failed() });
    world.webhook('https://a.example');
    world.finalize('s1');
    await world.clock.advance(4 * DAY_MS);
    const waits = world.sent.map(({ at }, index) => at - (world.sent[index - 1]?.at ?? 0));
    const schedule = [
      0,
      5 * SECOND,
      5 * MINUTE,
      30 * MINUTE,
      ...[2, 5, 10, 14, 20, 24].map((hours) => hours * HOUR),
    ];
    expect(waits).toEqual(schedule);
    expect(new Set(world.sent.flatMap(({ ids }) => ids)).size).toBe(1);
    expect(world.deliveries()).toMatchObject([
      { state: 'dead', deadReason: 'attempts_used_up', attempts: 10, nextAt: null },
    ]);
    const [delivery] = world.deliveries();
    expect(world.ledger.deliveries.get(delivery?.id ?? 0)?.attempts).toHaveLength(10);
  });

  it('to people after 5, 15 and 30 s, 1, 2 and 5 min, then every 15 min for three days', async () => {
    const world = openDispatcher({ receive: () => failed(), retryDelayMs: peopleRetryDelayMs });
    world.webhook('https://a.example');
    world.finalize('s1');
    await world.clock.advance(2 * DAY_MS);
    const waits = world.sent.map(({ at }, index) => at - (world.sent[index - 1]?.at ?? 0));
    expect(waits.slice(0, 7).map((wait) => wait / SECOND)).toEqual([0, 5, 15, 30, 60, 120, 300]);
    expect(new Set(waits.slice(7))).toEqual(new Set([15 * MINUTE]));
    const [delivery] = world.deliveries();
    expect(delivery).toMatchObject({ state: 'waiting' });
    expect(world.ledger.deliveries.get(delivery?.id ?? 0)?.attempts).toHaveLength(100);
    await world.clock.advance(2 * DAY_MS);
    expect(world.deliveries()).toMatchObject([{ deadReason: 'attempts_used_up', attempts: 300 }]);
  });
});

describe('a failing receiver', () => {
  it.each([
    [
      '100 webhooks',
      (world: World): void => {
        for (let index = 0; index < 100; index++) world.webhook(url(index));
      },
    ],
    [
      '500 callbacks to as many servers',
      (world: World): void =>
        world.finalizeAll(
          numbered(500, 'c').map((one, index) => ({ ...one, callbackUrl: url(index) })),
        ),
    ],
  ] as const)('delays no other receiver, even if %s hang', async (_name, add) => {
    const world = openDispatcher({
      receive: (destination, _batch, signal): SendResult | Promise<SendResult> =>
        destination.includes(good)
          ? delivered
          : new Promise((resolve) => signal.addEventListener('abort', () => resolve(failed()))),
    });
    world.ledger.webhooks.ensureCallbacks(() => 'whsec_x', 0);
    add(world);
    const good: string = world.webhook('https://good.example');
    await world.clock.advance(1);
    world.finalizeAll(numbered(50));
    const from = world.clock.now() - DISPATCHER_START_MS;
    await world.clock.advance(20);
    const got = world.sent.filter(({ destination }) => destination.includes(good));
    expect(got).toHaveLength(50);
    expect(got.every(({ at }) => at <= from + 20)).toBe(true);
  });

  it.each([1, 8])(
    'gets one delivery at a time; a working one gets up to %i',
    async (concurrency) => {
      let inFlight = 0;
      let maxInFlight = 0;
      const world = openDispatcher({
        concurrency,
        receive: (_destination, _batch, signal) => {
          inFlight += 1;
          maxInFlight = Math.max(maxInFlight, inFlight);
          return new Promise((resolve) => {
            const end = () => {
              inFlight -= 1;
              resolve(works ? delivered : failed());
            };
            world.clock.after(100, end);
            signal.addEventListener('abort', end);
          });
        },
      });
      let works = true;
      world.webhook('https://a.example');
      world.finalizeAll(numbered(300));
      await world.clock.advance(1_000);
      expect(maxInFlight).toBe(concurrency);
      works = false;
      await world.clock.advance(100);
      maxInFlight = 0;
      await world.clock.advance(300);
      expect(maxInFlight).toBe(1);
      works = true;
      await world.clock.advance(2_000);
      expect(maxInFlight).toBe(concurrency);
    },
  );

  it('that requests a pause gets nothing until its Retry-After has passed', async () => {
    let response = failed({ httpStatus: 429, slowDown: { retryAfterMs: 90 * SECOND } });
    const world = openDispatcher({ receive: () => response });
    world.webhook('https://a.example');
    world.finalizeAll(numbered(5));
    await world.clock.advance(89 * SECOND);
    expect(world.sent).toHaveLength(1);
    response = delivered;
    await world.clock.advance(2 * SECOND);
    expect(new Set(world.sent.flatMap(({ events }) => events)).size).toBe(5);
  });

  it('that requests a pause without Retry-After is retried after 1, 2, 4 s, up to 60 s', async () => {
    const world = openDispatcher({
      receive: () => failed({ httpStatus: 503, slowDown: { retryAfterMs: null } }),
    });
    world.webhook('https://a.example');
    world.finalizeAll(numbered(50));
    await world.clock.advance(4 * MINUTE);
    const waits = world.sent.map(
      ({ at }, index) => (at - (world.sent[index - 1]?.at ?? 0)) / SECOND,
    );
    expect(waits).toEqual([0, 1, 2, 4, 8, 16, 32, 60, 60]);
  });

  it('that responds 410 is disabled at once: waiting deliveries become dead letters, and can be replayed once it is enabled', async () => {
    let response: SendResult = failed({ httpStatus: 410, gone: true });
    const world = openDispatcher({ receive: () => response });
    const id = world.webhook('https://a.example');
    for (const submission of ['s1', 's2', 's3']) world.finalize(submission);
    await world.clock.advance(DAY_MS);
    expect(world.sent).toHaveLength(1);
    world.finalize('s4');
    await world.clock.advance(DAY_MS);
    expect(world.ledger.webhooks.get(id, 0)).toMatchObject({
      enabled: false,
      disabledReason: 'gone',
    });
    expect(world.deliveries().map(({ state, deadReason }) => [state, deadReason])).toEqual([
      ['dead', 'endpoint_gone'],
      ['dead', 'endpoint_disabled'],
      ['dead', 'endpoint_disabled'],
      ['dead', 'endpoint_disabled'],
    ]);
    expect(world.ledger.deliveries.replayDead(`webhook:${id}`, world.clock.now())).toBeUndefined();
    response = delivered;
    world.ledger.webhooks.update(id, { enabled: true }, world.clock.now());
    expect(world.ledger.deliveries.replayDead(`webhook:${id}`, world.clock.now())).toBe(4);
    await world.clock.advance(SECOND);
    expect(world.deliveries().map(({ state }) => state)).toEqual([
      'delivered',
      'delivered',
      'delivered',
      'delivered',
    ]);
  });

  it('is disabled after 5 days of failures only, and not if one delivery succeeded in between', async () => {
    const world = openDispatcher({
      receive: (destination) => (destination.includes(recovering) && works ? delivered : failed()),
    });
    const never = world.webhook('https://never.example');
    const recovering = world.webhook('https://sometimes.example');
    let works = false;
    for (let day = 0; day < 6; day++) {
      works = day === 2;
      world.finalize(`s${day}`);
      await world.clock.advance(DAY_MS);
    }
    expect(world.ledger.webhooks.get(never, 0)).toMatchObject({
      enabled: false,
      disabledReason: 'failing',
    });
    expect(world.ledger.webhooks.get(recovering, 0)).toMatchObject({ enabled: true });
  });
});

describe('every event is delivered', () => {
  it('after a restart, waiting deliveries are sent when they are due, with the same id', async () => {
    let response: SendResult = failed();
    const world = openDispatcher({ receive: () => response });
    world.webhook('https://a.example');
    world.finalize('s1');
    await world.clock.advance(SECOND);
    await world.dispatcher.stop(0);
    await world.clock.advance(MINUTE);
    expect(world.sent).toHaveLength(1);
    response = delivered;
    world.restart();
    await world.clock.advance(SECOND);
    expect(world.sent).toHaveLength(2);
    expect(world.sent[1]?.ids).toEqual(world.sent[0]?.ids);
    expect(world.deliveries()).toMatchObject([{ state: 'delivered', attempts: 2 }]);
  });

  it('an attempt that a stop aborts is not recorded, and is repeated', async () => {
    const world = openDispatcher({
      receive: (_destination, _batch, signal) =>
        new Promise((resolve) =>
          signal.addEventListener('abort', () => resolve(failed({ httpStatus: null }))),
        ),
    });
    world.webhook('https://a.example');
    world.finalize('s1');
    await world.clock.advance(1);
    const stopped = world.dispatcher.stop(50);
    await world.clock.advance(50);
    await stopped;
    expect(world.sent).toHaveLength(1);
    expect(world.deliveries()).toMatchObject([{ state: 'waiting', attempts: 0 }]);
  });

  it('while the ledger cannot be written, a result is kept in memory and the event is not sent twice', async () => {
    const disk = { isFull: false };
    const world = openOnDisk(disk);
    world.webhook('https://a.example');
    disk.isFull = true;
    world.finalize('s1');
    await world.clock.advance(10 * SECOND);
    expect(world.errors.length).toBeGreaterThan(5);
    disk.isFull = false;
    await world.clock.advance(2 * SECOND);
    expect(world.sent).toHaveLength(1);
    expect(world.deliveries()).toMatchObject([{ state: 'delivered', attempts: 1 }]);
  });

  it('while the ledger cannot be written, no further events are sent', async () => {
    const disk = { isFull: true };
    const world = openOnDisk(disk);
    world.webhook('https://a.example');
    world.finalize('first');
    await world.clock.advance(SECOND);
    world.finalizeAll(numbered(1_199));
    await world.clock.advance(10 * SECOND);
    expect(world.sent).toHaveLength(1);
    disk.isFull = false;
    await world.clock.advance(2 * SECOND);
    expect(world.sent).toHaveLength(1_200);
    expect(new Set(world.sent.flatMap(({ events }) => events)).size).toBe(1_200);
  });

  it('a result that cannot be recorded does not affect others', async () => {
    const world = openDispatcher({
      receive: () => delivered,
      store: (store) => ({
        ...store,
        recordResults(results) {
          if (results.some(({ destination }) => destination.includes(failing)))
            throw new TypeError('odd');
          store.recordResults(results);
        },
      }),
    });
    const failing = world.webhook('https://odd.example');
    world.webhook('https://good.example');
    world.finalizeAll(numbered(30));
    await world.clock.advance(10 * SECOND);
    const isSettled = world.deliveries().filter(({ state }) => state === 'delivered');
    expect(isSettled).toHaveLength(30);
    expect(isSettled.some(({ destination }) => destination.includes(failing))).toBe(false);
  });

  it('while the ledger cannot be read, the dispatcher retries', async () => {
    let isBroken = true;
    const world = openDispatcher({
      receive: () => delivered,
      store: (store) => ({
        ...store,
        due(...arguments_) {
          if (isBroken) throw new LedgerError('io', 'broken');
          return store.due(...arguments_);
        },
      }),
    });
    world.webhook('https://a.example');
    world.finalize('s1');
    await world.clock.advance(3 * SECOND);
    expect(world.sent).toEqual([]);
    isBroken = false;
    await world.clock.advance(2 * SECOND);
    expect(world.sent).toHaveLength(1);
  });

  it('a message that a channel cannot format is a dead letter, and no failure of its receiver', async () => {
    const world = openDispatcher({
      receive: (_destination, [outgoing]) => {
        if (outgoing?.json.includes('poison')) throw new RangeError('a fault');
        return delivered;
      },
    });
    const hook = world.webhook('https://a.example');
    for (const id of ['s1', 'poison', 's2']) world.finalize(id);
    await world.clock.advance(SECOND);
    expect(world.deliveries()).toMatchObject([
      { submissionId: 's1', state: 'delivered' },
      { submissionId: 'poison', state: 'dead', deadReason: 'undeliverable' },
      { submissionId: 's2', state: 'delivered' },
    ]);
    expect(world.errors).toHaveLength(1);
    expect(world.ledger.webhooks.get(hook, 0)).toMatchObject({ failingSince: null });
  });

  it('a damaged event is a dead letter, and the others of its message are sent', async () => {
    const world = openDispatcher({ maxBatch: 100, receive: () => delivered });
    world.webhook('https://a.example');
    for (const id of ['s1', 's2', 's3']) world.finalize(id, { metadata: { id } });
    const db = rawConnection(world.ledger.file);
    db.pragma('ignore_check_constraints = ON');
    db.exec("UPDATE submissions SET metadata = '[1]' WHERE submission_id = 's2'");
    await world.clock.advance(SECOND);
    expect(world.sent.map(({ events }) => events)).toEqual([['s1', 's3']]);
    expect(world.deliveries().map(({ state, lastError }) => [state, lastError])).toEqual([
      ['delivered', null],
      ['dead', expect.stringContaining('its metadata cannot be read')],
      ['delivered', null],
    ]);
  });

  it('an alert without a valid time is a dead letter, and its receiver gets the later events', async () => {
    const world = openDispatcher({ receive: () => delivered });
    world.webhook('https://a.example');
    world.finalize('s1');
    const detail = JSON.stringify({ rule: 'stuck', summary: 'one is stuck', since: 'yesterday' });
    const db = rawConnection(world.ledger.file);
    db.exec('DROP TRIGGER events_never_change');
    db.prepare(
      "UPDATE outbox SET type = 'alert.raised', submission = NULL, history_seq = NULL, detail = ?",
    ).run(detail);
    await world.clock.advance(SECOND);
    world.finalize('s2');
    await world.clock.advance(SECOND);
    expect(world.sent.map(({ events }) => events)).toEqual([['s2']]);
    expect(world.deliveries()).toMatchObject([
      { state: 'dead', deadReason: 'undeliverable' },
      { state: 'delivered' },
    ]);
  });

  it('deliveries for a channel that is not configured become dead letters, which can be replayed, and its failures are forgotten', async () => {
    let works = false;
    const world = openDispatcher({ receive: () => (works ? delivered : failed()) });
    const resultsOf = () => world.ledger.receivers.results().get('channel:ops');
    const route = { name: 'ops', subscriptions: [{ types: ['*'], metadata: null }], gatherMs: 0 };
    world.ledger.routes.setChannels([route]);
    world.finalize('s1');
    await world.clock.advance(SECOND);
    expect(resultsOf()).toMatchObject({ failingSince: expect.any(Number) });
    world.configured.ops = false;
    await world.clock.advance(DAY_MS);
    expect(world.deliveries()).toMatchObject([{ state: 'dead', deadReason: 'not_configured' }]);
    expect(resultsOf()).toBeUndefined();
    [world.configured.ops, works] = [true, true];
    expect(world.ledger.deliveries.replayDead('channel:ops', world.clock.now())).toBe(1);
    await world.clock.advance(SECOND);
    expect(world.deliveries()).toMatchObject([{ state: 'delivered' }]);
  });

  it('times in the future, from a clock that was ahead, are corrected at startup', async () => {
    const world = openDispatcher({ receive: () => delivered });
    await world.dispatcher.stop(0);
    world.webhook('https://a.example');
    await world.clock.advance(40 * DAY_MS);
    world.finalize('s1');
    await world.clock.advance(-40 * DAY_MS);
    world.restart();
    await world.clock.advance(1);
    expect(world.sent).toHaveLength(1);
  });
});

describe('a channel that accepts several events at once', () => {
  it('receives the events of some seconds as one message', async () => {
    const world = openDispatcher({ receive: () => delivered, maxBatch: 100 });
    const subscriptions = [{ types: ['*'], metadata: null }];
    world.ledger.routes.setChannels([{ name: 'ops', subscriptions, gatherMs: 5 * SECOND }]);
    for (let index = 0; index < 12; index++) {
      world.finalize(`s${index}`);
      await world.clock.advance(SECOND / 2);
    }
    await world.clock.advance(MINUTE);
    expect(world.sent.map(({ at, events }) => [at, events.length])).toEqual([
      [5 * SECOND, 10],
      [10 * SECOND, 2],
    ]);
  });

  it('receives collected events as one message per type, and a retry as one message', async () => {
    let response: SendResult = failed();
    const world = openDispatcher({ receive: () => response, maxBatch: 100 });
    const types = ['*'];
    world.ledger.routes.setChannels([
      { name: 'ops', subscriptions: [{ types, metadata: null }], gatherMs: 5 * SECOND },
    ]);
    world.finalizeAll(numbered(120));
    await world.clock.advance(4 * SECOND);
    expect(world.sent).toEqual([]);
    await world.clock.advance(1.1 * SECOND);
    expect(world.sent.map(({ events }) => events.length)).toEqual([100, 20]);
    response = delivered;
    await world.clock.advance(6 * SECOND);
    expect(world.sent.slice(2).map(({ events }) => events.length)).toEqual([100, 20]);
    expect(
      world.deliveries().every(({ state, attempts }) => state === 'delivered' && attempts === 2),
    ).toBe(true);
  });
});

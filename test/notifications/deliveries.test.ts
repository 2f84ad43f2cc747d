import { describe, expect, it, vi } from 'vitest';
import { problemOf } from '../support/app/http-calls.ts';
import { acceptedOf, deliveriesOf, useNotifyingApp } from '../support/app/notifying-app.ts';
import { openReceiver } from '../support/servers/receiver.ts';

const app = useNotifyingApp();
const { admin } = app;
const TIME = expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/);
const LONG_AGO = '2020-01-01T00:00:00Z';
const FAR_AWAY = '2100-01-01T00:00:00Z';
const replay = (id: number) => admin('POST', `/v1/deliveries/${id}/replay`);
const replayAll = (destination: string, since = LONG_AGO) =>
  admin('POST', '/v1/deliveries/replay', { destination, since });
const disable = (id: string, enabled = false) => admin('PATCH', `/v1/webhooks/${id}`, { enabled });

/** Creates a webhook with its own receiver, and one delivery per submission. */
async function deliver(ids: string[], response: Parameters<typeof openReceiver>[0] = {}) {
  const receiver = await openReceiver(response);
  const { id } = await app.create({ url: receiver.url, metadata: { of: ids[0] ?? '' } });
  await app.cancelled(ids, { metadata: { of: ids[0] } });
  const deliveries = await app.deliveries(`webhook_id=${id}&limit=1000`);
  expect(deliveries.map(({ submission_id }) => submission_id)).toEqual(ids.toReversed());
  return { receiver, webhook: id, deliveries: deliveries.toReversed() };
}

async function isDelivered(id: number): Promise<void> {
  await vi.waitFor(async () => expect((await app.details(id)).state).toBe('delivered'), {
    timeout: 15_000,
    interval: 5,
  });
}

describe('a delivery', () => {
  it('shows what was sent and the result of every attempt', async () => {
    const evil = '\u001b[2Jbusy\u0000';
    const { webhook, deliveries, receiver } = await deliver(['failing'], {
      status: 500,
      body: evil,
    });
    const [first] = deliveries;
    const shown = await app.tried(first?.id ?? 0);
    const { event, attempts, ...rest } = shown;
    expect(rest).toEqual({
      id: first?.id,
      event_id: event?.id,
      event_type: 'submission.cancelled',
      submission_id: 'failing',
      destination: `webhook:${webhook}`,
      state: 'waiting',
      dead_reason: null,
      attempts_made: 1,
      last_http_status: 500,
      last_error: attempts[0]?.error,
      next_at: TIME,
      created_at: TIME,
      ended_at: null,
    });
    expect(attempts).toEqual([
      {
        at: TIME,
        duration_ms: expect.any(Number),
        http_status: 500,
        error: expect.stringContaining('500'),
        response: evil,
      },
    ]);
    expect(event).toEqual(JSON.parse(receiver.requests[0]?.body ?? ''));
  });

  it('is replayed from any state with the same id and keeps its attempts', async () => {
    const { deliveries, receiver } = await deliver(['again'], [{ status: 500 }, {}]);
    const id = deliveries[0]?.id ?? 0;
    await app.tried(id);
    for (const sent of [2, 3]) {
      expect(acceptedOf(await replay(id))).toMatchObject({
        id,
        state: 'waiting',
        attempts_made: 0,
      });
      await vi.waitFor(async () => expect((await app.details(id)).attempts).toHaveLength(sent), {
        timeout: 15_000,
      });
      expect(await app.details(id)).toMatchObject({
        state: 'delivered',
        attempts_made: 1,
        ended_at: TIME,
      });
    }
    expect(new Set(receiver.requests.map(({ headers }) => headers['webhook-id']))).toEqual(
      new Set([deliveries[0]?.event_id]),
    );
  });

  it('of a disabled or deleted webhook cannot be replayed', async () => {
    const { webhook, deliveries } = await deliver(['refused'], { status: 500 });
    const id = deliveries[0]?.id ?? 0;
    await app.tried(id);
    await disable(webhook);
    expect(await app.details(id)).toMatchObject({
      state: 'dead',
      dead_reason: 'endpoint_disabled',
      next_at: null,
    });
    const disabled = await replay(id);
    expect([disabled.status, problemOf(disabled).detail]).toEqual([
      409,
      expect.stringContaining('disabled'),
    ]);
    await admin('DELETE', `/v1/webhooks/${webhook}`);
    expect(await app.details(id)).toMatchObject({ state: 'discarded', dead_reason: null });
    const discarded = await replay(id);
    expect([discarded.status, problemOf(discarded).detail]).toEqual([
      409,
      expect.stringContaining('was deleted'),
    ]);
  });
});

describe('replaying all', () => {
  it('replays the dead letters of a webhook since a time, once it is enabled', async () => {
    const { webhook, receiver } = await deliver([]);
    await disable(webhook);
    await admin('PATCH', `/v1/webhooks/${webhook}`, { metadata: { of: 'dead' } });
    await app.cancelled(['dead-1', 'dead-2', 'dead-3'], { metadata: { of: 'dead' } });
    expect(await app.deliveries(`webhook_id=${webhook}&state=waiting`)).toEqual([]);
    const destination = `webhook:${webhook}`;
    const refused = await replayAll(destination);
    expect([refused.status, problemOf(refused).detail]).toEqual([
      409,
      expect.stringContaining('disabled'),
    ]);

    await disable(webhook, true);
    expect(JSON.parse((await replayAll(destination, '2100-01-01T00:00:00+02:00')).text)).toEqual({
      replayed: 0,
    });
    const replayed = await replayAll(destination);
    expect([replayed.status, JSON.parse(replayed.text)]).toEqual([202, { replayed: 3 }]);
    for (const { id } of await app.deliveries(`webhook_id=${webhook}`)) await isDelivered(id);
    expect(receiver.requests).toHaveLength(3);
    expect(JSON.parse((await replayAll(destination)).text)).toEqual({ replayed: 0 });
  });

  it('is limited by more conditions, and counted without sending anything', async () => {
    const { webhook, receiver, deliveries } = await deliver(
      ['some-1', 'some-2'],
      [{ status: 500 }, { status: 500 }, {}],
    );
    for (const { id } of deliveries) await app.tried(id);
    await disable(webhook);
    await app.cancelled(['some-3'], { metadata: { of: 'some-1' } });
    await disable(webhook, true);
    const send = async (only: object) => {
      const body = { destination: `webhook:${webhook}`, since: LONG_AGO, ...only };
      const { status, text } = await admin('POST', '/v1/deliveries/replay', body);
      return [status, JSON.parse(text).replayed];
    };
    const entries = async () =>
      JSON.parse((await admin('GET', '/v1/audit?action=deliveries.replay')).text).entries;
    const before = (await entries()).length;
    expect(await send({ dry_run: true })).toEqual([200, 3]);
    expect(await send({ dry_run: true, event_types: ['upstream.*'] })).toEqual([200, 0]);
    expect(await send({ dry_run: true, until: '2020-01-02T00:00:00Z' })).toEqual([200, 0]);
    expect(await send({ dry_run: true, submission_id: 'some-3', event_types: ['*'] })).toEqual([
      200, 1,
    ]);
    expect([receiver.requests.length, (await entries()).length]).toEqual([2, before]);
    expect(await send({ submission_id: 'some-3' })).toEqual([202, 1]);
    expect(await send({ submission_id: 'some-3' })).toEqual([202, 0]);
    expect(await send({ until: FAR_AWAY, event_types: ['submission.*'] })).toEqual([202, 2]);
    expect(await send({ dry_run: true })).toEqual([200, 0]);
    expect((await entries())[0].detail).toBe(
      `2 since ${LONG_AGO}, until ${FAR_AWAY}, types submission.*`,
    );
    await vi.waitFor(() => expect(receiver.requests).toHaveLength(5), { timeout: 15_000 });
    await disable(webhook);
    expect(await send({ dry_run: true })).toEqual([409, undefined]);
  });

  it('accepts the callbacks of one origin', async () => {
    const receiver = await openReceiver();
    await disable('callbacks');
    await app.cancelled(['called-1', 'called-2'], { callback_url: `${receiver.url}/path?a=b` });
    const destination = `callback:${receiver.url}`;
    await disable('callbacks', true);
    expect(JSON.parse((await replayAll(destination)).text)).toEqual({ replayed: 2 });
    for (const { id } of await app.deliveries(`destination=${encodeURIComponent(destination)}`))
      await isDelivered(id);
    expect(receiver.requests.map(({ path }) => path)).toEqual(['/path?a=b', '/path?a=b']);
  });
});

describe('the list', () => {
  it('can be filtered by every field', async () => {
    const { webhook, deliveries } = await deliver(
      ['listed-1', 'listed-2'],
      // The success of the second brings the first forward, which fails again.
      [{ status: 500 }, {}, { status: 500 }],
    );
    const [one, two] = deliveries;
    for (const { id } of deliveries) await app.tried(id);
    const ids = async (query: string) => (await app.deliveries(query)).map(({ id }) => id);
    expect(await ids(`webhook_id=${webhook}`)).toEqual([two?.id, one?.id]);
    expect(await ids(`destination=webhook:${webhook}`)).toEqual([two?.id, one?.id]);
    expect(await ids('submission_id=listed-1')).toEqual([one?.id]);
    expect(await ids(`event_id=${two?.event_id}`)).toEqual([two?.id]);
    const states = await Promise.all(
      ['waiting', 'delivered', 'dead', 'discarded', 'failing'].map((state) =>
        ids(`webhook_id=${webhook}&state=${state}`),
      ),
    );
    expect(states.map(({ length }) => length)).toEqual([1, 1, 0, 0, 1]);
    for (const state of ['waiting,delivered', 'failing,delivered', 'waiting,failing,delivered'])
      expect(await ids(`webhook_id=${webhook}&state=${state}`)).toEqual([two?.id, one?.id]);
    expect(await ids(`webhook_id=${webhook}&event_type=submission.*,upstream.up`)).toEqual([
      two?.id,
      one?.id,
    ]);
    expect(
      await ids(`webhook_id=${webhook}&event_type=submission.failed&event_type=alert.*`),
    ).toEqual([]);
    expect(await ids(`webhook_id=${webhook}&since=${LONG_AGO}&until=${FAR_AWAY}`)).toEqual([
      two?.id,
      one?.id,
    ]);
    expect(await ids(`webhook_id=${webhook}&until=${LONG_AGO}`)).toEqual([]);
    expect(
      await ids(`submission_id=listed-1&since=${LONG_AGO}&event_type=*&state=waiting,delivered`),
    ).toEqual([one?.id]);
    for (const query of [
      `webhook_id=wh_${'0'.repeat(32)}`,
      'submission_id=never',
      'event_id=evt_never',
      'destination=channel:never',
    ])
      expect(await ids(query)).toEqual([]);
  });

  it.each([
    ['newest', ''],
    ['time', `&since=${LONG_AGO}`],
  ])('is paged, newest first, in the order %s', async (order, condition) => {
    const { webhook, deliveries } = await deliver(
      Array.from({ length: 5 }, (_, index) => `page-${order}-${index}`),
    );
    const pages: number[][] = [];
    for (let cursor = ''; ; ) {
      const query = `webhook_id=${webhook}&limit=2${condition}${cursor && `&cursor=${cursor}`}`;
      const page = deliveriesOf(await admin('GET', `/v1/deliveries?${query}`));
      pages.push(page.deliveries.map(({ id }) => id));
      if (page.next_cursor === null) break;
      cursor = page.next_cursor;
    }
    expect(pages.map(({ length }) => length)).toEqual([2, 2, 1]);
    expect(pages.flat()).toEqual(deliveries.map(({ id }) => id).toReversed());
  });
});

describe('refuses', () => {
  it.each([
    '?limit=1001',
    '?cursor=x',
    '?state=failed',
    '?event_type=submission.gone',
    '?since=2h',
    '?since=2026-01-02T03:04:05Z&until=2026-01-02T03:04:05Z',
    `?since=${LONG_AGO}&cursor=${Buffer.from('s1.7').toString('base64url')}`,
    '?webhook_id=a.b',
    '?webhook_id=callbacks&destination=channel:ops',
    '?destination=ops',
    '?destination=callback:https://example.com/path',
    '?submission_id=a%20b',
    '?event_id=4711',
    '/0',
    '/x',
    `/${'9'.repeat(16)}`,
  ])('GET /v1/deliveries%s', async (target) => {
    const response = await admin('GET', `/v1/deliveries${target}`);
    expect(response.status).toBe(400);
    problemOf(response);
  });

  it.each<[string, unknown, string]>([
    ['no destination', { since: LONG_AGO }, '/destination'],
    ['an unknown kind of destination', { destination: 'ops', since: LONG_AGO }, '/destination'],
    [
      'a URL instead of an origin',
      { destination: 'callback:https://a.example/x', since: LONG_AGO },
      '/destination',
    ],
    ['no time', { destination: 'channel:ops' }, '/since'],
    ['a time in words', { destination: 'channel:ops', since: 'yesterday' }, '/since'],
    ['a day', { destination: 'channel:ops', since: LONG_AGO.slice(0, 10) }, '/since'],
    ['an empty range', { destination: 'channel:ops', since: LONG_AGO, until: LONG_AGO }, '/until'],
    [
      'an unknown event type',
      { destination: 'channel:ops', since: LONG_AGO, event_types: ['x'] },
      '/event_types/0',
    ],
    ['an unknown field', { destination: 'channel:ops', since: LONG_AGO, state: 'dead' }, '/'],
  ])('to replay %s', async (_, body, pointer) => {
    const response = await admin('POST', '/v1/deliveries/replay', body);
    expect(response.status).toBe(400);
    expect(problemOf(response).errors?.map((error) => error.pointer)).toContain(pointer);
  });

  it.each([
    ['GET', '/v1/deliveries/999999', undefined],
    ['POST', '/v1/deliveries/999999/replay', undefined],
    ['POST', '/v1/deliveries/replay', { destination: 'webhook:wh_never', since: LONG_AGO }],
  ])('unknown %s %s with 404', async (method, path, body) => {
    const response = await admin(method, path, body);
    expect(response.status).toBe(404);
    problemOf(response);
  });
});

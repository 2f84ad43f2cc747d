import { describe, expect, it } from 'vitest';
import { problemOf } from '../support/app/http-calls.ts';
import {
  acceptedOf,
  deliveriesOf,
  useNotifyingApp,
  webhookDetailsOf,
} from '../support/app/notifying-app.ts';
import { openReceiver } from '../support/servers/receiver.ts';
import { eventually } from '../support/until.ts';

const app = useNotifyingApp();
const { admin } = app;
const TIME = expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/);
const replay = (id: number) => admin('POST', `/v1/deliveries/${id}/replay`);
const replayAll = (destination: string, error?: string) =>
  admin('POST', '/v1/deliveries/replay', { destination, ...(error && { error }) });
const disable = (id: string, enabled = false) => admin('PATCH', `/v1/webhooks/${id}`, { enabled });

/** Creates a webhook with its own receiver, and one delivery per submission. */
async function deliver(ids: string[], response: Parameters<typeof openReceiver>[0] = {}) {
  const receiver = await openReceiver(response);
  const { id } = await app.create({ url: receiver.url, metadata: { of: ids[0] ?? '' } });
  await app.cancelled(ids, { metadata: { of: ids[0] } });
  const deliveries = await app.deliveries(`destination=webhook:${id}&limit=1000`);
  expect(deliveries.map(({ submission_id }) => submission_id)).toEqual(ids.toReversed());
  return { receiver, webhook: id, deliveries: deliveries.toReversed() };
}

async function isDelivered(id: number): Promise<void> {
  await eventually(async () => expect((await app.details(id)).state).toBe('delivered'));
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
      await eventually(async () => expect((await app.details(id)).attempts).toHaveLength(sent));
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
  it('replays the dead letters of a webhook once it is enabled', async () => {
    const { webhook, receiver } = await deliver([]);
    await disable(webhook);
    await admin('PATCH', `/v1/webhooks/${webhook}`, { metadata: { of: 'dead' } });
    await app.cancelled(['dead-1', 'dead-2', 'dead-3'], { metadata: { of: 'dead' } });
    expect(await app.deliveries(`destination=webhook:${webhook}&state=waiting`)).toEqual([]);
    const destination = `webhook:${webhook}`;
    const refused = await replayAll(destination);
    expect([refused.status, problemOf(refused).detail]).toEqual([
      409,
      expect.stringContaining('disabled'),
    ]);

    await disable(webhook, true);
    const replayed = await replayAll(destination);
    expect([replayed.status, JSON.parse(replayed.text)]).toEqual([202, { replayed: 3 }]);
    for (const { id } of await app.deliveries(`destination=webhook:${webhook}`))
      await isDelivered(id);
    expect(receiver.requests).toHaveLength(3);
    expect(JSON.parse((await replayAll(destination)).text)).toEqual({ replayed: 0 });
  });

  it('accepts an error, so that only dead letters of this cause are sent', async () => {
    const { webhook, deliveries } = await deliver(['gone'], [{ status: 410 }, {}]);
    const id = deliveries[0]?.id ?? 0;
    const { last_error: error } = await app.tried(id);
    await app.cancelled(['unsent'], { metadata: { of: 'gone' } });
    await disable(webhook, true);
    const destination = `webhook:${webhook}`;
    expect(JSON.parse((await replayAll(destination, 'another')).text)).toEqual({ replayed: 0 });
    expect(JSON.parse((await replayAll(destination, error ?? '')).text)).toEqual({ replayed: 1 });
    await isDelivered(id);
    expect(await app.deliveries(`destination=${destination}&state=dead`)).toHaveLength(1);
  });

  it('with an error includes deliveries that wait for a retry, which the webhook counts by error', async () => {
    const { webhook, deliveries } = await deliver(['retried-1', 'retried-2'], { status: 400 });
    for (const { id } of deliveries) await app.tried(id);
    const { failures } = webhookDetailsOf(await admin('GET', `/v1/webhooks/${webhook}`));
    const error = 'responded with 400';
    expect(failures).toEqual([{ error, failing: 2, dead: 0 }]);
    const destination = `webhook:${webhook}`;
    expect(JSON.parse((await replayAll(destination, error)).text)).toEqual({ replayed: 2 });
    expect(JSON.parse((await replayAll(destination)).text)).toEqual({ replayed: 0 });
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
    expect(await ids(`destination=webhook:${webhook}`)).toEqual([two?.id, one?.id]);
    expect(await ids('submission_id=listed-1')).toEqual([one?.id]);
    const states = await Promise.all(
      ['waiting', 'delivered', 'dead', 'discarded', 'failing'].map((state) =>
        ids(`destination=webhook:${webhook}&state=${state}`),
      ),
    );
    expect(states.map(({ length }) => length)).toEqual([1, 1, 0, 0, 1]);
    for (const query of ['submission_id=never', 'destination=channel:never'])
      expect(await ids(query)).toEqual([]);
  });

  it('is paged, newest first', async () => {
    const { webhook, deliveries } = await deliver(
      Array.from({ length: 5 }, (_, index) => `page-${index}`),
    );
    const pages: number[][] = [];
    for (let cursor = ''; ; ) {
      const query = `destination=webhook:${webhook}&limit=2${cursor && `&cursor=${cursor}`}`;
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
    '?destination=ops',
    '?destination=callback:https://example.com/path',
    '?submission_id=a%20b',
    '/0',
    '/x',
    `/${'9'.repeat(16)}`,
  ])('GET /v1/deliveries%s', async (target) => {
    const response = await admin('GET', `/v1/deliveries${target}`);
    expect(response.status).toBe(400);
    problemOf(response);
  });

  it.each<[string, unknown, string]>([
    ['no destination', {}, '/destination'],
    ['an unknown kind of destination', { destination: 'ops' }, '/destination'],
    ['a URL instead of an origin', { destination: 'callback:https://a.example/x' }, '/destination'],
    ['an unknown field', { destination: 'channel:ops', since: '2026-01-02T03:04:05Z' }, '/'],
  ])('to replay %s', async (_, body, pointer) => {
    const response = await admin('POST', '/v1/deliveries/replay', body);
    expect(response.status).toBe(400);
    expect(problemOf(response).errors?.map((error) => error.pointer)).toContain(pointer);
  });

  it.each([
    ['GET', '/v1/deliveries/999999', undefined],
    ['POST', '/v1/deliveries/999999/replay', undefined],
    ['POST', '/v1/deliveries/replay', { destination: 'webhook:wh_never' }],
  ])('unknown %s %s with 404', async (method, path, body) => {
    const response = await admin(method, path, body);
    expect(response.status).toBe(404);
    problemOf(response);
  });
});

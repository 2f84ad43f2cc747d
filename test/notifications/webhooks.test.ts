import { Webhook } from 'standardwebhooks';
import { describe, expect, it } from 'vitest';
import { problemOf } from '../support/app/http-calls.ts';
import {
  acceptedOf,
  createdOf,
  rotatedOf,
  useNotifyingApp,
  webhookOf,
  webhooksOf,
} from '../support/app/notifying-app.ts';
import { openReceiver } from '../support/servers/receiver.ts';

const app = useNotifyingApp();
const { admin, create } = app;
const TIME = expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/);
const OWN_SECRET = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
const url = 'https://hooks.example.com/dawatch';
const pathOf = (id: string) => `/v1/webhooks/${id}`;

describe('creating', () => {
  it('requires only an address, and shows the secret once', async () => {
    const { secret, ...webhook } = createdOf(await admin('POST', '/v1/webhooks', { url }));
    expect(webhook).toEqual({
      id: expect.stringMatching(/^wh_[0-9a-f]{32}$/),
      url,
      types: ['submission.*'],
      metadata: null,
      description: '',
      header_names: [],
      enabled: true,
      disabled_reason: null,
      failing_since: null,
      last_day: null,
      created_at: TIME,
      updated_at: TIME,
    });
    expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
    expect(webhookOf(await admin('GET', pathOf(webhook.id)))).toEqual(webhook);
    expect((await admin('GET', '/v1/webhooks?limit=1000')).text).not.toContain('whsec_');
  });
});

it('lists webhooks page by page, newest first', async () => {
  const ids: string[] = [];
  for (let index = 0; index < 5; index += 1) ids.unshift((await create({ url })).id);
  const seen: string[] = [];
  for (let cursor = ''; ; ) {
    const page = webhooksOf(
      await admin('GET', `/v1/webhooks?limit=2${cursor && `&cursor=${cursor}`}`),
    );
    expect(page.webhooks.length).toBeLessThanOrEqual(2);
    seen.push(...page.webhooks.map(({ id }) => id));
    if (page.next_cursor === null) break;
    cursor = page.next_cursor;
  }
  expect(seen.slice(0, 5)).toEqual(ids);
  expect(seen.at(-1)).toBe('callbacks');
  expect(new Set(seen).size).toBe(seen.length);
});

describe('changing', () => {
  it.each([
    [{ url: 'https://other.example.com/' }],
    [{ metadata: null }],
    [{ types: ['upstream.up'], description: '' }],
  ])('%j changes nothing else', async (patch) => {
    const { secret: _, ...before } = await create({
      url,
      metadata: { team: 'billing' },
      description: 'before',
    });
    const after = webhookOf(await admin('PATCH', pathOf(before.id), patch));
    expect(after).toEqual({ ...before, ...patch, updated_at: TIME });
    expect(webhookOf(await admin('GET', pathOf(before.id)))).toEqual(after);
  });
});

describe('further headers', () => {
  const value = 'Bearer the-token-of-the-gateway';

  it('are sent with every request, and shown nowhere: not in responses, deliveries and the audit', async () => {
    const receiver = await openReceiver({ status: 200, body: `you sent ${value}` });
    const headers = { Authorization: value, 'X-Tenant': 'a' };
    const made = await create({ url: receiver.url, headers });
    const { id } = made;
    const shown = [JSON.stringify(made)];
    const responses: unknown[] = [];
    const sent = async () => {
      const { id: delivery } = acceptedOf(await admin('POST', `${pathOf(id)}/test`));
      const { attempts } = await app.tried(delivery);
      responses.push(attempts[0]?.response);
      return receiver.requests.at(-1)?.headers;
    };
    expect(made).toMatchObject({ header_names: ['Authorization', 'X-Tenant'] });
    expect(await sent()).toMatchObject({ authorization: value, 'x-tenant': 'a' });
    shown.push((await admin('PATCH', pathOf(id), { description: 'other' })).text);
    expect(await sent(), 'after another change').toMatchObject({ authorization: value });
    const changed = webhookOf(await admin('PATCH', pathOf(id), { headers: { 'X-Other': 'b' } }));
    expect(changed.header_names).toEqual(['X-Other']);
    const last = await sent();
    // The receiver still returns the old value, which is unknown now.
    expect(responses.slice(0, 2)).toEqual(['you sent [redacted]', 'you sent [redacted]']);
    expect([last?.authorization, last?.['x-other']]).toEqual([undefined, 'b']);
    for (const path of ['/v1/webhooks?limit=1000', pathOf(id), '/v1/audit'])
      shown.push((await admin('GET', path)).text);
    expect(shown.join()).not.toContain('the-token-of-the-gateway');
  });

  it.each([
    [{ 'webhook-id': 'x' }, 'dawatch sets this one itself'],
    [{ Host: 'x' }, 'dawatch sets this one itself'],
    [{ 'User-Agent': 'x' }, 'dawatch sets this one itself'],
    [{ 'a b': 'x' }, 'must be the name of a header'],
    [{ a: `${value}\r\nb: c` }, 'printable ASCII without line breaks'],
    [{ a: '' }, 'printable ASCII'],
    [{ a: 'x', A: 'y' }, 'must not be set twice'],
  ])('%j are refused', async (headers, reason) => {
    const { id } = await create({ url });
    for (const response of [
      await admin('POST', '/v1/webhooks', { url, headers }),
      await admin('PATCH', pathOf(id), { headers }),
    ]) {
      expect([response.status, problemOf(response).detail]).toEqual([
        400,
        expect.stringContaining(reason),
      ]);
      expect(response.text).not.toContain('the-token-of-the-gateway');
    }
  });
});

describe('a secret that is rotated', () => {
  /** Returns the headers of a new test event and its payload as verified with a secret. */
  async function sentAfter(keep_old_s: number) {
    const receiver = await openReceiver();
    const { id, secret: old } = await create({ url: `${receiver.url}/hook` });
    const { secret } = rotatedOf(
      await admin('POST', `${pathOf(id)}/rotate`, { keep_old_s, secret: OWN_SECRET }),
    );
    await app.tried(acceptedOf(await admin('POST', `${pathOf(id)}/test`)).id);
    const { headers, body } = receiver.requests[0] ?? expect.fail('nothing was sent');
    const verify = (key: string | null) =>
      new Webhook(key ?? '').verify(body, headers as Record<string, string>) as object;
    return { old, secret, verify };
  }

  it('signs in addition to the old one for a while, as the standardwebhooks package verifies', async () => {
    const { old, secret, verify } = await sentAfter(3_600);
    expect(secret).toBe(OWN_SECRET);
    expect(verify(secret)).toEqual(verify(old));
  });

  it('signs alone if the old one ends at once', async () => {
    const { old, secret, verify } = await sentAfter(0);
    expect(verify(secret)).toMatchObject({ type: 'webhook.test' });
    expect(() => verify(old)).toThrow();
  });
});

describe('a test event', () => {
  it('is sent to one webhook only, regardless of its filters', async () => {
    const [receiver, other] = [await openReceiver(), await openReceiver()];
    const { id } = await create({
      url: receiver.url,
      types: ['submission.finalized'],
      metadata: { team: 'none' },
    });
    await create({ url: other.url, types: ['*'] });
    const accepted = acceptedOf(await admin('POST', `${pathOf(id)}/test`));
    expect(accepted).toMatchObject({
      event_type: 'webhook.test',
      destination: `webhook:${id}`,
      submission_id: null,
    });
    expect(await app.tried(accepted.id)).toMatchObject({
      state: 'delivered',
      event: { id: accepted.event_id, type: 'webhook.test', data: { webhook_id: id } },
      attempts: [{ http_status: 200, error: null }],
    });
    expect(receiver.requests.map(({ headers }) => headers['webhook-id'])).toEqual([
      accepted.event_id,
    ]);
    expect(other.requests).toEqual([]);
  });

  it('is refused if nothing would be sent', async () => {
    const { id } = await create({ url, enabled: false });
    const refused = await admin('POST', `${pathOf(id)}/test`);
    expect([refused.status, problemOf(refused).detail]).toEqual([
      409,
      expect.stringContaining('is disabled'),
    ]);
  });
});

it('a deleted webhook is gone and receives nothing', async () => {
  const receiver = await openReceiver();
  const { id } = await create({ url: receiver.url });
  const response = await admin('DELETE', pathOf(id));
  expect([response.status, response.text]).toEqual([204, '']);
  await app.cancelled(['after-delete']);
  expect(await app.deliveries(`destination=webhook:${id}`)).toEqual([]);
  for (const [method, path, body] of [
    ['GET', pathOf(id)],
    ['PATCH', pathOf(id), { enabled: true }],
    ['DELETE', pathOf(id)],
    ['POST', `${pathOf(id)}/rotate`, {}],
    ['POST', `${pathOf(id)}/test`],
  ] as const) {
    const gone = await admin(method, path, body);
    expect([gone.status, problemOf(gone).detail]).toEqual([404, `there is no webhook ${id}`]);
  }
  expect(receiver.requests).toEqual([]);
});

describe('the webhook of the callbacks', () => {
  it('always exists, can be disabled, and has its own secrets', async () => {
    expect(webhookOf(await admin('GET', pathOf('callbacks')))).toMatchObject({
      url: null,
      enabled: true,
    });
    expect(webhookOf(await admin('PATCH', pathOf('callbacks'), { enabled: false }))).toMatchObject({
      enabled: false,
    });
    await admin('PATCH', pathOf('callbacks'), { enabled: true });
    expect(rotatedOf(await admin('POST', `${pathOf('callbacks')}/rotate`, {})).secret).toMatch(
      /^whsec_/,
    );
  });

  it.each<[string, string, object | undefined, number, string]>([
    ['PATCH', '', { url }, 400, 'callbacks have no address of their own'],
    ['PATCH', '', { headers: { a: 'b' } }, 400, 'clients set their addresses'],
    ['DELETE', '', undefined, 409, 'only disabled'],
    ['POST', '/test', undefined, 409, 'has no address of its own'],
  ])('%s %s is refused', async (method, path, body, status, detail) => {
    const response = await admin(method, `${pathOf('callbacks')}${path}`, body);
    expect(response.status).toBe(status);
    expect(problemOf(response).detail).toContain(detail);
  });
});

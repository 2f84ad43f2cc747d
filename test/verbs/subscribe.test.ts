import { Webhook } from 'standardwebhooks';
import { describe, expect, it } from 'vitest';
import { call, problemOf } from '../support/app/http-calls.ts';
import { ADMIN_TOKEN } from '../support/app/lookups.ts';
import {
  acceptedOf,
  createdOf,
  rotatedOf,
  useNotifyingApp,
  webhookDetailsOf,
  webhookOf,
  webhooksOf,
} from '../support/app/notifying-app.ts';
import { useApp } from '../support/app/running-app.ts';
import { openReceiver } from '../support/servers/receiver.ts';

const app = useNotifyingApp();
const strict = useApp({ adminToken: ADMIN_TOKEN });
const { admin, create } = app;
const TIME = expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/);
const secretOf = (bytes: number) => `whsec_${Buffer.alloc(bytes, 7).toString('base64')}`;
const OWN_SECRET = secretOf(32);
const url = 'https://hooks.example.com/dawatch';
const pathOf = (id: string) => `/v1/webhooks/${id}`;
const namesOf = (count: number) =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`n${index}`, 1]));

let id = '';
app.prepare(async () => {
  id = (await create({ url })).id;
});

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
    expect(webhookDetailsOf(await admin('GET', pathOf(webhook.id)))).toEqual({
      ...webhook,
      failures: [],
    });
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
    expect(webhookDetailsOf(await admin('GET', pathOf(before.id)))).toMatchObject(after);
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
    expect(webhookDetailsOf(await admin('GET', pathOf('callbacks')))).toMatchObject({
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

/** Without the results of deliveries, which may arrive meanwhile. */
async function stored() {
  const { webhooks } = webhooksOf(await admin('GET', '/v1/webhooks?limit=1000'));
  return webhooks.map(({ failing_since: _since, last_day: _day, ...settings }) => settings);
}

/** Expects a 400 with this pointer and this reason, and no change. */
async function expectRefused(
  method: string,
  path: string,
  body: unknown,
  pointer: string,
  detail: string,
) {
  const before = await stored();
  const response = await admin(method, path, body);
  expect(response.status, response.text).toBe(400);
  const { errors = [] } = problemOf(response);
  expect(errors.map((error) => error.pointer)).toContain(pointer);
  expect(errors.map((error) => error.detail).join()).toContain(detail);
  expect(response.text.length).toBeLessThan(2_000);
  expect(await stored()).toEqual(before);
}

const URLS: [string, unknown, string][] = [
  ['no address', undefined, 'is missing'],
  ['a host', 'hooks.example.com', 'an address that begins with https'],
  ['2,049 characters', `https://example.com/${'x'.repeat(2_029)}`, 'at most 2048 characters'],
  ['a private address', 'https://10.0.0.1/', 'is not allowed'],
];

const FIELDS: [string, Record<string, unknown>, string, string][] = [
  ['no types', { types: [] }, '/types', 'at least one event type'],
  ['an unknown type', { types: ['submission.done'] }, '/types/0', 'done" is not an event type'],
  ['an invalid wildcard', { types: ['sub*'] }, '/types/0', 'is not an event type'],
  ['an empty filter', { metadata: {} }, '/metadata', 'at least one name'],
  [
    'a nested filter',
    { metadata: { team: { a: 1 } } },
    '/metadata/team',
    'a string, a number, true',
  ],
  ['a filter of 17 names', { metadata: namesOf(17) }, '/metadata', 'at most 16 names'],
  ['a filter of 3 kB', { metadata: { a: 'é'.repeat(1_500) } }, '/metadata', '2048 bytes'],
  ['a description of two lines', { description: 'a\nb' }, '/description', 'printable characters'],
];

const SECRETS: [string, unknown, string][] = [
  ['a word', 'secret', 'must begin with whsec_'],
  ['a secret of one megabyte', secretOf(40_000), 'at most 300'],
];

describe('creating refuses', () => {
  it.each(URLS)('an address that is or has %s', (_, address, detail) =>
    expectRefused('POST', '/v1/webhooks', { url: address }, '/url', detail),
  );

  it.each(FIELDS)('%s', (_, fields, pointer, detail) =>
    expectRefused('POST', '/v1/webhooks', { url, ...fields }, pointer || '/', detail),
  );

  it.each(SECRETS)(
    'a secret that is or has %s, without revealing it',
    async (_, secret, detail) => {
      await expectRefused('POST', '/v1/webhooks', { url, secret }, '/secret', detail);
      const { text } = await admin('POST', '/v1/webhooks', { url, secret });
      if (typeof secret === 'string' && secret.length > 8)
        expect(text).not.toContain(secret.slice(6, 40));
    },
  );

  it('a number beyond numbers in a filter', () => {
    const body = `{"url":"${url}","metadata":{"a":1e999}}`;
    return expectRefused('POST', '/v1/webhooks', body, '/metadata/a', 'a string, a number');
  });

  it.each(['http://example.com/', 'https://127.0.0.1/', 'https://localhost/'])(
    '%s, unless configured',
    async (address) => {
      const headers = { 'x-api-key': ADMIN_TOKEN };
      const response = await call(strict.url, '/v1/webhooks', {
        method: 'POST',
        headers,
        body: { url: address },
      });
      expect([response.status, problemOf(response).errors?.[0]?.pointer]).toEqual([400, '/url']);
    },
  );
});

describe('changing refuses', () => {
  const path = () => `/v1/webhooks/${id}`;
  it('an invalid address', () =>
    expectRefused('PATCH', path(), { url: 'ftp://example.com/' }, '/url', 'begins with https'));
  it.each<[string, unknown, string]>([
    ['nothing', {}, 'at least one field'],
    ['a secret', { secret: secretOf(32) }, 'secret'],
    ['the reason for being disabled', { disabled_reason: 'gone' }, 'disabled_reason'],
  ])('%s', (_, patch, detail) => expectRefused('PATCH', path(), patch, '/', detail));
});

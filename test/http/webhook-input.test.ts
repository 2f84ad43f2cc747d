import { describe, expect, it } from 'vitest';
import { call, problemOf } from '../support/app/http-calls.ts';
import { ADMIN_TOKEN } from '../support/app/lookups.ts';
import { useNotifyingApp, webhooksOf } from '../support/app/notifying-app.ts';
import { useApp } from '../support/app/running-app.ts';

const app = useNotifyingApp();
const strict = useApp({ adminToken: ADMIN_TOKEN });
const { admin } = app;
const url = 'https://hooks.example.com/dawatch';
const secretOf = (bytes: number) => `whsec_${Buffer.alloc(bytes, 7).toString('base64')}`;
const namesOf = (count: number) =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`n${index}`, 1]));

let id = '';
let before: unknown;
app.prepare(async () => {
  id = (await app.create({ url })).id;
  before = webhooksOf(await admin('GET', '/v1/webhooks'));
});

/** Expects a 400 with this pointer and this reason, and no change. */
async function expectRefused(
  method: string,
  path: string,
  body: unknown,
  pointer: string,
  detail: string,
) {
  const response = await admin(method, path, body);
  expect(response.status, response.text).toBe(400);
  const { errors = [] } = problemOf(response);
  expect(errors.map((error) => error.pointer)).toContain(pointer);
  expect(errors.map((error) => error.detail).join()).toContain(detail);
  expect(response.text.length).toBeLessThan(2_000);
  expect(webhooksOf(await admin('GET', '/v1/webhooks'))).toEqual(before);
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

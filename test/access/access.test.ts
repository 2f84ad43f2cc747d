import { expect, it } from 'vitest';
import { call, post } from '../support/app/http-calls.ts';
import { API_KEY, useApp } from '../support/app/running-app.ts';

const app = useApp();
const none = { 'x-api-key': [] };

it.each<[string, Record<string, string | string[]>]>([
  ['another key', { 'x-api-key': 'a-service-key-for-tesTs' }],
  ['the beginning of the key', { 'x-api-key': API_KEY.slice(0, -1) }],
  ['the key with additional characters', { 'x-api-key': `${API_KEY}x` }],
  ['the key twice', { 'x-api-key': [API_KEY, API_KEY] }],
  ['an empty key', { 'x-api-key': '' }],
  ['another bearer', { ...none, authorization: 'Bearer nobody' }],
  [
    'the key as a password',
    { ...none, authorization: `Basic ${Buffer.from(`:${API_KEY}`).toString('base64')}` },
  ],
  ['the key without a scheme', { ...none, authorization: API_KEY }],
  ['a bearer without a token', { ...none, authorization: 'Bearer ' }],
  ['the key in a cookie', { ...none, cookie: `x-api-key=${API_KEY}` }],
])('does not accept %s', async (_, headers) => {
  expect((await call(app.url, '/v1/submissions', { headers })).status).toBe(401);
  expect((await post(app.url, { submission_id: 'smuggled' }, headers)).status).toBe(401);
  expect((await call(app.url, '/v1/submissions/smuggled')).status).toBe(404);
});

it('does not accept the key in the query', async () => {
  expect(
    (await call(app.url, `/v1/submissions?x-api-key=${API_KEY}`, { headers: none })).status,
  ).toBe(401);
});

it.each(['/livez', '/readyz', '/openapi.json'])('shows %s to everyone', async (path) => {
  expect((await call(app.url, path, { headers: none })).status).toBe(200);
});

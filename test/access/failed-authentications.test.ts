import { describe, expect, it } from 'vitest';
import { AUTHENTICATION_FAILURES } from '../../src/access/authentication.ts';
import { makeToken } from '../../src/access/credentials-store.ts';
import { call } from '../support/app/http-calls.ts';
import { openLookups, userPath } from '../support/app/lookups.ts';
import { reading, scrape } from '../support/app/metrics.ts';

type Case = [reason: string, path: string, headers: Record<string, string | string[]>];

const TOKEN = makeToken('admin');
const CASES: Case[] = [
  ['absent', '/v1/submissions', {}],
  ['malformed', '/v1/submissions', { 'x-api-key': ['a-secret', 'a-secret'] }],
  ['malformed', '/v1/audit', { authorization: 'Bearer a-secret a-secret' }],
  ['unknown', '/v1/submissions', { 'x-api-key': 'a-secret-of-nobody' }],
  ['unknown', '/v1/whoami', { authorization: `Bearer ${TOKEN}` }],
  ['unknown', '/docs', { 'x-api-key': 'a-secret-of-nobody' }],
  // The upstream refuses these, which are forwarded.
  ['refused', userPath(), { authorization: 'Bearer a-secret-of-nobody' }],
  ['refused', userPath(), { authorization: `Bearer ${TOKEN}` }],
];

const linesOf = (logs: string) =>
  logs
    .split('\n')
    .filter((line) => line.includes('"auth.failed"'))
    .map((line) => JSON.parse(line) as Record<string, unknown>);
const countsOf = async (url: string) => {
  const { text } = await scrape(url);
  const name = 'dawatch_authentication_failures_total';
  return Object.fromEntries(
    AUTHENTICATION_FAILURES.map((reason) => [reason, reading(text, name, { reason })]),
  );
};
const NONE = { absent: 0, malformed: 0, unknown: 0, refused: 0, cross_origin: 0, oidc: 0 };

describe('a failed authentication is counted and logged with address and request id, without the credential:', () => {
  it.each(CASES)('%s at %s with %o', async (reason, path, headers) => {
    const lookups = await openLookups({
      ...(reason === 'refused' && { bearer: null }),
      trustedProxies: ['loopback'],
    });
    const shown = {
      'x-api-key': [],
      'x-forwarded-for': '192.0.2.1',
      'x-request-id': 'the-request',
      ...headers,
    };
    const { status } = await call(lookups.url, path, { headers: shown });
    expect(status).toBe(path === '/docs' ? 200 : 401);
    expect(await countsOf(lookups.url)).toEqual({ ...NONE, [reason]: 1 });
    expect(linesOf(lookups.logs())).toMatchObject([
      {
        level: reason === 'absent' ? 'debug' : 'warn',
        reason,
        address: '192.0.2.1',
        request_id: 'the-request',
        method: 'GET',
        route: path.split('?')[0],
      },
    ]);
    expect(lookups.logs()).not.toMatch(new RegExp(`a-secret|${TOKEN}`));
  });
});

it('success, a wrong role and open routes are no failed authentication', async () => {
  const lookups = await openLookups();
  for (const query of ['', '?limit=x', '/never'])
    await call(lookups.url, `/v1/submissions${query}`);
  await call(lookups.url, '/v1/audit');
  for (const path of ['/livez', '/readyz', '/docs', '/nowhere'])
    await call(lookups.url, path, { headers: { 'x-api-key': [] } });
  expect(await countsOf(lookups.url)).toEqual(NONE);
  expect(linesOf(lookups.logs())).toEqual([]);
});

it('the log of a request and of a lookup has the address of the client', async () => {
  const lookups = await openLookups({ trustedProxies: ['loopback'] });
  const headers = {
    authorization: `Bearer ${lookups.tokens.user}`,
    'x-forwarded-for': '192.0.2.1',
  };
  await call(lookups.url, userPath(), { headers });
  await expect.poll(() => lookups.logs()).toContain('"http.responded"');
  for (const event of ['users.lookup', 'http.responded']) {
    const lines = lookups.logs().split('\n');
    const line = lines.find((one) => one.includes(`"event":"${event}"`)) ?? '{}';
    expect(JSON.parse(line)).toMatchObject({ event, address: '192.0.2.1' });
  }
});

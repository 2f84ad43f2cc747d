import { describe, expect, it } from 'vitest';
import { AUTHENTICATION_FAILURES } from '../../src/access/authentication.ts';
import { makeToken } from '../../src/access/credentials-store.ts';
import { call } from '../support/app/http-calls.ts';
import { openLookups, userPath } from '../support/app/lookups.ts';
import { reading, scrape } from '../support/app/metrics.ts';

type Case = [
  reason: string,
  request: {
    path: string;
    status: number;
    headers: Record<string, string | string[]>;
    upstream?: 'forwards';
  },
];

const TOKEN = makeToken('admin');
const CASES: Case[] = [
  ['absent', { path: '/v1/submissions', status: 401, headers: {} }],
  [
    'malformed',
    { path: '/v1/submissions', status: 401, headers: { 'x-api-key': ['a-secret', 'a-secret'] } },
  ],
  [
    'malformed',
    { path: '/v1/audit', status: 401, headers: { authorization: 'Bearer a-secret a-secret' } },
  ],
  [
    'unknown',
    { path: '/v1/submissions', status: 401, headers: { 'x-api-key': 'a-secret-of-nobody' } },
  ],
  ['unknown', { path: '/v1/whoami', status: 401, headers: { authorization: `Bearer ${TOKEN}` } }],
  ['unknown', { path: '/docs', status: 200, headers: { 'x-api-key': 'a-secret-of-nobody' } }],
  [
    'refused',
    {
      path: userPath(),
      status: 401,
      headers: { authorization: 'Bearer a-secret-of-nobody' },
      upstream: 'forwards',
    },
  ],
  [
    'refused',
    {
      path: userPath(),
      status: 401,
      headers: { authorization: `Bearer ${TOKEN}` },
      upstream: 'forwards',
    },
  ],
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
const NONE = {
  absent: 0,
  malformed: 0,
  unknown: 0,
  refused: 0,
  cross_origin: 0,
  oidc: 0,
};

describe('a failed authentication is counted and logged with address and request id, without the credential:', () => {
  it.each(CASES)('%s at %o', async (reason, { path, status, headers, upstream }) => {
    const lookups = await openLookups({
      ...(upstream && { bearer: null }),
      trustedProxies: ['loopback'],
    });
    const shown = {
      'x-api-key': [],
      'x-forwarded-for': '192.0.2.1',
      'x-request-id': 'the-request',
      ...headers,
    };
    expect((await call(lookups.url, path, { headers: shown })).status).toBe(status);
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
  for (const path of [
    '/v1/submissions',
    '/v1/audit',
    '/v1/submissions?limit=x',
    '/v1/submissions/never',
  ])
    await call(lookups.url, path);
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

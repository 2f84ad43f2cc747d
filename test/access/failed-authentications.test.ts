import { expect, it } from 'vitest';
import { AUTHENTICATION_FAILURES } from '../../src/access/authentication.ts';
import { makeToken } from '../../src/access/credentials-store.ts';
import { call } from '../support/app/http-calls.ts';
import { useLookups, userPath } from '../support/app/lookups.ts';
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

const lookups = useLookups({ trustedProxies: ['loopback'] });
const forwarding = useLookups({ bearer: null, trustedProxies: ['loopback'] });

it('a failed authentication is counted and logged with address and request id, without the credential', async () => {
  const { absent = 0, malformed = 0, unknown = 0 } = await countsOf(lookups().url);
  for (const [index, [reason, path, headers]] of CASES.entries()) {
    const { url, logs } = (reason === 'refused' ? forwarding : lookups)();
    const sent = {
      'x-api-key': [],
      'x-forwarded-for': '192.0.2.1',
      'x-request-id': `request-${index}`,
      ...headers,
    };
    const { status } = await call(url, path, { headers: sent });
    expect(status, path).toBe(path === '/docs' ? 200 : 401);
    expect(linesOf(logs()).at(-1)).toMatchObject({
      level: reason === 'absent' ? 'debug' : 'warn',
      reason,
      address: '192.0.2.1',
      request_id: `request-${index}`,
      method: 'GET',
      route: path.split('?')[0],
    });
    expect(logs()).not.toMatch(new RegExp(`a-secret|${TOKEN}`));
  }
  expect(await countsOf(lookups().url)).toMatchObject({
    ...{ absent: absent + 1, malformed: malformed + 2, unknown: unknown + 3 },
  });
  expect(await countsOf(forwarding().url)).toMatchObject({ refused: 2 });
});

it('success, a wrong role and open routes are no failed authentication', async () => {
  const { url, logs } = lookups();
  const [before, linesBefore] = [await countsOf(url), linesOf(logs()).length];
  for (const query of ['', '?limit=x', '/never']) await call(url, `/v1/submissions${query}`);
  await call(url, '/v1/audit');
  for (const path of ['/livez', '/readyz', '/docs', '/nowhere'])
    await call(url, path, { headers: { 'x-api-key': [] } });
  expect(await countsOf(url)).toEqual(before);
  expect(linesOf(logs())).toHaveLength(linesBefore);
});

it('the log of a request and of a lookup has the address of the client', async () => {
  const { url, tokens, logs } = lookups();
  const headers = {
    authorization: `Bearer ${tokens.user}`,
    'x-forwarded-for': '192.0.2.7',
    'x-request-id': 'a-lookup',
  };
  await call(url, userPath(), { headers });
  const lines = () =>
    logs()
      .split('\n')
      .filter((line) => line.includes('"a-lookup"'));
  await expect.poll(() => lines().join()).toContain('"http.responded"');
  for (const event of ['users.lookup', 'http.responded']) {
    const line = lines().find((one) => one.includes(`"event":"${event}"`)) ?? '{}';
    expect(JSON.parse(line)).toMatchObject({ event, address: '192.0.2.7' });
  }
});

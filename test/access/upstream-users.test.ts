import type { IncomingHttpHeaders } from 'node:http';
import { text } from 'node:stream/consumers';
import { describe, expect, it, onTestFinished } from 'vitest';
import { type Users, usersOf } from '../../src/access/users.ts';
import { UpstreamClient } from '../../src/polling/upstreams.ts';
import { serve } from '../support/servers/upstream-server.ts';
import { HeldClock } from '../support/virtual-time/virtual-clock.ts';

const USER = { name: 'Ada & Söhne', email: 'ada+1@example.com' };
const RECORD = { id: '1', ...USER, app_id: 7, assigned_wallet: '0xab' };

function usersAt(url: string, parameters: 'query' | 'body' = 'query'): Users {
  const client = new UpstreamClient({
    url,
    version: '1.2.3',
    timeoutMs: 10_000,
    clock: new HeldClock(1_000),
  });
  onTestFinished(() => client.close());
  const paths = { get_path: '/users/get_user', list_path: '/admin/get_all_users' };
  return usersOf({ upstreams: { default: { users: { ...paths, parameters } } } }, client);
}

/** Always returns the same response; records the requests. */
async function upstream(body: unknown, status = 200, headers: Record<string, string> = {}) {
  const requests: {
    url: string | undefined;
    method: string | undefined;
    headers: IncomingHttpHeaders;
    body: string;
  }[] = [];
  const { url } = await serve(async (request, response) => {
    requests.push({
      url: request.url,
      method: request.method,
      headers: request.headers,
      body: await text(request),
    });
    response.writeHead(status, headers).end(typeof body === 'string' ? body : JSON.stringify(body));
  });
  return { url, requests };
}

describe('a request', () => {
  it('has its parameters in a JSON body if the upstream requires that', async () => {
    const { url, requests } = await upstream(RECORD);
    const users = usersAt(url, 'body');
    expect(await users.getUser(USER)).toMatchObject({ kind: 'found' });
    await users.listUsers(7);
    expect(requests.map((one) => [one.method, one.url, JSON.parse(one.body)])).toEqual([
      ['GET', '/users/get_user', USER],
      ['GET', '/admin/get_all_users', { limit: 7 }],
    ]);
    for (const { headers } of requests) expect(headers['content-type']).toBe('application/json');
  });

  const PROXY = { kind: 'unavailable', reason: 'http_status' };
  const ABSENT = { kind: 'not_found' };
  const PAGE = '<html><h1>Forbidden</h1></html>';
  it.each<[string, number, unknown, object]>([
    ['the record', 200, RECORD, { kind: 'found', value: RECORD }],
    ['an unknown user, in text', 404, 'User not found', ABSENT],
    ['an unknown user, in JSON', 404, { error: 'no such user' }, ABSENT],
    ['an unknown user, as an error', 500, { state: 'ERROR', error: 'Record not found' }, ABSENT],
    ['an unknown user, in another wording', 404, { detail: 'User not found' }, ABSENT],
    ['a page of a proxy', 404, '<html>Not Found</html>', PROXY],
    ['a router (Go)', 404, '404 page not found\n', PROXY],
    ['a router (Fastify)', 404, { message: 'Route GET:/a not found', error: 'Not Found' }, PROXY],
    ['another fault', 500, { error: 'Database connection error' }, { kind: 'unavailable' }],
    ['a refusal', 401, 'Unauthorized', { kind: 'unauthorized' }],
    ['a refused request', 403, 'Forbidden', { kind: 'forbidden' }],
    ['the 401 of a proxy or firewall', 401, PAGE, { ...PROXY, detail: 'HTTP 401' }],
    ['the 403 of a proxy or firewall', 403, PAGE, { ...PROXY, detail: 'HTTP 403' }],
    ['a complaint', 400, 'missing field', { ...PROXY, detail: 'HTTP 400' }],
  ])('%s (%i)', async (_, status, body, expected) => {
    const { url } = await upstream(body, status);
    expect(await usersAt(url).getUser(USER)).toMatchObject(expected);
  });
});

it.each([
  [404, 'Not Found'],
  [500, { state: 'ERROR', error: 'Record not found' }],
  [200, { state: 'ERROR', error: 'Record not found' }],
])('a listing is never "not found": %i %j', async (status, body) => {
  const { url } = await upstream(body, status);
  expect(await usersAt(url).listUsers(5)).toMatchObject({ kind: 'unavailable' });
});

it('a redirect is not followed, so that no other server receives the token', async () => {
  const other = await upstream(RECORD);
  const { url } = await upstream('', 307, { location: `${other.url}/users/get_user` });
  expect(await usersAt(url).getUser(USER, 'Bearer mine')).toMatchObject({
    reason: 'http_status',
    detail: 'HTTP 307',
  });
  expect(other.requests).toEqual([]);
});

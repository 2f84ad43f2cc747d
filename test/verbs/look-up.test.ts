import { describe, expect, it } from 'vitest';
import { problemOf } from '../support/app/http-calls.ts';
import { openLookups, SECOND, useLookups, userPath } from '../support/app/lookups.ts';
import { serve } from '../support/servers/upstream-server.ts';

const RECORD = {
  id: expect.any(String),
  app_id: 101,
  assigned_wallet: expect.stringMatching(/^0x[0-9a-f]+$/),
  ...SECOND,
};
const JSON_TYPE = 'application/json; charset=utf-8';

const shared = useLookups({ limits: { requests_per_minute: 0 } });
const badRequest = async (path: string) => {
  const response = await shared().get(path, shared().tokens.admin);
  expect(response.status, path).toBe(400);
  return problemOf(response);
};

describe('one user is the plain record', () => {
  it('in both spellings', async () => {
    for (const spelling of ['/users/get_user', '/user/get_user']) {
      const response = await shared().get(userPath(SECOND, spelling), shared().tokens.user);
      expect(response).toMatchObject({
        status: 200,
        headers: { 'content-type': JSON_TYPE, 'cache-control': 'no-store' },
      });
      expect(JSON.parse(response.text)).toEqual(RECORD);
    }
  });

  it('from the configured path', async () => {
    const users = {
      get_path: '/v1/user/get_user',
      list_path: '/v1/admin/get_all_users',
      parameters: 'query' as const,
    };
    const lookups = await openLookups({ upstream: { users } });
    expect(JSON.parse((await lookups.get(userPath(), lookups.tokens.user)).text)).toEqual(RECORD);
    const list = await lookups.get('/admin/get_all_users?limit=2', lookups.tokens.admin);
    expect(JSON.parse(list.text)[1]).toEqual(RECORD);
  });

  it('with every field and the digits of a large number unchanged', async () => {
    const { url } = await serve((_request, response) =>
      response.end(
        '{"id":"1","app_id":123456789012345678901234567890,"__proto__":{"a":1},"none":null}',
      ),
    );
    const lookups = await openLookups({ upstreamUrl: url });
    const httpResponse = await lookups.get(userPath(), lookups.tokens.user);
    expect(httpResponse.text).toBe(
      '{"id":"1","app_id":"123456789012345678901234567890","__proto__":{"a":1},"none":null}',
    );
  });

  it("is the token's owner if the upstream ignores the parameters, as the audit records", async () => {
    const owner = { name: 'User 25', email: 'user25@example.com' };
    const { url } = await serve((_request, response) => response.end(JSON.stringify(owner)));
    const lookups = await openLookups({ upstreamUrl: url });
    const response = await lookups.get(userPath(), lookups.tokens.user);
    expect(JSON.parse(response.text)).toEqual(owner);
    expect(lookups.audit()).toMatchObject([
      { result: 'found', detail: 'another user was returned' },
    ]);
  });
});

it('an unknown user is 404', async () => {
  const path = userPath({ name: 'Nobody', email: SECOND.email });
  const problem = problemOf(await shared().get(path, shared().tokens.user));
  const detail = 'no user has this name and this e-mail address';
  expect(problem).toMatchObject({ status: 404, detail, error: detail });
});

describe('the listing is the plain array', () => {
  it('of records', async () => {
    const response = await shared().get('/admin/get_all_users?limit=3', shared().tokens.admin);
    expect(response).toMatchObject({
      status: 200,
      headers: { 'content-type': JSON_TYPE, 'cache-control': 'no-store' },
    });
    const users = JSON.parse(response.text);
    expect(users).toHaveLength(3);
    expect(users[1]).toEqual(RECORD);
  });

  it('truncated to the limit if the upstream sends more', async () => {
    const many = Array.from({ length: 50 }, (_, index) => ({ id: String(index) }));
    const { url } = await serve((_request, response) => response.end(JSON.stringify(many)));
    const lookups = await openLookups({ upstreamUrl: url });
    const httpResponse = await lookups.get('/admin/get_all_users?limit=7', lookups.tokens.admin);
    expect(JSON.parse(httpResponse.text)).toEqual(many.slice(0, 7));
  });
});

it.each(['', '?limit=0', '?limit=1001', '?limit=1&offset=2'])(
  'a limit must be a whole number from 1 to 1000: %j',
  async (query) => {
    await badRequest(`/admin/get_all_users${query}`);
  },
);

describe('a lookup of one user refuses', () => {
  const good = new URLSearchParams(SECOND);
  it.each<[string, string]>([
    ['nothing', ''],
    ['no name', 'email=user2%40example.com'],
    ['an empty name', 'name=&email=user2%40example.com'],
    ['a name above the length limit', `name=${'x'.repeat(201)}&email=user2%40example.com`],
    ['a name of two lines', 'name=User%0A2&email=user2%40example.com'],
    ['an additional unknown parameter', `${good}&id=1`],
  ])('%s', async (_, query) => {
    await badRequest(`/users/get_user?${query}`);
  });

  it.each([
    'plain',
    'a@b@example.com',
    'a b@example.com',
    'a@example.com\r\nx: y',
    'a@example..com',
    'a@example.com,b@example.com',
    `${'x'.repeat(243)}@example.com`,
  ])('the address %j', async (email) => {
    const { errors } = await badRequest(userPath({ name: 'User 2', email }));
    expect(errors).toMatchObject([{ pointer: 'email' }]);
  });
});

it('forwards exactly the given name and address', async () => {
  const { url, requests } = await serve((_request, response) => response.end('{"id":"1"}'));
  const own = await openLookups({ upstreamUrl: url });
  const requested = { name: "O'Neil & Söhne 💩 a=b?c#d%2F +", email: "o'neil+x=1&y@example.com" };
  expect((await own.get(userPath(requested), own.tokens.user)).status).toBe(200);
  expect(Object.fromEntries(new URL(requests[0]?.url ?? '', url).searchParams)).toEqual(requested);
});

it('neither audits nor forwards an invalid request', async () => {
  const before = shared().audit();
  await badRequest('/admin/get_all_users?limit=0');
  await badRequest('/users/get_user?name=a');
  expect(shared().audit()).toEqual(before);
});

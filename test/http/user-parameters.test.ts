import { describe, expect, it } from 'vitest';
import { problemOf } from '../support/app/http-calls.ts';
import { openLookups, SECOND, useLookups, userPath } from '../support/app/lookups.ts';
import { serve } from '../support/servers/upstream-server.ts';

const lookups = useLookups({ limits: { requests_per_minute: 0 } });
const badRequest = async (path: string) => {
  const response = await lookups().get(path, lookups().tokens.admin);
  expect(response.status, path).toBe(400);
  return problemOf(response);
};

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
  await badRequest('/admin/get_all_users?limit=0');
  await badRequest('/users/get_user?name=a');
  expect(lookups().audit()).toEqual([]);
});

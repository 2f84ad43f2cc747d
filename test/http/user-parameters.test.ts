import fc from 'fast-check';
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

describe('a limit must be a whole number from 1 to 1000, once:', () => {
  it.each([
    '',
    '?',
    '?limit',
    '?limit=',
    '?limit=0',
    '?limit=000',
    '?limit=-1',
    '?limit=%2B1',
    '?limit=1e3',
    '?limit=10.5',
    '?limit=10.0',
    '?limit=0x10',
    '?limit=1_0',
    '?limit=NaN',
    '?limit=Infinity',
    '?limit=null',
    '?limit=%2010',
    '?limit=10%00',
    '?limit=١٠',
    '?limit=1001',
    '?limit=999999999999999999999999',
    '?limit=1&limit=2',
    '?limit=1&limit=1',
    '?limit[]=1',
    '?limit=1&offset=2',
    '?Limit=1',
  ])('%j', async (query) => {
    await badRequest(`/admin/get_all_users${encodeURI(query).replaceAll('%25', '%')}`);
  });
});

describe.each(['/users/get_user', '/user/get_user'])('%s refuses', (spelling) => {
  const good = new URLSearchParams(SECOND);
  it.each<[string, string]>([
    ['nothing', ''],
    ['no name', 'email=user2%40example.com'],
    ['no address', 'name=User%202'],
    ['an empty name', 'name=&email=user2%40example.com'],
    ['a name above the length limit', `name=${'x'.repeat(201)}&email=user2%40example.com`],
    ['a name of two lines', 'name=User%0A2&email=user2%40example.com'],
    ['a name with NUL', 'name=User%002&email=user2%40example.com'],
    ['a C1 control character in the name', 'name=User%C2%852&email=user2%40example.com'],
    ['two names', `name=User&${good}`],
    ['two addresses', `email=user2%40example.com&${good}`],
    ['an additional unknown parameter', `${good}&id=1`],
    ['an additional parameter __proto__', `${good}&__proto__=1`],
  ])('%s', async (_, query) => {
    await badRequest(`${spelling}?${query}`);
  });

  it.each([
    'plain',
    '@example.com',
    'a@',
    'a@b@example.com',
    'a b@example.com',
    'a@exa mple.com',
    'a@example.com\r\nx: y',
    'a@-example.com',
    'a@example..com',
    '<a@example.com>',
    'a@example.com,b@example.com',
    `${'x'.repeat(243)}@example.com`,
    ' a@example.com',
    'a\0@example.com',
  ])('the address %j', async (email) => {
    const { errors } = await badRequest(userPath({ name: 'User 2', email }, spelling));
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

it('never fails on a query of any sort', async () => {
  const name = fc.constantFrom('name', 'email', 'limit', '__proto__', 'constructor');
  const value = fc.oneof(
    fc.string(),
    fc.string({ unit: 'binary' }),
    fc.constantFrom('1', 'a@b', 'User 2'),
  );
  const query = fc.array(fc.tuple(name, value), { maxLength: 4 });
  const path = fc.constantFrom('/users/get_user', '/user/get_user', '/admin/get_all_users');
  await fc.assert(
    fc.asyncProperty(path, query, async (path, pairs) => {
      const text = pairs
        .map(([key, value]) => `${key}=${encodeURIComponent(value.toWellFormed())}`)
        .join('&');
      const response = await lookups().get(`${path}?${text}`, lookups().tokens.admin);
      expect([200, 400, 404]).toContain(response.status);
    }),
    { numRuns: 300 },
  );
});

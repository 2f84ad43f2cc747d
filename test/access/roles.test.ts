import { Agent } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ROLES } from '../../src/access/access.ts';
import { type Access, MATRIX } from '../support/app/access-matrix.ts';
import { call, type HttpResponse } from '../support/app/http-calls.ts';
import { useLookups } from '../support/app/lookups.ts';
import { fetchDocument } from '../support/app/openapi-document.ts';

const lookups = useLookups();
/** One connection, because opening one per request takes a fifth of the CPU time. */
const agent = new Agent({ keepAlive: true, maxSockets: 1 });
afterAll(() => agent.destroy());
const send = (
  endpoint: string,
  headers: Record<string, string | string[]>,
): Promise<HttpResponse> => {
  const [method = '', path = ''] = endpoint.split(' ');
  const { query = '', body } = MATRIX[endpoint] ?? {};
  const target = `${path.replace(/\{\w+\}/, 'of-the-matrix')}${query}`;
  return call(lookups().url, target, {
    method,
    agent,
    headers: { 'x-api-key': '', ...headers },
    ...(body !== undefined && { body }),
  });
};
const asBearer = (secret: string) => ({ authorization: `Bearer ${secret}` });
const asKey = (secret: string) => ({ 'x-api-key': secret });
const both = (secret: string): Record<string, string>[] => [asKey(secret), asBearer(secret)];

let documented: string[] = [];
beforeAll(async () => {
  documented = [...(await fetchDocument(lookups().url)).operations.keys()];
});

it('every endpoint that is served has its row', () => {
  expect(documented.toSorted()).toEqual(Object.keys(MATRIX).toSorted());
});

/** Expects exactly the credentials with a permitted role to have access. */
async function expectAccess(
  endpoint: string,
  access: Access,
  headersOf: (secret: string) => Record<string, string>,
) {
  for (const role of ROLES) {
    const { status } = await send(endpoint, headersOf(lookups().tokens[role]));
    if (access === 'open' || access.includes(role)) expect([401, 403], role).not.toContain(status);
    else expect(status, role).toBe(403);
    expect(status, role).toBeLessThan(500);
  }
}

describe.each(Object.entries(MATRIX))('%s', (endpoint, { access }) => {
  it('permits exactly its roles, and reads a credential in either header', async () => {
    await expectAccess(endpoint, access, asBearer);
    const { status } = await send(endpoint, asKey(lookups().tokens.admin));
    expect([401, 403]).not.toContain(status);
  });

  it('without a credential', async () => {
    const { status, headers } = await send(endpoint, {});
    expect(status).toBe(access === 'open' ? 200 : 401);
    if (access !== 'open') expect(headers['www-authenticate']).toMatch(/^Bearer/);
  });
});

/** A route of dawatch, a route with the interface of the upstream, and one of operators. */
const EXAMPLES = ['GET /v1/submissions', 'GET /users/get_user', 'GET /v1/audit'].map(
  (endpoint) => [endpoint, MATRIX[endpoint]?.access ?? expect.fail(endpoint)] as const,
);

describe.each(EXAMPLES)('%s', (endpoint, access) => {
  it('permits the same roles as x-api-key', () => expectAccess(endpoint, access, asKey));

  it.each(ROLES)(
    'with a revoked credential of the role %s, as with an unknown one',
    async (role) => {
      const revoked = lookups().revoked[role];
      const unknown = revoked.replace(/.{5}$/, 'wrong');
      for (const [index, headers] of both(revoked).entries()) {
        const [gone, never] = [
          await send(endpoint, headers),
          await send(endpoint, both(unknown)[index] ?? {}),
        ];
        expect(gone.status).toBe(401);
        expect(gone.headers['www-authenticate']).toMatch(/^Bearer/);
        const problem = ({ text }: { text: string }) => ({ ...JSON.parse(text), instance: '' });
        expect(problem(gone)).toEqual(problem(never));
        expect(Object.keys(gone.headers)).toEqual(Object.keys(never.headers));
      }
    },
  );

  it.each<[string, Record<string, string>]>([
    ['an empty secret', { authorization: 'Bearer ' }],
    ['another scheme', { authorization: 'Basic dXNlcjpwYXNz' }],
    ['a hash instead of the secret', { 'x-api-key': 'a'.repeat(64) }],
  ])('with %s', async (_what, headers) => {
    const { status, headers: responseHeaders } = await send(endpoint, headers);
    expect(status).toBe(401);
    expect(responseHeaders['www-authenticate']).toMatch(/^Bearer/);
  });
});

/** The header that takes precedence if a request has both. */
const decidingOf = (access: Access) =>
  access !== 'open' && access.includes('service') ? 'x-api-key' : 'authorization';
const inHeader = (name: string, secret: string) => ({
  [name]: name === 'authorization' ? `Bearer ${secret}` : secret,
});
const MALFORMED = (secret: string) => ({
  'x-api-key': [[secret, secret]],
  authorization: [
    [`Bearer ${secret}`, `Bearer ${secret}`],
    `Bearer ${secret} ${secret}`,
    `Bearer ${secret}\u00e9`,
  ],
});

describe.each(EXAMPLES)('%s with a credential in both headers', (endpoint, access) => {
  const deciding = decidingOf(access);
  const ignored = deciding === 'authorization' ? 'x-api-key' : 'authorization';
  const others = () => [...Object.values(lookups().tokens), lookups().revoked.admin, 'never-known'];

  it.each(ROLES)(
    `is decided by the role %s in ${deciding}, whatever is in ${ignored}`,
    async (role) => {
      const right = inHeader(deciding, lookups().tokens[role]);
      const { status } = await send(endpoint, right);
      for (const other of others())
        expect((await send(endpoint, { ...right, ...inHeader(ignored, other) })).status).toBe(
          status,
        );
      for (const malformed of MALFORMED(lookups().tokens.admin)[ignored])
        expect((await send(endpoint, { ...right, [ignored]: malformed })).status).toBe(status);
    },
  );

  it(`is refused if ${deciding} has a wrong or a malformed credential, even with a right one in ${ignored}`, async () => {
    const right = inHeader(ignored, lookups().tokens.admin);
    for (const wrong of ['never-known', lookups().revoked.admin])
      expect((await send(endpoint, { ...right, ...inHeader(deciding, wrong) })).status).toBe(401);
    for (const malformed of MALFORMED(lookups().tokens.admin)[deciding])
      expect((await send(endpoint, { ...right, [deciding]: malformed })).status).toBe(401);
  });

  it(`goes by ${ignored} if ${deciding} has no credential of its kind`, async () => {
    const right = inHeader(ignored, lookups().tokens.admin);
    const empty =
      deciding === 'authorization' ? ['', 'Bearer', 'Bearer ', 'Basic dXNlcjpwYXNz'] : ['', ' '];
    for (const text of empty)
      expect([401, 403]).not.toContain(
        (await send(endpoint, { ...right, [deciding]: text })).status,
      );
  });
});

it.each(['bearer', 'BEARER', 'Bearer   ', ' Bearer'])(
  'the scheme may be written %j',
  async (scheme) => {
    const authorization = `${scheme} ${lookups().tokens.admin} `;
    for (const endpoint of ['GET /v1/submissions', 'GET /admin/get_all_users', 'GET /v1/audit'])
      expect((await send(endpoint, { authorization })).status).toBe(200);
  },
);

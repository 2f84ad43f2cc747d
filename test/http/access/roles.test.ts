import { beforeAll, describe, expect, it } from 'vitest';
import { ROLES, type Role, SCOPES, type Scope } from '../../../src/domain/access/scopes.ts';
import { call, type HttpResponse } from '../../support/app/http-calls.ts';
import { useLookups } from '../../support/app/lookups.ts';
import { fetchDocument } from '../../support/app/openapi-document.ts';

type Access = 'open' | { roles: readonly Role[]; scopes: readonly Scope[] };
const READ_SUBMISSIONS: Access = { roles: ['service', 'operator', 'admin'], scopes: ['submissions:read', 'admin'] };
const WRITE_SUBMISSIONS: Access = { roles: ['service', 'admin'], scopes: ['submissions:write', 'admin'] };
const READ_OPERATIONS: Access = { roles: ['operator', 'admin'], scopes: ['operations:read', 'admin'] };
const READ_WEBHOOKS: Access = { roles: ['operator', 'admin'], scopes: ['operations:read', 'webhooks:write', 'admin'] };
const WRITE_WEBHOOKS: Access = { roles: ['admin'], scopes: ['webhooks:write', 'admin'] };
const READ_USER: Access = { roles: ['user', 'admin'], scopes: ['users:read', 'admin'] };
const ADMIN: Access = { roles: ['admin'], scopes: ['admin'] };

/** The permitted roles and scopes of every endpoint in the served document; a new endpoint must be added here. */
const MATRIX: Record<string, { access: Access; query?: string; body?: unknown }> = {
  'GET /livez': { access: 'open' },
  'GET /readyz': { access: 'open' },
  'GET /metrics': { access: 'open' },
  'GET /openapi.json': { access: 'open' },
  'GET /events.schema.json': { access: 'open' },
  'POST /v1/submissions': { access: WRITE_SUBMISSIONS, body: { submission_id: 'of-the-matrix' } },
  'GET /v1/submissions': { access: READ_SUBMISSIONS },
  'GET /v1/submission_count': { access: READ_SUBMISSIONS },
  'POST /v1/submissions/lookup': { access: READ_SUBMISSIONS, body: { submission_ids: ['of-the-matrix'] } },
  'GET /v1/submissions/{id}': { access: READ_SUBMISSIONS },
  'GET /v1/submissions/{id}/wait': { access: READ_SUBMISSIONS, query: '?timeout_s=0' },
  'PATCH /v1/submissions/{id}': { access: WRITE_SUBMISSIONS, body: { stuck_after_s: 600 } },
  'DELETE /v1/submissions/{id}': { access: WRITE_SUBMISSIONS },
  'POST /v1/submit_data': { access: WRITE_SUBMISSIONS, body: { data: 'abc' } },
  'POST /v1/submit_raw_data': { access: WRITE_SUBMISSIONS, body: { data: 'abc' } },
  'GET /v1/get_submission_info': {
    access: READ_SUBMISSIONS,
    query: '?submission_id=00000000-0000-4000-8000-000000000000',
  },
  // An invalid parameter, because an accepted stream would not end.
  'GET /v1/events': { access: READ_SUBMISSIONS, query: '?after=x' },
  'GET /v1/pacing': { access: READ_SUBMISSIONS },
  'GET /v1/overview': { access: READ_SUBMISSIONS },
  'GET /v1/reports': { access: READ_SUBMISSIONS },
  'GET /v1/alerts': { access: READ_SUBMISSIONS },
  'GET /v1/alerts/{id}': { access: READ_SUBMISSIONS },
  'GET /v1/whoami': { access: { roles: ROLES, scopes: SCOPES } },
  'GET /v1/session': { access: 'open' },
  'POST /v1/session': { access: { roles: ROLES, scopes: SCOPES } },
  'DELETE /v1/session': { access: { roles: ROLES, scopes: SCOPES } },
  'GET /users/get_user': { access: READ_USER, query: '?name=User%201&email=user1%40example.com' },
  'GET /user/get_user': { access: READ_USER, query: '?name=User%201&email=user1%40example.com' },
  'GET /admin/get_all_users': { access: ADMIN, query: '?limit=1' },
  'GET /v1/audit': { access: ADMIN },
  'GET /v1/audit/verify': { access: ADMIN },
  'POST /v1/erasures': { access: ADMIN, body: { email: 'nobody@example.com' } },
  'POST /v1/credentials': { access: ADMIN, body: { name: 'of the matrix', role: 'user' } },
  'GET /v1/credentials': { access: ADMIN },
  'GET /v1/credentials/{id}': { access: ADMIN },
  'PATCH /v1/credentials/{id}': { access: ADMIN, body: { name: 'x' } },
  'DELETE /v1/credentials/{id}': { access: ADMIN },
  'POST /v1/credentials/{id}/rotate': { access: ADMIN, body: {} },
  'POST /v1/reload': { access: ADMIN },
  'POST /v1/webhooks': { access: WRITE_WEBHOOKS, body: { url: 'https://example.com/' } },
  'GET /v1/webhooks': { access: READ_WEBHOOKS },
  'GET /v1/webhooks/{id}': { access: READ_WEBHOOKS },
  'PATCH /v1/webhooks/{id}': { access: WRITE_WEBHOOKS, body: { enabled: false } },
  'DELETE /v1/webhooks/{id}': { access: WRITE_WEBHOOKS },
  'POST /v1/webhooks/{id}/rotate': { access: WRITE_WEBHOOKS, body: {} },
  'POST /v1/webhooks/{id}/test': { access: WRITE_WEBHOOKS },
  'POST /v1/alerts/{id}/acknowledge': { access: ADMIN },
  'DELETE /v1/alerts/{id}/acknowledge': { access: ADMIN },
  'POST /v1/mutes': { access: ADMIN, body: { until: '2000-01-02T03:04:05Z' } },
  'GET /v1/mutes': { access: READ_OPERATIONS },
  'DELETE /v1/mutes/{id}': { access: ADMIN },
  'GET /v1/channels': { access: READ_OPERATIONS },
  'POST /v1/channels/{name}/test': { access: ADMIN },
  'POST /v1/callbacks/test': { access: WRITE_WEBHOOKS, body: { url: 'not an address' } },
  'GET /v1/deliveries': { access: READ_WEBHOOKS },
  'GET /v1/deliveries/{id}': { access: READ_WEBHOOKS },
  'POST /v1/deliveries/{id}/replay': { access: WRITE_WEBHOOKS },
  'POST /v1/deliveries/replay': {
    access: WRITE_WEBHOOKS,
    body: { destination: 'webhook:callbacks', since: '2026-01-02T03:04:05Z' },
  },
};

const lookups = useLookups({ upstream: { submit: { enabled: true, max_bytes: 1_000 } } });
const send = (endpoint: string, headers: Record<string, string | string[]>): Promise<HttpResponse> => {
  const [method = '', path = ''] = endpoint.split(' ');
  const { query = '', body } = MATRIX[endpoint] ?? {};
  const target = `${path.replace(/\{\w+\}/, 'of-the-matrix')}${query}`;
  return call(lookups().url, target, {
    method,
    headers: { 'x-api-key': '', ...headers },
    ...(body !== undefined && { body }),
  });
};
const both = (secret: string): Record<string, string>[] => [
  { 'x-api-key': secret },
  { authorization: `Bearer ${secret}` },
];

let documented: string[] = [];
beforeAll(async () => {
  documented = [...(await fetchDocument(lookups().url)).operations.keys()];
});

it('every endpoint that is served has its row', () => {
  expect(documented.toSorted()).toEqual(Object.keys(MATRIX).toSorted());
});

describe.each(Object.entries(MATRIX))('%s', (endpoint, { access }) => {
  it.each(ROLES)('with a right credential of the role %s', async (role) => {
    const allowed = access === 'open' || access.roles.includes(role);
    for (const headers of both(lookups().tokens[role])) {
      const { status } = await send(endpoint, headers);
      if (allowed) expect([401, 403]).not.toContain(status);
      else expect(status).toBe(403);
      expect(status).toBeLessThan(500);
    }
  });

  it.each(SCOPES)('with a right credential that has only the scope %s', async (scope) => {
    const allowed = access === 'open' || access.scopes.includes(scope);
    for (const headers of both(lookups().scopeTokens[scope])) {
      const { status } = await send(endpoint, headers);
      if (allowed) expect([401, 403]).not.toContain(status);
      else expect(status).toBe(403);
      expect(status).toBeLessThan(500);
    }
  });

  it.each(ROLES)('with a revoked credential of the role %s, as with an unknown one', async (role) => {
    const revoked = lookups().revoked[role];
    const unknown = revoked.replace(/.{5}$/, 'wrong');
    for (const [index, headers] of both(revoked).entries()) {
      const [gone, never] = [await send(endpoint, headers), await send(endpoint, both(unknown)[index] ?? {})];
      expect(gone.status).toBe(access === 'open' ? 200 : 401);
      if (access === 'open') continue;
      expect(gone.headers['www-authenticate']).toMatch(/^Bearer/);
      const problem = ({ text }: { text: string }) => ({ ...JSON.parse(text), instance: '' });
      expect(problem(gone)).toEqual(problem(never));
      expect(Object.keys(gone.headers)).toEqual(Object.keys(never.headers));
    }
  });

  it.each<[string, Record<string, string>]>([
    ['none', {}],
    ['an empty secret', { authorization: 'Bearer ' }],
    ['another scheme', { authorization: 'Basic dXNlcjpwYXNz' }],
    ['a hash instead of the secret', { 'x-api-key': 'a'.repeat(64) }],
  ])('with %s', async (_what, headers) => {
    const { status, headers: responseHeaders } = await send(endpoint, headers);
    expect(status).toBe(access === 'open' ? 200 : 401);
    if (access !== 'open') expect(responseHeaders['www-authenticate']).toMatch(/^Bearer/);
  });
});

/** The header that takes precedence if a request has both. */
const decidingOf = (access: Access) =>
  access !== 'open' && access.roles.includes('service') ? 'x-api-key' : 'authorization';
const inHeader = (name: string, secret: string) => ({
  [name]: name === 'authorization' ? `Bearer ${secret}` : secret,
});
const MALFORMED = (secret: string) => ({
  'x-api-key': [[secret, secret]],
  authorization: [[`Bearer ${secret}`, `Bearer ${secret}`], `Bearer ${secret} ${secret}`, `Bearer ${secret}\u00e9`],
});

describe.each(Object.entries(MATRIX).filter(([, { access }]) => access !== 'open'))(
  '%s with a credential in both headers',
  (endpoint, { access }) => {
    const deciding = decidingOf(access);
    const ignored = deciding === 'authorization' ? 'x-api-key' : 'authorization';
    const others = () => [...Object.values(lookups().tokens), lookups().revoked.admin, 'never-known'];

    it.each(ROLES)(`is decided by the role %s in ${deciding}, whatever is in ${ignored}`, async (role) => {
      const right = inHeader(deciding, lookups().tokens[role]);
      const { status } = await send(endpoint, right);
      for (const other of others())
        expect((await send(endpoint, { ...right, ...inHeader(ignored, other) })).status).toBe(status);
      for (const malformed of MALFORMED(lookups().tokens.admin)[ignored])
        expect((await send(endpoint, { ...right, [ignored]: malformed })).status).toBe(status);
    });

    it(`is refused if ${deciding} has a wrong or a malformed credential, even with a right one in ${ignored}`, async () => {
      const right = inHeader(ignored, lookups().tokens.admin);
      for (const wrong of ['never-known', lookups().revoked.admin])
        expect((await send(endpoint, { ...right, ...inHeader(deciding, wrong) })).status).toBe(401);
      for (const malformed of MALFORMED(lookups().tokens.admin)[deciding])
        expect((await send(endpoint, { ...right, [deciding]: malformed })).status).toBe(401);
    });

    it(`goes by ${ignored} if ${deciding} has no credential of its kind`, async () => {
      const right = inHeader(ignored, lookups().tokens.admin);
      const empty = deciding === 'authorization' ? ['', 'Bearer', 'Bearer ', 'Basic dXNlcjpwYXNz'] : ['', ' '];
      for (const text of empty)
        expect([401, 403]).not.toContain((await send(endpoint, { ...right, [deciding]: text })).status);
    });
  },
);

it.each(['bearer', 'BEARER', 'Bearer   ', ' Bearer'])('the scheme may be written %j', async (scheme) => {
  const authorization = `${scheme} ${lookups().tokens.admin} `;
  for (const endpoint of ['GET /v1/submissions', 'GET /admin/get_all_users', 'GET /v1/audit'])
    expect((await send(endpoint, { authorization })).status).toBe(200);
});

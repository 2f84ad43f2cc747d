import { describe, expect, it } from 'vitest';
import { makeToken } from '../../src/access/credentials-store.ts';
import { call, problemOf } from '../support/app/http-calls.ts';
import { ADMIN_TOKEN, openLookups, UPSTREAM_BEARER, userPath } from '../support/app/lookups.ts';
import { API_KEY } from '../support/app/running-app.ts';
import { serve } from '../support/servers/upstream-server.ts';

const LISTING = '/admin/get_all_users?limit=2';
const CHALLENGE = 'Bearer realm="dawatch"';

/** An upstream that knows one user and records its requests. */
async function recordingUpstream() {
  const seen: (string | undefined)[] = [];
  const { url, requests } = await serve((request, response) => {
    seen.push(request.headers.authorization);
    const list = request.url?.startsWith('/admin') ?? false;
    response.end(list ? '[{"id":"1"}]' : '{"id":"1"}');
  });
  const wire = () =>
    requests.map((request) => `${request.url} ${request.rawHeaders.join(' ')}`).join('\n');
  return { url, requests, seen, wire };
}

/** Reads the OpenAPI document, and returns what the GET operation of a path requires. */
async function documentedSecurity(url: string): Promise<(path: string) => unknown> {
  const document = JSON.parse((await call(url, '/openapi.json')).text);
  return (path) => document.paths[path.split('?')[0] ?? ''].get.security;
}

describe('with a bearer of the upstream in the settings', () => {
  it('the upstream receives only its own bearer', async () => {
    const upstream = await recordingUpstream();
    const lookups = await openLookups({ upstreamUrl: upstream.url });
    const { service, user, admin } = lookups.tokens;
    const tokens = [service, user, admin, API_KEY, ADMIN_TOKEN];
    for (const token of tokens)
      for (const path of [userPath(), userPath(undefined, '/user/get_user'), LISTING])
        await lookups.get(path, token);
    expect(new Set(upstream.seen)).toEqual(new Set([`Bearer ${UPSTREAM_BEARER}`]));
    for (const token of tokens) expect(upstream.wire()).not.toContain(token);
  });

  it('missing, unknown and revoked credentials get the same 401 on every path, without an audit entry', async () => {
    const upstream = await recordingUpstream();
    const lookups = await openLookups({ upstreamUrl: upstream.url });
    const { admin } = lookups.tokens;
    lookups.revoke('admin');
    const responses = [];
    for (const path of [userPath(), userPath(undefined, '/user/get_user'), LISTING])
      for (const token of [undefined, 'nobody', makeToken('admin'), UPSTREAM_BEARER, admin])
        responses.push(await lookups.get(path, token));
    for (const response of responses)
      expect(response).toMatchObject({ status: 401, headers: { 'www-authenticate': CHALLENGE } });
    expect(new Set(responses.map((response) => problemOf(response).detail)).size).toBe(1);
    expect(upstream.requests).toEqual([]);
    expect(lookups.audit()).toEqual([]);
  });

  it.each([
    ['401', 'another-bearer-than-the-sandbox-knows'],
    ['401 for the wrong role', 'sandbox-user-token'],
  ])("the upstream's %s is 502 and does not mention the bearer", async (_, bearer) => {
    const lookups = await openLookups({ bearer });
    const response = await lookups.get(LISTING, lookups.tokens.admin);
    expect(response.status).toBe(502);
    expect(problemOf(response).detail).toBe("the upstream refuses this server's own token");
    expect(response.headers).not.toHaveProperty('www-authenticate');
    expect(JSON.stringify(response) + lookups.logs()).not.toContain(bearer);
    expect(lookups.audit()).toMatchObject([{ caller: 'the admin', result: 'failed' }]);
  });

  it('a token is accepted as x-api-key, as documented', async () => {
    const lookups = await openLookups();
    const headers = { 'x-api-key': lookups.tokens.admin };
    const securityOf = await documentedSecurity(lookups.url);
    for (const path of [userPath(), LISTING]) {
      expect((await call(lookups.url, path, { headers })).status, path).toBe(200);
      expect(securityOf(path), path).toEqual([{ apiKey: [] }, { bearer: [] }]);
    }
    const { text } = await lookups.get('/v1/whoami', lookups.tokens.service);
    expect(JSON.parse(text)).toEqual({
      ...{ role: 'service', name: 'the service', users_bearer: 'dawatch' },
    });
  });

  it('does not start with a token of its own', async () => {
    await expect(openLookups({ bearer: makeToken('admin') })).rejects.toThrow(
      'DAWATCH_UPSTREAM_BEARER',
    );
  });
});

describe('without a bearer of the upstream', () => {
  it("the caller's Authorization is forwarded unchanged, and nothing else", async () => {
    const upstream = await recordingUpstream();
    const lookups = await openLookups({ upstreamUrl: upstream.url, bearer: null });
    const headers = {
      authorization: 'bEARER  a.jwt-of_the~upstream+/==',
      cookie: 'c=1',
      'x-api-key': API_KEY,
    };
    for (const path of [userPath(), LISTING])
      expect((await call(lookups.url, path, { headers })).status, path).toBe(200);
    expect(upstream.seen).toEqual([headers.authorization, headers.authorization]);
    expect(upstream.wire()).not.toMatch(/a-service-key|cookie/i);
    expect(lookups.logs()).not.toContain('a.jwt-of');
  });

  it('the document requires a bearer only, and /v1/whoami says whose', async () => {
    const { url, get, tokens } = await openLookups({ bearer: null });
    const securityOf = await documentedSecurity(url);
    for (const path of [userPath(), LISTING]) expect(securityOf(path)).toEqual([{ bearer: [] }]);
    const { text } = await get('/v1/whoami', tokens.service);
    expect(JSON.parse(text)).toMatchObject({ users_bearer: 'upstream' });
    expect((await get('/v1/whoami', 'sandbox-admin-token')).status).toBe(401);
  });

  it('the upstream decides about the role: its 401 is returned with a challenge', async () => {
    const lookups = await openLookups({ bearer: null });
    expect((await lookups.get(userPath(), 'sandbox-user-token')).status).toBe(200);
    expect((await lookups.get(LISTING, 'sandbox-admin-token')).status).toBe(200);
    const refused = await lookups.get(LISTING, 'sandbox-user-token');
    expect(refused).toMatchObject({ status: 401, headers: { 'www-authenticate': CHALLENGE } });
    expect(problemOf(refused).detail).toBe('the upstream refuses this token');
    expect(lookups.audit().map(({ caller, result }) => `${caller} ${result}`)).toEqual([
      expect.stringMatching(/^forwarded:\w{8} found$/),
      expect.stringMatching(/^forwarded:\w{8} found$/),
      expect.stringMatching(/^forwarded:\w{8} refused$/),
    ]);
  });

  it("the upstream's 403 is returned without its text", async () => {
    const { url } = await serve((_request, response) =>
      response.writeHead(403).end('a-secret-text'),
    );
    const lookups = await openLookups({ upstreamUrl: url, bearer: null });
    const httpResponse = await lookups.get(LISTING, 'a.b.c');
    expect(httpResponse.status).toBe(403);
    problemOf(httpResponse);
    expect(httpResponse.text + lookups.logs()).not.toContain('a-secret-text');
  });

  it.each<[string, Record<string, string | string[]>]>([
    ['nothing', {}],
    ['another scheme', { authorization: 'Basic dXNlcjpwYXNz' }],
    ['two headers', { authorization: ['Bearer a', 'Bearer b'] }],
  ])('%s is refused with 401 without a request to the upstream', async (_, headers) => {
    const upstream = await recordingUpstream();
    const lookups = await openLookups({ upstreamUrl: upstream.url, bearer: null });
    for (const path of [userPath(), LISTING]) {
      const response = await call(lookups.url, path, { headers: { 'x-api-key': [], ...headers } });
      expect(response).toMatchObject({ status: 401, headers: { 'www-authenticate': CHALLENGE } });
      expect(problemOf(response).detail).toContain("the upstream's own token");
    }
    expect(upstream.requests).toEqual([]);
  });

  it('a credential of dawatch is never forwarded, valid or not', async () => {
    const upstream = await recordingUpstream();
    const lookups = await openLookups({ upstreamUrl: upstream.url, bearer: null });
    lookups.revoke('user');
    const { service, user, admin } = lookups.tokens;
    for (const token of [service, user, admin, makeToken('admin'), API_KEY, ADMIN_TOKEN])
      for (const path of [userPath(), LISTING]) {
        const response = await lookups.get(path, token);
        expect(response).toMatchObject({ status: 401, headers: { 'www-authenticate': CHALLENGE } });
        expect(problemOf(response).detail).toContain('a token of dawatch is not forwarded');
      }
    expect(upstream.requests).toEqual([]);
    const callers = new Set(lookups.audit().map(({ caller, result }) => `${caller} ${result}`));
    expect([...callers].sort()).toEqual(
      ['DAWATCH_ADMIN_TOKEN', 'DAWATCH_SERVICE_KEY', 'the admin', 'the service'].map(
        (name) => `${name} refused`,
      ),
    );
  });
});

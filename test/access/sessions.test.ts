import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { sha256 } from '../../src/access/access.ts';
import { problemOf, sendRaw } from '../support/app/http-calls.ts';
import { ADMIN_TOKEN, openLookups, useLookups } from '../support/app/lookups.ts';
import { API_KEY, openApp } from '../support/app/running-app.ts';
import { callWith, shiftedClock, signInWith } from '../support/app/sessions.ts';
import { storeToken } from '../support/ledger/audit.ts';
import { rawConnection } from '../support/ledger/ledger-file.ts';
import { tempFolder } from '../support/temp-folder.ts';

const HOUR_MS = 3_600_000;
const UNSAFE = { method: 'POST', body: { submission_id: 'by-session' } };
const lookups = useLookups();

async function open(setting: Partial<Parameters<typeof openApp>[0]> = {}) {
  const database = join(tempFolder(), 'ledger.db');
  const clock = shiftedClock();
  const start = () => openApp({ database, clock, adminToken: ADMIN_TOKEN, ...setting });
  let app = await start();
  onTestFinished(() => app.close());
  const query = <T>(work: (db: ReturnType<typeof rawConnection>) => T): T => {
    const db = rawConnection(database);
    try {
      return work(db);
    } finally {
      db.close();
    }
  };
  return {
    get url() {
      return app.url;
    },
    clock,
    async restart(changed: typeof setting = {}) {
      await app.close();
      app = await openApp({ database, clock, adminToken: ADMIN_TOKEN, ...setting, ...changed });
    },
    token: (role: 'service' | 'admin' = 'service') => storeToken(database, role, 'a person'),
    audit: () =>
      query((db) =>
        db
          .prepare(
            "SELECT caller, action, detail FROM audit WHERE action LIKE 'sessions.%' ORDER BY seq",
          )
          .all(),
      ),
    count: () => query((db) => db.prepare('SELECT count(*) FROM sessions').pluck().get()),
    bytes: () => query((db) => JSON.stringify(db.prepare('SELECT * FROM sessions').all())),
  };
}

describe('a session', () => {
  it.each(['service', 'user', 'operator', 'admin'] as const)(
    'has the rights of its token: %s',
    async (role) => {
      const { url, tokens } = lookups();
      const { cookie } = await signInWith(url, tokens[role]);
      const byToken = await lookups().get('/v1/whoami', tokens[role]);
      expect((await callWith(url, cookie, '/v1/whoami')).text).toBe(byToken.text);
      for (const path of [
        '/v1/submissions',
        '/v1/audit',
        '/users/get_user?name=a&email=a@example.com',
        '/v1/webhooks',
      ])
        expect((await callWith(url, cookie, path)).status, path).toBe(
          (await lookups().get(path, tokens[role])).status,
        );
    },
  );

  it('is in a cookie that no script can read, for this server only, and never in a body', async () => {
    const { url, tokens } = lookups();
    const { cookie, attributes, body } = await signInWith(url, tokens.admin);
    expect(cookie).toMatch(/^dawatch-session=[\w-]{43}$/);
    expect(attributes).toEqual(['Path=/', 'HttpOnly', 'SameSite=Strict']);
    expect(JSON.stringify(body)).not.toContain(cookie.split('=')[1]);
    expect(body).toEqual({ signed_in: true, expires_at: expect.stringMatching(/Z$/), oidc: null });
    expect(lookups().logs()).not.toContain(cookie.split('=')[1]);
  });

  it('is stored only as hashes', async () => {
    const server = await open();
    const { cookie } = await signInWith(server.url, ADMIN_TOKEN);
    const secret = cookie.split('=')[1] ?? '';
    expect(server.bytes()).toContain(JSON.stringify([...sha256(secret)]));
    expect(server.bytes()).not.toContain(secret);
  });

  it('works after a restart of the server', async () => {
    const server = await open();
    const { cookie } = await signInWith(server.url, ADMIN_TOKEN);
    await server.restart();
    expect((await callWith(server.url, cookie, '/v1/whoami')).status).toBe(200);
  });

  it('ends when it signs out, and the cookie is deleted', async () => {
    const server = await open();
    const { cookie } = await signInWith(server.url, ADMIN_TOKEN);
    const { status, headers } = await callWith(server.url, cookie, '/v1/session', {
      method: 'DELETE',
    });
    expect([status, headers['set-cookie']]).toEqual([
      204,
      ['dawatch-session=; Max-Age=0; Path=/; HttpOnly; SameSite=Strict'],
    ]);
    expect(problemOf(await callWith(server.url, cookie, '/v1/whoami')).status).toBe(401);
    expect(
      problemOf(await callWith(server.url, cookie, '/v1/session', { method: 'DELETE' })).status,
    ).toBe(401);
    expect(server.count()).toBe(0);
    expect(server.audit()).toEqual([
      { caller: 'DAWATCH_ADMIN_TOKEN', action: 'sessions.create', detail: 'token' },
      { caller: 'DAWATCH_ADMIN_TOKEN', action: 'sessions.delete', detail: null },
    ]);
  });

  it('ends with its token: revoked, or replaced in the settings', async () => {
    const server = await open();
    const { token, revoke } = server.token();
    const [byToken, byKey] = [
      await signInWith(server.url, token),
      await signInWith(server.url, API_KEY),
    ];
    revoke();
    expect((await callWith(server.url, byToken.cookie, '/v1/whoami')).status).toBe(401);
    expect((await callWith(server.url, byKey.cookie, '/v1/whoami')).status).toBe(200);
    await server.restart({ apiKey: 'another-key-for-tests' });
    expect((await callWith(server.url, byKey.cookie, '/v1/whoami')).status).toBe(401);
  });

  it('ends after two hours without a request, and twelve hours after the sign-in', async () => {
    const server = await open();
    const { cookie, body } = await signInWith(server.url, ADMIN_TOKEN);
    expect(Date.parse(body.expires_at) - server.clock.now()).toBeGreaterThan(11.9 * HOUR_MS);
    const status = async () => (await callWith(server.url, cookie, '/v1/whoami')).status;
    for (let hours = 0; hours < 11; hours += 1) {
      expect([hours, await status()]).toEqual([hours, 200]);
      server.clock.advance(HOUR_MS);
    }
    expect(await status()).toBe(200);
    server.clock.advance(HOUR_MS);
    expect(await status()).toBe(401);

    const idle = await signInWith(server.url, ADMIN_TOKEN);
    expect(server.count(), 'the ended session was deleted').toBe(1);
    server.clock.advance(2 * HOUR_MS);
    expect((await callWith(server.url, idle.cookie, '/v1/whoami')).status).toBe(401);
    const anonymous = await callWith(server.url, idle.cookie, '/v1/session');
    expect(JSON.parse(anonymous.text)).toEqual({ signed_in: false, expires_at: null, oidc: null });
  });

  it('replaces the one that the browser has', async () => {
    const server = await open();
    let { cookie } = await signInWith(server.url, ADMIN_TOKEN);
    const first = cookie;
    ({ cookie } = await signInWith(server.url, API_KEY, { cookie }));
    expect((await callWith(server.url, first, '/v1/whoami')).status).toBe(401);
    expect(JSON.parse((await callWith(server.url, cookie, '/v1/whoami')).text)).toMatchObject({
      role: 'service',
    });
  });
});

describe('a sign-in', () => {
  it('is refused without a right token, and a session cannot begin another one', async () => {
    const { url, tokens, revoked } = lookups();
    const post = { method: 'POST' };
    const { cookie } = await signInWith(url, tokens.admin);
    for (const headers of [
      {},
      { authorization: `Bearer ${revoked.admin}` },
      { authorization: 'Bearer a b' },
      { cookie },
    ]) {
      const response = await callWith(url, undefined, '/v1/session', { ...post, headers });
      expect(problemOf(response).status).toBe(401);
      expect(response.headers).not.toHaveProperty('set-cookie');
    }
  });

  it('from a page of another origin is refused', async () => {
    const { url, tokens } = lookups();
    for (const headers of [
      { 'sec-fetch-site': 'cross-site' },
      { 'sec-fetch-site': [], origin: 'https://evil.example' },
    ]) {
      const authorization = `Bearer ${tokens.admin}`;
      const response = await callWith(url, undefined, '/v1/session', {
        method: 'POST',
        headers: { ...headers, authorization },
      });
      expect(problemOf(response).detail).toContain('only pages of this server');
      expect(response.headers).not.toHaveProperty('set-cookie');
    }
  });

  const HTTPS = 'https://da.example';
  const HOST = '__Host-dawatch-session';
  it.each([
    ['https', HTTPS, undefined, HOST, '/', true],
    ['https at the public address', HTTPS, `${HTTPS}/`, HOST, '/', true],
    ['https below a path', HTTPS, `${HTTPS}/watch/`, `${HOST}-watch`, '/', true],
    ['a port here, if the public address has https', 'http://[::1]:8080', HTTPS, HOST, '/', true],
    ['http below a path', 'http://a.b', 'http://a.b/watch/', 'dawatch-session', '/watch/', false],
  ])(
    'over %s sets a cookie that is bound to it',
    async (_, origin, publicUrl, name, path, isSecure) => {
      const app = await open(publicUrl === undefined ? {} : { publicUrl });
      const { cookie, attributes } = await signInWith(app.url, ADMIN_TOKEN, { origin });
      expect(cookie.split('=')[0]).toBe(name);
      expect(attributes).toEqual([
        `Path=${path}`,
        'HttpOnly',
        ...(isSecure ? ['Secure'] : []),
        'SameSite=Strict',
      ]);
      expect((await callWith(app.url, cookie, '/v1/whoami', { headers: { origin } })).status).toBe(
        200,
      );
      const out = await callWith(app.url, cookie, '/v1/session', {
        method: 'DELETE',
        headers: { origin },
      });
      expect(out.headers['set-cookie']).toEqual([
        [`${name}=`, 'Max-Age=0', ...attributes].join('; '),
      ]);
    },
  );
});

it('a sign-in over http is refused if the public address has https, because browsers ignore its cookie', async () => {
  const { url } = await open({ publicUrl: 'https://da.example/watch' });
  const response = await callWith(url, undefined, '/v1/session', {
    method: 'POST',
    headers: { authorization: `Bearer ${ADMIN_TOKEN}`, origin: 'http://10.0.0.1:8080' },
  });
  expect(problemOf(response)).toMatchObject({
    status: 403,
    detail: 'a session needs https: sign in at https://da.example/watch',
  });
  expect(response.headers).not.toHaveProperty('set-cookie');
});

it('with https, a cookie that another server of the domain can set is no session', async () => {
  const app = await open({ publicUrl: 'https://da.example/watch' });
  const origin = 'https://da.example';
  const { cookie } = await signInWith(app.url, ADMIN_TOKEN, { origin });
  const [name = '', value = ''] = cookie.split('=');
  const status = async (sent: string) =>
    (await callWith(app.url, sent, '/v1/whoami', { headers: { origin } })).status;
  for (const planted of ['dawatch-session', '__Secure-dawatch-session', '__Host-dawatch-session'])
    expect([planted, await status(`${planted}=${value}`)]).toEqual([planted, 401]);
  expect(await status(`dawatch-session=${'x'.repeat(43)}; ${name}=${value}`)).toBe(200);
});

describe('the cookie of a session', () => {
  const NONE = { 'sec-fetch-site': [], origin: [] };
  const EVIL = { 'sec-fetch-site': 'cross-site', origin: 'https://evil.example' };
  const PORT = 'http://127.0.0.1:1';
  it.each([
    ['a page of this server', {}, 202],
    ['a page of this server, in a browser without Sec-Fetch-Site', { 'sec-fetch-site': [] }, 202],
    ['a client that is no browser', NONE, 202],
    ['a page of another site', EVIL, 401],
    ['a page of the same site', { 'sec-fetch-site': 'same-site' }, 401],
    ['the address bar', { 'sec-fetch-site': 'none', origin: [] }, 401],
    ['another origin, in a browser without Sec-Fetch-Site', { ...NONE, origin: PORT }, 401],
    ['two origins', { ...NONE, origin: [PORT, 'http://127.0.0.1:2'] }, 401],
    ['a form, which has no header of its own', { 'x-requested-with': [] }, 401],
  ])('authenticates a change by %s: %o → %i', async (_, headers, status) => {
    const { url, tokens } = lookups();
    const { cookie } = await signInWith(url, tokens.admin);
    expect((await callWith(url, cookie, '/v1/submissions', { ...UNSAFE, headers })).status).toBe(
      status,
    );
  });

  it.each([
    [{ 'x-requested-with': [] }, 200],
    [{ ...NONE, 'x-requested-with': [] }, 200],
    [{ 'sec-fetch-site': 'cross-site' }, 401],
    [{ 'sec-fetch-site': 'same-site' }, 401],
  ])('authenticates reads with %o → %i', async (headers, status) => {
    const { url, tokens } = lookups();
    const { cookie } = await signInWith(url, tokens.admin);
    expect((await callWith(url, cookie, '/v1/submissions', { headers })).status).toBe(status);
  });

  it('is accepted from the public address behind a proxy that changes Host', async () => {
    const app = await open({ publicUrl: 'http://da.example/watch/' });
    const behind = { 'sec-fetch-site': [], origin: 'http://da.example' };
    const { cookie } = await signInWith(app.url, ADMIN_TOKEN, behind);
    expect(
      (await callWith(app.url, cookie, '/v1/submissions', { ...UNSAFE, headers: behind })).status,
    ).toBe(202);
  });

  it('is never accepted from the origins of CORS, which get no permission for cookies', async () => {
    const app = await open({ corsOrigins: ['https://app.example'] });
    const { cookie } = await signInWith(app.url, ADMIN_TOKEN);
    const origin = 'https://app.example';
    for (const site of ['cross-site', 'same-site', []]) {
      const response = await callWith(app.url, cookie, '/v1/submissions', {
        ...UNSAFE,
        headers: { origin, 'sec-fetch-site': site },
      });
      expect(response.status).toBe(401);
      expect(response.headers).not.toHaveProperty('access-control-allow-credentials');
    }
    const preflight = {
      'access-control-request-method': 'POST',
      'access-control-request-headers': 'x-requested-with',
    };
    const { headers } = await callWith(app.url, undefined, '/v1/submissions', {
      method: 'OPTIONS',
      headers: { origin, ...preflight },
    });
    expect(headers['access-control-allow-headers']).not.toContain('x-requested-with');
    expect(headers).not.toHaveProperty('access-control-allow-credentials');
  });

  it('counts only without another credential, right or wrong', async () => {
    const { url, tokens } = lookups();
    const { cookie } = await signInWith(url, tokens.admin);
    const status = async (headers: Record<string, string>) =>
      (await callWith(url, cookie, '/v1/audit', { headers })).status;
    expect(await status({})).toBe(200);
    expect(await status({ authorization: `Bearer ${tokens.service}` })).toBe(403);
    expect(await status({ 'x-api-key': tokens.service })).toBe(403);
    expect(await status({ authorization: 'Bearer wrong' })).toBe(401);
    expect(await status({ authorization: 'Basic dXNlcjpwYXNz' })).toBe(200);
  });

  it('is no credential for lookups that forward the token of the upstream', async () => {
    const forwarding = await openLookups({ bearer: null });
    const { cookie } = await signInWith(forwarding.url, forwarding.tokens.admin);
    const path = '/users/get_user?name=User%202&email=user2@example.com';
    expect((await callWith(forwarding.url, cookie, path)).status).toBe(401);
  });

  const other = 'x'.repeat(43);
  it.each<[string, (name: string, value: string) => string]>([
    ['empty', (name) => `${name}=`],
    ['followed by other characters', (name, value) => `${name}=${value}%00`],
    ['sent twice', (name, value) => `${name}=${value}; ${name}=${value}`],
    ['of another server', (name) => `${name}=${other}`],
    ['beside a wrong one for https', (name, value) => `${name}=${value}; __Host-${name}=${other}`],
  ])('is refused if it is %s', async (_, change) => {
    const { url, tokens } = lookups();
    const { cookie } = await signInWith(url, tokens.admin);
    const [name = '', value = ''] = cookie.split('=');
    expect(problemOf(await callWith(url, change(name, value), '/v1/whoami')).status).toBe(401);
    await signInWith(url, tokens.admin, { cookie: change(name, value) });
  });

  it('is found among others, in the bytes of a request', async () => {
    const { url, tokens } = lookups();
    const { cookie } = await signInWith(url, tokens.admin);
    const raw = async (...lines: string[]) => {
      const request = [
        'GET /v1/whoami HTTP/1.1',
        'Host: x',
        'Connection: close',
        ...lines,
        '',
        '',
      ].join('\r\n');
      return /^HTTP\/1\.1 (\d+)/.exec(await sendRaw(url, request))?.[1];
    };
    expect(await raw(`Cookie: a=b; ${cookie}; =; c`)).toBe('200');
    expect(await raw('Cookie: theme=dark', `Cookie: ${cookie}`)).toBe('200');
    expect(await raw(`Cookie:a=b;${cookie}`)).toBe('200');
    expect(await raw(`Cookie: ${cookie}`, `Cookie: ${cookie}`)).toBe('401');
    expect(await raw(`Cookie: ;;;${cookie},a=b`)).toBe('401');
    expect(await raw(`Cookie: ${'a=b; '.repeat(2_000)}${cookie}`)).toBe('200');
    expect(await raw(`Cookie: ${'a=b; '.repeat(4_000)}${cookie}`)).toBe('431');
  });
});

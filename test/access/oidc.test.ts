import { mkdtempSync, rmSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { call, problemOf } from '../support/app/http-calls.ts';
import { ADMIN_TOKEN } from '../support/app/lookups.ts';
import { useApp, useOpened } from '../support/app/running-app.ts';
import { callWith, signInWith } from '../support/app/sessions.ts';
import { storeToken, withStore } from '../support/ledger/audit.ts';
import { rawConnection } from '../support/ledger/ledger-file.ts';
import {
  CLIENT,
  configuredWith,
  publishesAnotherKey,
  startWithProvider,
} from '../support/servers/oidc-provider.ts';

type Setting = Omit<Parameters<typeof startWithProvider>[0], 'database'>;

async function start(setting: Setting = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'dawatch-test-'));
  const database = join(folder, 'ledger.db');
  const logged = { text: '' };
  const opened = await startWithProvider({
    database,
    adminToken: ADMIN_TOKEN,
    trustedProxies: ['loopback'],
    logLevel: 'trace',
    onLog: (line) => {
      logged.text += line;
    },
    ...setting,
  });
  const { url, provider, client } = opened;
  const { person } = provider;
  let tests = 0;
  return {
    ...opened,
    database,
    whoami: async (cookie = '') => JSON.parse((await callWith(url, cookie, '/v1/whoami')).text),
    status: async (cookie = '') => (await callWith(url, cookie, '/v1/whoami')).status,
    asAdmin: (method: string, path: string) =>
      callWith(url, undefined, path, {
        method,
        headers: { authorization: `Bearer ${ADMIN_TOKEN}` },
      }),
    logs: () => logged.text,
    query<T>(work: (db: ReturnType<typeof rawConnection>) => T): T {
      const db = rawConnection(database);
      try {
        return work(db);
      } finally {
        db.close();
      }
    },
    /** What a test changed does not count for the next one, whose client has its own limits. */
    reset() {
      Object.assign(provider, { person, userInfo: {}, fault: undefined });
      logged.text = '';
      tests += 1;
      client.address = `192.0.2.${tests}`;
    },
    async close() {
      await opened.close();
      rmSync(folder, { recursive: true });
    },
  };
}

const shared = useOpened(() => start());
let server: Awaited<ReturnType<typeof start>>;
beforeEach(() => {
  server = shared();
  server.reset();
});

/** One with these settings, or with an empty ledger; closed when the test ends. */
async function open(setting?: Setting) {
  const opened = await start(setting);
  onTestFinished(() => opened.close());
  return opened;
}

const LARGE = 'the response has more than 1048576 bytes';
/** Responds at this path with more than a mebibyte, in gzip. */
const large = (at: string) => (path: string, response: ServerResponse) => {
  if (path !== at) return false;
  response.writeHead(200, { 'content-type': 'application/json', 'content-encoding': 'gzip' });
  response.end(gzipSync(`{}${' '.repeat(1024 * 1024)}`));
  return true;
};

describe('a sign-in at a provider', () => {
  it('begins a session with the role of a claim, and leads back to the page that was open', async () => {
    const { cookie, location, attributes } = await server.signIn(
      'submissions?status=failed&q=%C3%A9',
    );
    expect(location).toBe(`${server.url}/#/submissions?status=failed&q=%C3%A9`);
    expect(attributes).toEqual(['Path=/', 'HttpOnly', 'SameSite=Strict']);
    expect(await server.whoami(cookie)).toMatchObject({
      role: 'operator',
      name: 'ada@example.com',
    });
    await callWith(server.url, cookie, '/v1/session', { method: 'DELETE' });
    expect(await server.status(cookie)).toBe(401);
  });

  it('has the role of the first value of the claim that the settings know', async () => {
    for (const [groups, role] of [
      [['x', 'lookups', 'watchers', 'admins'], 'admin'],
      [{ watchers: { id: 'a.example' }, admins: {} }, 'admin'],
      ['x, watchers,lookups', 'operator'],
      [{ admins: false, watchers: null }, undefined],
      [['x,admins'], undefined],
      [['admins-of-others', 'admin', 'ADMINS'], undefined],
      [undefined, undefined],
    ] as const) {
      server.provider.person = { sub: 'ada', email: 'ada@example.com', groups };
      const { failed, cookie } = await server.signIn();
      if (role === undefined) expect(failed, JSON.stringify(groups)).toBe('no_role');
      else expect(await server.whoami(cookie)).toMatchObject({ role });
    }
  });

  it.each([
    ['a nested one', { realm_access: { roles: ['watchers'] } }, 'realm_access.roles', 'operator'],
    ['not one of every object', { groups: ['admins'] }, 'constructor.name', undefined],
  ])('reads the claim of the settings: %s', async (_, claims, role_claim, role) => {
    const server = await open({ oidc: { role_claim } });
    server.provider.person = { sub: 'ada', email: 'ada@example.com', ...claims };
    const { failed, cookie } = await server.signIn();
    if (role === undefined) expect(failed).toBe('no_role');
    else expect(await server.whoami(cookie)).toMatchObject({ role });
  });

  it('takes claims that only the userinfo endpoint has', async () => {
    const server = await open({ oidc: { role_claim: 'realm_access.roles' } });
    server.provider.person = { sub: 'ada' };
    server.provider.userInfo = { realm_access: { roles: ['watchers'] }, email: 'ada@example.com' };
    const { cookie } = await server.signIn();
    const ada = { role: 'operator', name: 'ada@example.com' };
    expect(await server.whoami(cookie)).toMatchObject(ada);
    const realm_access = { roles: ['admins'] };
    for (const [status, headers, body] of [
      [500, {}, {}],
      [401, { 'www-authenticate': 'Bearer error="invalid_token"' }, {}],
      [200, { 'content-type': 'application/json' }, { sub: 'eve', realm_access }],
    ] as const) {
      server.provider.fault = (path, response) =>
        path === '/me' && Boolean(response.writeHead(status, headers).end(JSON.stringify(body)));
      expect((await server.signIn()).failed, 'without a role').toBe('invalid');
    }
    expect(server.logs().match(/"detail":"claim absent, and none from userinfo: /g)).toHaveLength(
      3,
    );
    server.provider.person = { sub: 'ada', realm_access };
    const named = await server.whoami((await server.signIn()).cookie);
    expect(named, 'only without the address').toMatchObject({ role: 'admin', name: 'ada' });
  });

  it('takes the role anew: a changed one counts for all sessions, and a lost one ends them', async () => {
    const people = () =>
      server.query((db) => db.prepare('SELECT count(*) FROM people').pluck().get());
    const first = await server.signIn();
    const before = people();
    server.provider.person = { sub: 'ada', email: 'countess@example.com', groups: ['admins'] };
    const second = await server.signIn();
    for (const { cookie } of [first, second])
      expect(await server.whoami(cookie)).toMatchObject({
        role: 'admin',
        name: 'countess@example.com',
      });
    expect(people()).toBe(before);
    server.provider.person = { sub: 'ada', groups: [] };
    expect((await server.signIn()).failed).toBe('no_role');
    for (const { cookie } of [first, second]) expect(await server.status(cookie)).toBe(401);
  });

  it('names a person by a verified address or the subject', async () => {
    const email = 'ada@example.com';
    const cases: [object, string][] = [
      ...[false, 1, null, 'TRUE'].map((email_verified): [object, string] => [
        { email, email_verified },
        'the-subject',
      ]),
      [{ email, email_verified: true }, email],
      [{ email, email_verified: 'true' }, email],
      [{ email: 'not an address' }, 'the-subject'],
      [{ email }, email],
    ];
    for (const [claims, name] of cases) {
      server.provider.person = { sub: 'the-subject', groups: ['watchers'], ...claims };
      const { cookie } = await server.signIn();
      expect(await server.whoami(cookie), JSON.stringify(claims)).toMatchObject({ name });
    }
  });

  it('with the role admin does not replace the last token with it, and is not revoked as the last admin', async () => {
    const server = await open({ adminToken: undefined });
    const { id, token } = storeToken(server.database, 'admin');
    server.provider.person = { sub: 'ada', groups: ['admins'] };
    const ada = await server.signIn();
    const remove = (headers: Record<string, string>, path: string | number) =>
      callWith(server.url, undefined, `/v1/credentials/${path}`, { method: 'DELETE', headers });
    const bearer = { authorization: `Bearer ${token}` };
    const credentials = JSON.parse(
      (await callWith(server.url, ada.cookie, '/v1/credentials')).text,
    ).credentials;
    const { id: person } = credentials.find(
      (one: { person: string | null }) => one.person === 'ada',
    );
    expect((await remove(bearer, id)).status, 'the provider may be away').toBe(409);
    expect((await remove(bearer, person)).status).toBe(204);

    withStore(server.database, (store) => store.revoke(id, 1));
    server.provider.person = { sub: 'grace', groups: ['admins'] };
    const grace = await server.signIn();
    const own = JSON.parse((await callWith(server.url, grace.cookie, '/v1/credentials')).text)
      .credentials[0].id;
    expect((await remove({ cookie: grace.cookie ?? '' }, own)).status, 'no other admin').toBe(409);
    server.provider.person = { sub: 'joan', groups: ['admins'] };
    await server.signIn();
    expect((await remove({ cookie: grace.cookie ?? '' }, own)).status).toBe(204);
  });

  it('lasts only as long as the provider is the one of the settings', async () => {
    const { cookie } = await server.signIn();
    const { url: issuer } = server.provider;
    for (const other of [undefined, 'https://other.example', `${issuer}/other`]) {
      await server.restart({ oidc: { ...server.oidc, issuer: other } });
      expect(await server.status(cookie)).toBe(401);
    }
    await server.restart({ oidc: { ...server.oidc, issuer: `${issuer}/` } });
    expect(await server.status(cookie)).toBe(200);
  });

  it('is in the audit under a number, with the address beside it', async () => {
    const server = await open();
    server.provider.person = { sub: 'ada', email: 'ada@example.com', groups: ['admins'] };
    const { cookie } = await server.signIn();
    await callWith(server.url, cookie, '/v1/webhooks', {
      method: 'POST',
      body: { url: 'https://example.com/' },
    });
    const audit = async (query = '') =>
      JSON.parse((await server.asAdmin('GET', `/v1/audit${query}`)).text).entries;
    expect(await audit()).toMatchObject([
      { action: 'webhooks.create', caller: 'person:1', caller_person: 'ada@example.com' },
      {
        action: 'sessions.create',
        caller: 'person:1',
        detail: 'oidc, admin',
        email_masked: 'a…@example.com',
      },
    ]);
    expect(await audit('?caller=ada@example.com')).toHaveLength(2);
    expect(await audit('?caller=eve@example.com')).toEqual([]);
    const mute = { until: new Date(Date.now() + 3_600_000).toISOString() };
    await callWith(server.url, cookie, '/v1/mutes', { method: 'POST', body: mute });
    const { mutes } = JSON.parse((await server.asAdmin('GET', '/v1/mutes')).text);
    expect(mutes).toMatchObject([{ created_by: 'ada@example.com' }]);
  });

  it('makes a credential that is listed and can be revoked', async () => {
    server.provider.person = { sub: 'revoked', email: 'eve@example.com', groups: ['watchers'] };
    const { cookie } = await server.signIn();
    const { credentials } = JSON.parse((await server.asAdmin('GET', '/v1/credentials')).text);
    const [{ id, name }] = credentials;
    expect(credentials[0]).toMatchObject({
      ...{ person: 'eve@example.com', role: 'operator', state: 'valid' },
    });
    expect(name).toMatch(/^person:\d+$/);
    expect((await server.asAdmin('DELETE', `/v1/credentials/${id}`)).status).toBe(204);
    expect(await server.status(cookie)).toBe(401);
    expect((await server.signIn()).failed).toBe('revoked');
  });

  it('over https uses cookies that are bound to it, and none that another server of the domain can set', async () => {
    const server = await open({ publicUrl: 'https://da.example/watch' });
    const planted = 'x'.repeat(43);
    const browserOf = async (name: string) => {
      const { headers } = await server.get('/v1/session/oidc', `${name}=${planted}`);
      return headers['set-cookie']?.[0]?.includes(planted);
    };
    expect(await browserOf('__Host-dawatch-sign-in-watch'), 'of another tab').toBe(true);
    for (const name of ['dawatch-sign-in', '__Secure-dawatch-sign-in', '__Host-dawatch-sign-in'])
      expect([name, await browserOf(name)]).toEqual([name, false]);
    const { headers } = await server.get('/v1/session/oidc');
    expect(headers['set-cookie']?.[0]).toMatch(
      /^__Host-dawatch-sign-in-watch=[\w-]{43}; Max-Age=600; Path=\/; HttpOnly; Secure; SameSite=Lax$/,
    );
    const sent = new URL(headers.location ?? '').searchParams;
    expect(sent.get('redirect_uri')).toBe('https://da.example/watch/v1/session/oidc/callback');
    expect(Object.fromEntries(sent)).toMatchObject({
      response_type: 'code',
      code_challenge_method: 'S256',
    });
    const { text } = await server.get('/v1/session');
    expect(JSON.parse(text).oidc).toEqual({
      url: 'https://da.example/watch/v1/session/oidc',
    });
  });
});

describe('a sign-in is refused', () => {
  it('with a state that is unknown, of another browser, without its cookie, or used before', async () => {
    const { callback, browser } = await server.begin();
    const changed = callback.replace(/state=[^&]*/, `state=${'x'.repeat(43)}`);
    const other = (await server.begin()).browser;
    expect((await server.finish(changed, browser)).failed).toBe('state');
    expect((await server.finish(callback.replace(/state=[^&]*&?/, ''), browser)).failed).toBe(
      'state',
    );
    expect((await server.finish('/v1/session/oidc/callback', browser)).failed).toBe('state');
    expect((await server.finish(callback, '')).failed).toBe('state');
    expect((await server.finish(callback, other)).failed).toBe('state');
    expect((await server.finish(callback, browser)).failed).toBe(undefined);
    expect((await server.finish(callback, browser)).failed).toBe('state');
    expect(server.logs()).not.toMatch(
      new RegExp(`${CLIENT.secret}|ada@example|code=|${browser.split('=')[1]}`),
    );
  });

  it('with a code of another sign-in, or a code that was used', async () => {
    const [stolen, own] = [await server.begin(), await server.begin()];
    const codeOf = (callback: string) => /code=([^&]*)/.exec(callback)?.[1] ?? '';
    const mixed = own.callback.replace(codeOf(own.callback), codeOf(stolen.callback));
    expect((await server.finish(mixed, own.browser)).failed).toBe('invalid');
    const first = await server.begin();
    await server.finish(first.callback, first.browser);
    const replayed = await server.begin();
    const callback = replayed.callback.replace(codeOf(replayed.callback), codeOf(first.callback));
    expect((await server.finish(callback, replayed.browser)).failed).toBe('invalid');
    expect(server.logs()).toContain('the provider returned invalid_grant');
  });

  it('after a restart in between, and works then', async () => {
    const { callback, browser } = await server.begin();
    await server.restart();
    expect((await server.finish(callback, browser)).failed).toBe('state');
    expect((await server.signIn()).failed).toBe(undefined);
  });

  it('while the provider is away, which prevents neither the start nor a later sign-in', async () => {
    const { callback, browser } = await server.begin();
    const away = (path: string, response: { destroy(): unknown }) =>
      path !== '' && Boolean(response.destroy());
    server.provider.fault = away;
    expect((await server.finish(callback, browser)).failed).toBe('unavailable');
    await server.restart();
    const { headers } = await server.get('/v1/session/oidc');
    expect(headers.location).toBe(`${server.url}/#/sign-in?failed=unavailable`);
    expect((await signInWith(server.url, ADMIN_TOKEN)).body.signed_in, 'tokens still work').toBe(
      true,
    );
    server.provider.fault = undefined;
    expect((await server.signIn()).failed).toBe(undefined);
  });

  it('if the configuration of the provider is of another one, unusable or large', async () => {
    // A failed start is not remembered.
    await server.restart();
    const oversized = large('/.well-known/openid-configuration');
    const other = configuredWith(server.provider, { issuer: 'https://other.example' });
    const without = (changes: object) => configuredWith(server.provider, { ...changes });
    for (const [fault, detail] of [
      [other, 'does not match'],
      [oversized, LARGE],
      [
        without({ authorization_endpoint: undefined }),
        'its configuration has no usable authorization_endpoint',
      ],
      [without({ jwks_uri: '/jwks' }), 'its configuration has no usable jwks_uri'],
      [
        without({ id_token_signing_alg_values_supported: ['HS256', 'none'] }),
        'it signs ID tokens only with HS256, none: choose RS256 or ES256',
      ],
    ] as const) {
      server.provider.fault = fault;
      const { status, headers } = await server.get('/v1/session/oidc');
      expect([status, headers.location], detail).toEqual([
        302,
        expect.stringContaining('failed=unavailable'),
      ]);
      expect(server.logs()).toContain(detail);
    }
  });

  it.each(['/token', '/jwks'])('if the provider sends more than a mebibyte at %s', async (path) => {
    await server.restart();
    server.provider.fault = large(path);
    expect((await server.signIn()).failed).toBe('invalid');
    expect(server.logs()).toContain(LARGE);
  });

  it('without a value for a role, and the log says why', async () => {
    for (const [groups, detail] of [
      [undefined, 'claim absent'],
      [['a', 'b', 'c'], 'none of 3 values in oidc.roles'],
      ['', 'none of 1 values in oidc.roles'],
    ]) {
      server.provider.person = { sub: 'ada', groups };
      expect((await server.signIn()).failed).toBe('no_role');
      expect(server.logs()).toContain(`"detail":${JSON.stringify(detail)}`);
    }
  });

  it('if the token is signed with a key that the provider does not publish', async () => {
    await server.restart();
    server.provider.fault = publishesAnotherKey;
    expect((await server.signIn()).failed).toBe('invalid');
    server.provider.fault = undefined;
    expect((await server.signIn()).failed).toBe(undefined);
  });

  it('if the ID token has an empty subject', async () => {
    // The provider itself refuses one without any character.
    server.provider.person = { sub: ' ', groups: ['watchers'] };
    expect((await server.signIn()).failed).toBe('invalid');
    expect(server.logs()).toContain('the ID token has an empty subject');
  });

  it('if the secret of the client is wrong', async () => {
    const server = await open({ oidc: { client_secret: 'wrong' } });
    expect((await server.signIn()).failed).toBe('invalid');
    expect(server.logs()).toContain('the provider refuses the client');
  });

  it('if the person refuses at the provider', async () => {
    server.provider.person = undefined;
    expect((await server.signIn()).failed).toBe('denied');
  });

  it('after 60 of one address within a minute', async () => {
    const statuses = new Set<number>();
    for (let index = 0; index < 60; index += 1)
      statuses.add((await server.get('/v1/session/oidc')).status);
    expect([...statuses]).toEqual([302]);
    const { status, headers } = await server.get('/v1/session/oidc');
    expect([status, Number(headers['retry-after'])]).toEqual([429, expect.any(Number)]);
  });

  it('and counted and audited by address', async () => {
    const counted = async () =>
      Number(
        /_failures_total\{reason="oidc"\} (\d+)/.exec((await server.get('/metrics')).text)?.[1],
      );
    const before = await counted();
    for (const _ of [1, 2]) await server.finish('/v1/session/oidc/callback?state=x', '');
    await expect.poll(counted).toBe(before + 2);
    const entries = server.query((db) =>
      db
        .prepare("SELECT detail FROM audit WHERE action = 'auth.refused' AND address = ?")
        .pluck()
        .all(server.client.address),
    );
    expect(entries).toEqual(['oidc']);
  });
});

it('a sign-in leads to no other page than the dashboard', async () => {
  for (const to of [
    '//evil.example',
    'x\r\nset-cookie: a=b',
    'a#b',
    '%0d%0ax',
    '\\\\evil.example',
    'é\u{1f600}',
  ]) {
    const { location = '' } = await server.signIn(to);
    const target = new URL(location);
    expect([target.origin, target.pathname, target.search], to).toEqual([server.url, '/', '']);
    expect(location).toMatch(/^[\x21-\x7e]+$/);
    expect(location.split('#')).toHaveLength(2);
  }
});

describe('without a provider', () => {
  const app = useApp();

  it('both pages do not exist, and the session names none', async () => {
    for (const path of ['/v1/session/oidc', '/v1/session/oidc/callback?code=a&state=b'])
      expect(problemOf(await call(app.url, path)).status).toBe(404);
    expect(JSON.parse((await call(app.url, '/v1/session')).text).oidc).toBeNull();
  });
});

import { connect } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { sha256 } from '../../src/access/access.ts';
import { CredentialStore, makeToken } from '../../src/access/credentials-store.ts';
import { openBeside } from '../../src/ledger/open.ts';
import type { Config } from '../../src/operations/config/schema.ts';
import { call, type HttpResponse, problemOf } from '../support/app/http-calls.ts';
import { ADMIN_TOKEN, openLookups, userPath } from '../support/app/lookups.ts';
import { API_KEY, openApp } from '../support/app/running-app.ts';
import { serve } from '../support/servers/upstream-server.ts';
import { tempFolder } from '../support/temp-folder.ts';

// The limits use only this clock, which the tests advance.
beforeEach(() => {
  vi.useFakeTimers({ toFake: ['Date'] });
});
afterEach(() => {
  vi.useRealTimers();
});

type Limited = {
  request(
    headers: Record<string, string>,
    path?: string,
    localAddress?: string,
  ): Promise<HttpResponse>;
  token(): string;
};

/** Opens an app with these limits; `token` creates a token of the role service in its ledger. */
async function limited(limits: Partial<Config['limits']>): Promise<Limited> {
  const database = join(tempFolder(), 'ledger.db');
  const app = await openApp({ database, limits });
  onTestFinished(() => app.close());
  return {
    request: (headers, path = '/v1/submissions', localAddress = '127.0.0.1') =>
      call(app.url, path, { headers: { 'x-api-key': [], ...headers }, localAddress }),
    token() {
      const { database: ledger, close } = openBeside({ file: database, now: 0 });
      const secret = makeToken('service');
      new CredentialStore(ledger).add(
        { hash: sha256(secret), role: 'service', name: 'limited' },
        0,
      );
      close();
      return secret;
    },
  };
}

const key = (secret: string) => ({ 'x-api-key': secret });
const GOOD = key(API_KEY);
const limitOf = ({ headers }: HttpResponse) => [
  headers['ratelimit-limit'],
  headers['ratelimit-remaining'],
];

describe('the requests of one credential', () => {
  it('are counted in headers, refused with 429 and Retry-After past the limit, and counted again a minute later', async () => {
    const app = await limited({ requests_per_minute: 2 });
    expect(limitOf(await app.request(GOOD))).toEqual(['2', '1']);
    vi.setSystemTime(Date.now() + 20_000);
    expect(limitOf(await app.request(GOOD, '/v1/submissions/missing'))).toEqual(['2', '0']);
    const refused = await app.request(GOOD);
    expect(refused.status).toBe(429);
    expect(problemOf(refused).detail).toMatch(/^at most 2 requests a minute; try again in \d+ s$/);
    expect(refused.headers['retry-after']).toBe(refused.headers['ratelimit-reset']);
    expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0);
    expect(Number(refused.headers['retry-after'])).toBeLessThanOrEqual(40);
    vi.setSystemTime(Date.now() + 41_000);
    expect((await app.request(GOOD)).status).toBe(200);
  });

  it('are the same in both headers that may carry it', async () => {
    const app = await limited({ requests_per_minute: 2 });
    await app.request(GOOD);
    expect(limitOf(await app.request({ authorization: `Bearer ${API_KEY}` }))).toEqual(['2', '0']);
  });

  it('are independent of other credentials from the same address and of requests without one', async () => {
    const app = await limited({ requests_per_minute: 1 });
    const other = key(app.token());
    await app.request(GOOD);
    expect((await app.request(GOOD)).status).toBe(429);
    expect((await app.request(other)).status).toBe(200);
    expect((await app.request({}, '/openapi.json')).status).toBe(200);
    expect((await app.request({}, '/openapi.json')).status).toBe(429);
  });

  it('include requests that are not found, invalid or forbidden', async () => {
    const app = await limited({ requests_per_minute: 3 });
    const statuses: number[] = [];
    for (const path of ['/nowhere', '/v1/submissions?limit=x', '/v1/audit', '/docs'])
      statuses.push((await app.request(GOOD, path)).status);
    expect(statuses.at(-1)).toBe(429);
    expect(statuses.slice(0, 3)).toEqual([404, 400, 403]);
  });

  it('are not limited by 0, nor on routes for monitoring', async () => {
    const off = await limited({ requests_per_minute: 0 });
    expect(limitOf(await off.request(GOOD))).toEqual([undefined, undefined]);
    const app = await limited({ requests_per_minute: 1 });
    await app.request(GOOD);
    for (const path of ['/livez', '/readyz', '/metrics', '/livez', '/readyz', '/metrics']) {
      const response = await app.request(GOOD, path);
      expect([response.status, ...limitOf(response)]).toEqual([200, undefined, undefined]);
    }
  });

  it('guessed ones share the bucket of their address, regardless of forwarding headers', async () => {
    const app = await limited({ requests_per_minute: 3 });
    const claim = (address: string) => ({
      'x-forwarded-for': address,
      forwarded: `for=${address}`,
      'x-real-ip': address,
    });
    expect((await app.request({ ...key('guess-1'), ...claim('192.0.2.1') })).status).toBe(401);
    expect((await app.request({ ...key('guess-2'), ...claim('192.0.2.2') })).status).toBe(401);
    expect((await app.request(claim('192.0.2.3'))).status).toBe(401);
    expect((await app.request({ ...key('guess-3'), ...claim('192.0.2.4') })).status).toBe(429);
    expect((await app.request(GOOD)).status).toBe(200);
  });
});

describe('wrong credentials of one address', () => {
  const guess = (app: Limited, secret: string) =>
    app.request(key(secret)).then(({ status }) => status);

  it('are not looked up past the limit for the rest of the minute', async () => {
    const app = await limited({ failed_authentications_per_minute: 2 });
    expect([await guess(app, 'a'), await guess(app, 'b')]).toEqual([401, 401]);
    const refused = await app.request({ authorization: 'Bearer c' });
    expect(refused.status).toBe(429);
    expect(problemOf(refused).detail).toMatch(
      /^too many wrong credentials came from this address; try again in \d+ s$/,
    );
    expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0);
    expect(limitOf(refused)).toEqual(['2', '0']);
    expect(refused.headers['www-authenticate']).toBeUndefined();
    vi.setSystemTime(Date.now() + 61_000);
    expect(await guess(app, 'd')).toBe(401);
  });

  it('get Retry-After even if all arrived at once', async () => {
    const database = join(tempFolder(), 'ledger.db');
    const app = await openApp({ database, limits: { failed_authentications_per_minute: 2 } });
    onTestFinished(() => app.close());
    const { hostname, port } = new URL(app.url);
    const socket = connect(Number(port), hostname);
    const guess = (end: string) =>
      `GET /v1/submissions HTTP/1.1\r\nhost: x\r\nx-api-key: wrong\r\n${end}\r\n`;
    socket.write(`${guess('').repeat(3)}${guess('connection: close\r\n')}`);
    const received = await text(socket);
    expect(received.match(/HTTP\/1.1 \d+/g)).toEqual(
      [401, 401, 429, 429].map((status) => `HTTP/1.1 ${status}`),
    );
    expect(received.match(/retry-after: \d+/g)).toEqual(['retry-after: 60', 'retry-after: 60']);
  });

  it('do not lock out credentials used before, tokens of dawatch and requests without a credential', async () => {
    const app = await limited({ failed_authentications_per_minute: 1 });
    expect((await app.request(GOOD)).status).toBe(200);
    expect([await guess(app, 'a'), await guess(app, 'b')]).toEqual([401, 429]);
    expect((await app.request(GOOD)).status).toBe(200);
    expect((await app.request({ authorization: `Bearer ${API_KEY}` })).status).toBe(200);
    expect((await app.request(key(app.token()))).status).toBe(200);
    expect(await guess(app, makeToken('service'))).toBe(401);
    expect((await app.request({})).status).toBe(401);
    expect((await app.request({}, '/docs')).status).toBe(200);
    expect((await app.request(key('c'), '/livez')).status).toBe(200);
  });

  it.each(['/v1/submissions', '/v1/audit', '/docs', '/nowhere', '/v1/whoami'])(
    'past the limit a right guess gets the same response as a wrong one, at %s',
    async (path) => {
      const app = await limited({ failed_authentications_per_minute: 1 });
      await guess(app, 'a');
      const responses = [];
      for (const secret of [API_KEY, 'wrong', `dawatch_service_${API_KEY}`])
        for (const headers of [key(secret), { authorization: `Bearer ${secret}` }]) {
          const { status, headers: responseHeaders, text } = await app.request(headers, path);
          const { 'x-request-id': _id, date: _date, ...same } = responseHeaders;
          responses.push(JSON.stringify([status, same, { ...JSON.parse(text), instance: '' }]));
        }
      expect(new Set(responses).size).toBe(1);
      expect(responses[0]).toMatch(/^\[429,/);
    },
  );

  it.each(['/docs', '/nowhere', '/openapi.json'])(
    'count also at %s, which requires none',
    async (path) => {
      const app = await limited({ failed_authentications_per_minute: 2 });
      for (const secret of ['a', 'b'])
        expect((await app.request(key(secret), path)).status).not.toBe(429);
      expect(await guess(app, 'c')).toBe(429);
    },
  );

  it('count once if repeated, and then lock only that credential', async () => {
    const app = await limited({ failed_authentications_per_minute: 3 });
    const statuses = [];
    for (let times = 0; times < 5; times++) statuses.push(await guess(app, 'outdated'));
    expect(statuses).toEqual([401, 401, 401, 429, 429]);
    expect((await app.request(GOOD)).status).toBe(200);
    expect([await guess(app, 'a'), await guess(app, 'b'), await guess(app, 'c')]).toEqual([
      401, 401, 429,
    ]);
  });

  it('lock one address, not another', async () => {
    const app = await limited({ failed_authentications_per_minute: 1 });
    expect([await guess(app, 'a'), await guess(app, 'b')]).toEqual([401, 429]);
    expect((await app.request(GOOD, '/v1/submissions', '127.0.0.2')).status).toBe(200);
    expect((await app.request(GOOD)).status).toBe(429);
  });

  it('do not include requests without a credential or with a wrong role', async () => {
    const app = await limited({ failed_authentications_per_minute: 1 });
    for (let times = 0; times < 3; times++) {
      expect((await app.request({})).status).toBe(401);
      expect((await app.request(GOOD)).status).toBe(200);
      expect((await app.request(GOOD, '/v1/audit')).status).toBe(403);
    }
    expect([await guess(app, 'a'), await guess(app, 'b')]).toEqual([401, 429]);
  });

  it('are not limited by 0', async () => {
    const app = await limited({ failed_authentications_per_minute: 0 });
    for (let times = 0; times < 30; times++) expect(await guess(app, `guess-${times}`)).toBe(401);
  });

  it('are counted regardless of forwarding headers', async () => {
    const app = await limited({ failed_authentications_per_minute: 1 });
    await app.request({ ...key('a'), 'x-forwarded-for': '192.0.2.1' });
    expect((await app.request({ ...key('b'), 'x-forwarded-for': '192.0.2.2' })).status).toBe(429);
  });
});

describe('where the upstream judges the bearers', () => {
  const LISTING = '/admin/get_all_users?limit=1';

  /**
   * The upstream responds to a bearer with the status at its beginning; if `held`, only after
   * `release`, so that many lookups are in flight.
   */
  async function forwarding(limits: Partial<Config['limits']>, { held = false } = {}) {
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    if (!held) release();
    const revoked = new Set<string>();
    const upstream = await serve(({ headers: { authorization = '' } }, response) => {
      const status = revoked.has(authorization)
        ? 401
        : Number(authorization.slice('Bearer '.length).split('-')[0]);
      void released.then(() =>
        response.writeHead(status).end(status === 200 ? '{"id":"1"}' : '{"error":"x"}'),
      );
    });
    const lookups = await openLookups({ upstreamUrl: upstream.url, bearer: null, limits });
    const show = (bearer: string, path = userPath()) => lookups.get(path, bearer);
    const status = async (bearer: string) => (await show(bearer)).status;
    return {
      lookups,
      upstream,
      show,
      sendResponse: release,
      status,
      /**
       * The upstream responds once this number of requests was refused, while all others are in
       * flight.
       */
      atOnce(bearers: readonly string[], { refused }: { refused: number }): Promise<number[]> {
        let left = refused;
        const one = async (bearer: string) => {
          const got = await status(bearer);
          if (got === 429 && --left === 0) release();
          return got;
        };
        return Promise.all(bearers.map(one));
      },
      revoke: (bearer: string) => revoked.add(`Bearer ${bearer}`),
    };
  }

  it('an accepted bearer passes while its address is locked, until the upstream refuses it', async () => {
    const { status, revoke } = await forwarding({ failed_authentications_per_minute: 2 });
    expect(await status('200-valid')).toBe(200);
    expect([await status('401-a'), await status('401-b'), await status('401-c')]).toEqual([
      401, 401, 429,
    ]);
    expect([await status('200-valid'), await status('200-never-seen')]).toEqual([200, 429]);
    revoke('200-valid');
    expect([await status('200-valid'), await status('200-valid')]).toEqual([401, 429]);
  });

  it('an accepted bearer is exempt only at the address that used it', async () => {
    const { lookups, status } = await forwarding({ failed_authentications_per_minute: 1 });
    expect(await status('200-valid')).toBe(200);
    expect([await status('401-a'), await status('401-b'), await status('200-valid')]).toEqual([
      401, 429, 200,
    ]);
    const fromOtherAddress = async (bearer: string) =>
      (
        await call(lookups.url, userPath(), {
          headers: { authorization: `Bearer ${bearer}` },
          localAddress: '127.0.0.2',
        })
      ).status;
    expect([await fromOtherAddress('401-a'), await fromOtherAddress('200-valid')]).toEqual([
      401, 429,
    ]);
  });

  it('a client with an outdated bearer locks out no other client of its address', async () => {
    const { status, upstream } = await forwarding({ failed_authentications_per_minute: 3 });
    const outdated = [];
    for (let times = 0; times < 50; times++) outdated.push(await status('401-outdated'));
    expect(outdated.slice(0, 4)).toEqual([401, 401, 401, 429]);
    expect(upstream.requests).toHaveLength(3);
    for (let n = 0; n < 10; n++) expect(await status(`200-new-${n}`)).toBe(200);
  });

  it('a client with many wrong bearers locks out none that the upstream accepted before', async () => {
    const { status } = await forwarding({ failed_authentications_per_minute: 5 });
    for (let n = 0; n < 10; n++) expect(await status(`200-${n}`)).toBe(200);
    for (let n = 0; n < 50; n++) expect(await status(`401-${n}`)).toBe(n < 5 ? 401 : 429);
    for (let n = 0; n < 10; n++) expect(await status(`200-${n}`)).toBe(200);
  });

  it('a key of dawatch counts as a wrong bearer', async () => {
    const lookups = await openLookups({
      bearer: null,
      limits: { failed_authentications_per_minute: 2 },
    });
    const statuses = [];
    for (const bearer of [API_KEY, ADMIN_TOKEN, 'wrong', API_KEY])
      statuses.push((await lookups.get(userPath(), bearer)).status);
    expect(statuses).toEqual([401, 401, 429, 429]);
  });

  it('an accepted bearer is valid for lookups only; elsewhere it counts as a guess', async () => {
    const { lookups, show } = await forwarding({ failed_authentications_per_minute: 1 });
    expect((await show('200-valid')).status).toBe(200);
    const headers = { authorization: 'Bearer 200-valid', 'x-api-key': 'guess' };
    expect((await call(lookups.url, '/v1/submissions', { headers })).status).toBe(401);
    expect((await call(lookups.url, '/v1/submissions', { headers })).status).toBe(429);
    expect((await show('200-valid', '/v1/submissions')).status).toBe(429);
    expect((await call(lookups.url, userPath(), { headers })).status).toBe(200);
  });

  it('lookups ignore x-api-key and do not reveal whether it is known', async () => {
    const { lookups } = await forwarding({ failed_authentications_per_minute: 1 });
    const remaining: number[] = [];
    for (const secret of ['guess', API_KEY, 'guess']) {
      const response = await call(lookups.url, userPath(), { headers: key(secret) });
      expect(response.status).toBe(401);
      remaining.push(Number(response.headers['ratelimit-remaining']));
    }
    expect(remaining).toEqual([59_999, 59_998, 59_997]);
  });

  it('an accepted bearer has its own request bucket; others share that of their address', async () => {
    const { show } = await forwarding({ requests_per_minute: 2 });
    expect(limitOf(await show('200-a'))).toEqual(['2', '1']);
    expect(limitOf(await show('200-a'))).toEqual(['2', '1']);
    expect(limitOf(await show('200-b'))).toEqual(['2', '0']);
    expect((await show('200-c')).status).toBe(429);
    expect(limitOf(await show('200-b'))).toEqual(['2', '1']);
  });

  it('at most the limit of wrong bearers reaches the upstream, even concurrently', async () => {
    const { status, upstream, atOnce } = await forwarding(
      { failed_authentications_per_minute: 20 },
      { held: true },
    );
    const statuses = await atOnce(
      Array.from({ length: 150 }, (_, n) => `401-${n}`),
      { refused: 130 },
    );
    expect(statuses.filter((one) => one === 401)).toHaveLength(20);
    expect(statuses.filter((one) => one === 429)).toHaveLength(130);
    expect(upstream.requests).toHaveLength(20);
    vi.setSystemTime(Date.now() + 61_000);
    expect(await status('401-later')).toBe(401);
  });

  it('an attempt in flight counts, and is uncounted unless it fails', async () => {
    const { status, upstream, atOnce } = await forwarding(
      { failed_authentications_per_minute: 3 },
      { held: true },
    );
    const statuses = await atOnce(
      Array.from({ length: 10 }, (_, n) => `200-${n}`),
      { refused: 7 },
    );
    expect(statuses.filter((one) => one === 200)).toHaveLength(3);
    for (let n = 10; n < 15; n++) expect(await status(`200-${n}`)).toBe(200);
    for (let n = 0; n < 5; n++) expect(await status(`404-${n}`)).toBe(404);
    expect(upstream.requests).toHaveLength(13);
  });

  it('a client that disconnects before the response is counted', async () => {
    const limits = { failed_authentications_per_minute: 1 };
    const {
      lookups,
      upstream,
      status,
      sendResponse: respond,
    } = await forwarding(limits, { held: true });
    const hangUp = new AbortController();
    const headers = { 'x-api-key': [], authorization: 'Bearer 401-gone' };
    const gone = call(lookups.url, userPath(), { headers, signal: hangUp.signal });
    const rejection = expect(gone).rejects.toThrow();
    await vi.waitFor(() => expect(upstream.requests).toHaveLength(1));
    hangUp.abort();
    await rejection;
    expect(await status('401-next')).toBe(429);
    respond();
    await vi.waitFor(() => expect(lookups.audit()).toHaveLength(1));
    expect(await status('401-next')).toBe(429);
  });

  it.each([
    ['403-', 403],
    ['500-', 502],
    ['429-', 502],
  ])(
    'bearers that get %s from the upstream count as wrong, which bounds the audit',
    async (bearer, response) => {
      const { lookups, show } = await forwarding({ failed_authentications_per_minute: 2 });
      const statuses: number[] = [];
      for (let n = 0; n < 5; n++) statuses.push((await show(`${bearer}${n}`, LISTING)).status);
      expect(statuses).toEqual([response, response, 429, 429, 429]);
      expect(lookups.audit()).toHaveLength(2);
    },
  );

  it('failures of the upstream lock out no accepted bearer', async () => {
    const { show, status } = await forwarding({ failed_authentications_per_minute: 1 });
    expect(await status('200-valid')).toBe(200);
    // A single user is not a listing.
    for (let n = 0; n < 3; n++)
      expect((await show('404-x', LISTING)).status).toBe(n === 0 ? 502 : 429);
    expect(await status('200-valid')).toBe(200);
  });
});

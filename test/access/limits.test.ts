import { EventEmitter, once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { sha256 } from '../../src/access/access.ts';
import { refusalRecorder } from '../../src/access/authentication.ts';
import { CredentialStore, makeToken } from '../../src/access/credentials-store.ts';
import { openBeside } from '../../src/ledger/open.ts';
import type { Config } from '../../src/wiring/settings.ts';
import { call, type HttpResponse, problemOf } from '../support/app/http-calls.ts';
import { openLookups, userPath } from '../support/app/lookups.ts';
import { API_KEY, appForTest } from '../support/app/running-app.ts';
import { openLedger } from '../support/ledger/ledger-file.ts';
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
  const app = await appForTest({ database, limits });
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

describe('the requests of one credential', () => {
  it('are refused with 429 and Retry-After past the limit, and counted again a minute later', async () => {
    const app = await limited({ requests_per_minute: 2 });
    expect((await app.request(GOOD)).status).toBe(200);
    vi.setSystemTime(Date.now() + 20_000);
    const inOtherHeader = { authorization: `Bearer ${API_KEY}` };
    expect((await app.request(inOtherHeader)).status).toBe(200);
    const refused = await app.request(GOOD);
    expect(refused.status).toBe(429);
    expect(problemOf(refused).detail).toMatch(/^at most 2 requests a minute; try again in \d+ s$/);
    expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0);
    expect(Number(refused.headers['retry-after'])).toBeLessThanOrEqual(40);
    vi.setSystemTime(Date.now() + 41_000);
    expect((await app.request(GOOD)).status).toBe(200);
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
    expect((await off.request(GOOD)).status).toBe(200);
    const app = await limited({ requests_per_minute: 1 });
    await app.request(GOOD);
    for (const path of ['/livez', '/readyz', '/metrics', '/livez', '/readyz', '/metrics']) {
      expect((await app.request(GOOD, path)).status).toBe(200);
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

const LIMIT = { failed_authentications_per_minute: 2 };

describe('wrong credentials of one address', () => {
  const guess = (app: Limited, secret: string, path?: string) =>
    app.request(key(secret), path).then(({ status }) => status);

  it('get 429 with Retry-After past the limit, for the rest of the minute', async () => {
    const app = await limited(LIMIT);
    expect([await guess(app, 'a'), await guess(app, 'a')]).toEqual([401, 401]);
    const refused = await app.request({ authorization: 'Bearer c' });
    expect(refused.status).toBe(429);
    expect(problemOf(refused).detail).toMatch(
      /^too many wrong credentials came from this address; try again in \d+ s$/,
    );
    expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0);
    expect(refused.headers['www-authenticate']).toBeUndefined();
    vi.setSystemTime(Date.now() + 61_000);
    expect(await guess(app, 'd')).toBe(401);
  });

  it('leave correct ones, requests without one, and other addresses as they are', async () => {
    const app = await limited(LIMIT);
    for (const status of [401, 401, 429]) expect(await guess(app, 'wrong')).toBe(status);
    expect((await app.request(GOOD)).status).toBe(200);
    expect((await app.request(key(app.token()))).status).toBe(200);
    expect((await app.request({})).status).toBe(401);
    expect((await app.request(key('wrong'), '/livez')).status).toBe(200);
    expect((await app.request(key('wrong'), undefined, '127.0.0.2')).status).toBe(401);
  });

  it.each(['/docs', '/nowhere'])('count also at %s, which requires none', async (path) => {
    const app = await limited(LIMIT);
    for (const secret of ['a', 'b']) expect(await guess(app, secret, path)).not.toBe(429);
    expect(await guess(app, 'c')).toBe(429);
  });

  it('do not include requests without a credential or with a wrong role, and are not limited by 0', async () => {
    const app = await limited(LIMIT);
    for (let times = 0; times < 3; times++) {
      expect((await app.request({})).status).toBe(401);
      expect((await app.request(GOOD, '/v1/audit')).status).toBe(403);
    }
    expect(await guess(app, 'a')).toBe(401);
    const off = await limited({ failed_authentications_per_minute: 0 });
    for (let times = 0; times < 30; times++) expect(await guess(off, `guess-${times}`)).toBe(401);
  });
});

describe('where the upstream judges the bearers', () => {
  /** The upstream responds to a bearer with the status at its beginning. */
  async function forwarding() {
    const upstream = await serve(({ headers: { authorization = '' } }, response) => {
      const status = Number(authorization.slice('Bearer '.length).split('-')[0]);
      response.writeHead(status).end(status === 200 ? '{"id":"1"}' : '{"error":"x"}');
    });
    const lookups = await openLookups({ upstreamUrl: upstream.url, bearer: null, limits: LIMIT });
    const statusOf = async (bearer: string) => (await lookups.get(userPath(), bearer)).status;
    return { lookups, upstream, statusOf };
  }

  it('an address whose bearers it refused has none forwarded for the rest of the minute', async () => {
    const { upstream, statusOf } = await forwarding();
    for (const [bearer, status] of [
      ['200-valid', 200],
      ['401-a', 401],
      ['404-b', 404],
      ['403-d', 403],
      ['200-valid', 429],
      ['401-e', 429],
    ] as const)
      expect(await statusOf(bearer)).toBe(status);
    expect(upstream.requests).toHaveLength(4);
    vi.setSystemTime(Date.now() + 61_000);
    expect(await statusOf('200-valid')).toBe(200);
  });

  it.each([429, 500])('one whose bearers get %i cannot fill the audit either', async (status) => {
    const { lookups, statusOf } = await forwarding();
    const statuses: number[] = [];
    for (let n = 0; n < 5; n++) statuses.push(await statusOf(`${status}-${n}`));
    expect(statuses).toEqual([502, 502, 429, 429, 429]);
    expect(lookups.audit()).toHaveLength(2);
  });

  it('lookups in flight count as well, also of a client that has disconnected, until they succeed', async () => {
    const held: ServerResponse[] = [];
    const arrived = new EventEmitter();
    const upstream = await serve((_request, response) => {
      held.push(response);
      arrived.emit('request');
    });
    const limits = { failed_authentications_per_minute: 3 };
    const { url, get } = await openLookups({ upstreamUrl: upstream.url, bearer: null, limits });
    /** Resolves when the request has arrived at the upstream. */
    const send = async (bearer: string, signal?: AbortSignal) => {
      const arrival = once(arrived, 'request');
      const headers = { authorization: `Bearer ${bearer}` };
      const response = fetch(`${url}${userPath()}`, { headers, signal: signal ?? null });
      await arrival;
      return { response };
    };
    const gone = new AbortController();
    const aborted = await send('a', gone.signal);
    gone.abort();
    await expect(aborted.response).rejects.toThrow();
    const open = [await send('b'), await send('c')];
    const more = Array.from({ length: 20 }, (_, index) => get(userPath(), `${index}`));
    for (const { status, headers } of await Promise.all(more))
      expect([status, headers['retry-after']]).toEqual([429, '1']);
    expect(held).toHaveLength(3);
    for (const response of held) response.end('{"id":"1"}');
    for (const { response } of open) expect((await response).status).toBe(200);
    const later = await send('d');
    held.at(-1)?.end('{"id":"1"}');
    expect((await later.response).status).toBe(200);
  });

  it('a key of dawatch counts as a refused one', async () => {
    const { statusOf } = await forwarding();
    for (const [bearer, status] of [
      [makeToken('admin'), 401],
      [makeToken('user'), 401],
      ['200-valid', 429],
    ] as const)
      expect(await statusOf(bearer)).toBe(status);
  });

  it('lookups ignore x-api-key and do not reveal whether it is known', async () => {
    const { lookups } = await forwarding();
    const send = (secret: string) => call(lookups.url, userPath(), { headers: key(secret) });
    const [guessed, known] = [problemOf(await send('guess')), problemOf(await send(API_KEY))];
    expect([guessed.status, known.status]).toEqual([401, 401]);
    expect(known.detail).toBe(guessed.detail);
  });
});

describe('refused sign-ins in the audit', () => {
  function open() {
    const ledger = openLedger();
    const clock = { now: () => Date.now() };
    const record = refusalRecorder({ audit: ledger.audit, clock });
    const entries = () =>
      ledger.audit
        .list({ limit: 1_000 })
        .entries.toReversed()
        .map(({ address, detail }) => [address, detail]);
    return { record, entries };
  }

  it('have one entry of a network in an hour', () => {
    const { record, entries } = open();
    record('absent', '192.0.2.1');
    for (let hour = 0; hour < 2; hour += 1) {
      record('unknown', '192.0.2.1');
      record('malformed', '192.0.2.1');
      record('refused', '2001:db8:0:1::7');
      vi.setSystemTime(Date.now() + 3_600_000);
    }
    const once = [
      ['192.0.2.1', 'unknown'],
      ['2001:db8:0:1::/64', 'refused'],
    ];
    expect(entries()).toEqual([...once, ...once]);
  });

  it('have a bounded number of entries, of any number of networks', () => {
    const { record, entries } = open();
    for (let index = 0; index < 500; index += 1)
      record('unknown', `10.0.${index >> 8}.${index & 255}`);
    expect(entries()).toHaveLength(100);
  });
});

import dns from 'node:dns';
import type { Socket } from 'node:net';
import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib';
import { getGlobalDispatcher, setGlobalDispatcher } from 'undici';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { discover } from '../../src/access/provider.ts';
import { UpstreamUsers } from '../../src/access/users.ts';
import { Heartbeat } from '../../src/alerts/heartbeat.ts';
import { configureFetch } from '../../src/lib/outgoing-proxy.ts';
import type { Channel } from '../../src/notifications/channels/channel.ts';
import { createSlackChannel } from '../../src/notifications/channels/slack.ts';
import { createWebhookChannel, makeSecret } from '../../src/notifications/channels/webhook.ts';
import type { LookupAll } from '../../src/notifications/transport/address-guard.ts';
import { createHttpPost } from '../../src/notifications/transport/http-post.ts';
import { classify } from '../../src/submissions/classify.ts';
import { SubmissionEventType } from '../../src/submissions/event-types.ts';
import { outgoing, submissionEvent } from '../notifications/sample-events.ts';
import { startConnectProxy } from '../support/servers/connect-proxy.ts';
import { openReceiver } from '../support/servers/receiver.ts';
import { openClient, serveRaw } from '../support/servers/upstream-server.ts';
import { createVirtualClock } from '../support/virtual-time/virtual-clock.ts';

const ID = '11111111-1111-4111-8111-111111111111';
const { signal } = new AbortController();

/** Returns why a request failed; undefined: its response was read. */
type Send = () => Promise<string | undefined>;
type Place = {
  open: (url: string, lookup?: LookupAll) => Send;
  /** What the server returns with 200. */
  body: (url: string) => object;
};

function openPost(lookup?: LookupAll) {
  const options = { guard: undefined, version: 'test', now: Date.now };
  const http = createHttpPost({ ...options, ...(lookup && { lookup }) });
  onTestFinished(() => http.close());
  return http;
}

/** Sends an event over the channel. */
function deliveryBy(channel: Channel): Send {
  const events = [outgoing(submissionEvent(SubmissionEventType.finalized))];
  return async () => {
    const result = await channel.send(events, signal);
    return result.kind === 'failed' ? result.error : undefined;
  };
}

const UPSTREAM: Record<string, Place> = {
  'a poll': {
    open(url) {
      const client = openClient(url, { connections: 1 });
      return async () => {
        const result = classify(ID, await client.getSubmissionInfo(ID));
        return result.kind === 'pending' ? undefined : (result.error ?? result.kind);
      };
    },
    body: () => ({ id: ID, state: 'Pending', error: null }),
  },
  'a user lookup': {
    open(url) {
      const paths = { getPath: '/users/get_user', listPath: '/admin/get_all_users' };
      const client = openClient(url, { connections: 1 });
      const users = new UpstreamUsers({ client, bearer: 'x', ...paths, parameters: 'query' });
      return async () => {
        const { kind, ...result } = await users.getUser({ name: 'Ada', email: 'a@b.test' });
        return kind === 'found' ? undefined : 'detail' in result ? result.detail : kind;
      };
    },
    body: () => ({ id: '1', name: 'Ada', email: 'a@b.test', app_id: 1, assigned_wallet: '0xa' }),
  },
};

const OTHERS: Record<string, Place> = {
  'a webhook': {
    open(url, lookup) {
      const { post } = openPost(lookup);
      const endpoint = { url, secrets: [makeSecret()] };
      const common = { post, refusalOf: () => undefined, now: Date.now };
      return deliveryBy(createWebhookChannel({ endpoint, ...common }));
    },
    body: () => ({}),
  },
  'a message of a channel': {
    open: (url, lookup) => deliveryBy(createSlackChannel({ url, post: openPost(lookup).post })),
    body: () => ({}),
  },
  'a heartbeat': {
    open(url, lookup) {
      const { get } = openPost(lookup);
      const clock = createVirtualClock(0);
      return () =>
        new Promise((resolve) => {
          const heartbeat = new Heartbeat({
            url,
            everyMs: 60_000,
            clock,
            get,
            defect: () => undefined,
            onBeat({ reason }) {
              heartbeat.stop();
              resolve(reason ?? undefined);
            },
          });
          heartbeat.start();
          void clock.advance(1);
        });
    },
    body: () => ({}),
  },
  'a sign-in': {
    open(url) {
      const earlier = getGlobalDispatcher();
      configureFetch({ reuse: false });
      const own = getGlobalDispatcher();
      onTestFinished(async () => {
        setGlobalDispatcher(earlier);
        await own.destroy();
      });
      const oidc = { issuer: url, client_id: 'x', scopes: [], role_claim: 'groups', roles: {} };
      return () =>
        discover(oidc as unknown as Parameters<typeof discover>[0]).then(
          () => undefined,
          (error) => `${error.message}: ${error.cause?.message}`,
        );
    },
    body: (issuer) => ({ issuer, authorization_endpoint: `${issuer}/a`, jwks_uri: `${issuer}/j` }),
  },
};

const PLACES = Object.entries({ ...UPSTREAM, ...OTHERS });

/** A server of HTTP/1.1 that passes the number of each request of a connection, from 1 on. */
async function serveBytes(respond: (socket: Socket, nth: number) => void) {
  const received = { requests: 0 };
  const server = await serveRaw((socket) => {
    let text = '';
    let nth = 0;
    socket.on('data', (chunk) => {
      text += chunk.toString('latin1');
      const [head, body = ''] = text.split('\r\n\r\n');
      const length = Number(/content-length: (\d+)/i.exec(head ?? '')?.[1] ?? 0);
      if (!text.includes('\r\n\r\n') || body.length < length) return;
      text = '';
      nth += 1;
      received.requests += 1;
      respond(socket, nth);
    });
  });
  return { ...server, received };
}

function responseOf(body: object): string {
  const text = JSON.stringify(body);
  const head = `content-type: application/json\r\ncontent-length: ${text.length}`;
  return `HTTP/1.1 200 OK\r\n${head}\r\n\r\n${text}`;
}

describe.each(PLACES)('%s', (_name, { open, body }) => {
  it('goes to the new address within 15 s of a change of DNS, also while traffic flows', async () => {
    vi.useFakeTimers({ toFake: ['Date'] });
    onTestFinished(() => void vi.useRealTimers());
    const receiver = await openReceiver(
      ({ response }) =>
        response.setHeader('content-type', 'application/json').end(JSON.stringify(body(url))),
      { host: '0.0.0.0' },
    );
    let address = '127.0.0.1';
    const lookup = vi.spyOn(dns, 'lookup');
    onTestFinished(() => lookup.mockRestore());
    const resolve: LookupAll = (_hostname, _options, callback) =>
      callback(null, [{ address, family: 4 }]);
    lookup.mockImplementation(((hostname: string, options: object, callback: never) =>
      resolve(hostname, { ...options, all: true }, callback)) as never);
    const url = `http://service.test:${receiver.port}`;
    const send = open(url, resolve);
    const startedAt = Date.now();
    for (let second = 0; second < 40; second += 1) {
      vi.setSystemTime(startedAt + second * 1_000);
      if (second === 10) address = '127.0.0.2';
      expect(await send()).toBeUndefined();
    }
    const addresses = receiver.requests.map(({ localAddress }) => localAddress);
    expect(new Set(addresses.slice(0, 10))).toEqual(new Set(['127.0.0.1']));
    expect(new Set(addresses.slice(10 + 15))).toEqual(new Set(['127.0.0.2']));
  });

  it('goes through a new connection of a proxy every 15 s', async () => {
    vi.useFakeTimers({ toFake: ['Date'] });
    onTestFinished(() => void vi.useRealTimers());
    const receiver = await openReceiver(({ response }) =>
      response.setHeader('content-type', 'application/json').end(JSON.stringify(body(url))),
    );
    const proxy = await startConnectProxy();
    for (const [name, value] of Object.entries({ http_proxy: proxy.url, no_proxy: '' }))
      vi.stubEnv(name, value);
    onTestFinished(() => void vi.unstubAllEnvs());
    const url = `http://elsewhere.test:${receiver.port}`;
    const send = open(url);
    const startedAt = Date.now();
    for (let nth = 0; nth < 3; nth += 1) {
      vi.setSystemTime(startedAt + nth * 15_001);
      expect(await send()).toBeUndefined();
    }
    expect(proxy.targets).toHaveLength(3);
  });

  it('does not fail when the server resets a reused connection', async () => {
    const server = await serveBytes((socket, nth) =>
      nth === 1 ? socket.write(responseOf(body(server.url))) : socket.resetAndDestroy(),
    );
    const send = open(server.url);
    for (let nth = 0; nth < 4; nth += 1) expect(await send()).toBeUndefined();
    expect(server.sockets.total).toBe(4);
  });

  it('is not sent again when the server resets a new connection, or has begun a response', async () => {
    let isUp = false;
    const server = await serveBytes((socket, nth) => {
      if (!isUp) socket.resetAndDestroy();
      else if (nth === 1) socket.write(responseOf(body(server.url)));
      else socket.end('HTTP/1.1 2');
    });
    const send = open(server.url);
    expect(await send()).toMatch(/closed before a response|fetch failed/);
    expect(server.received.requests).toBe(1);
    isUp = true;
    expect(await send()).toBeUndefined();
    await send();
    expect(server.received.requests).toBe(3);
  });

  it.each([
    ['in one piece', 1_000, 'HTTP/1.1 100 Continue\r\n\r\n'],
    ['byte by byte', 1, 'HTTP/1.1 100 Continue\r\n\r\n'],
    ['twice, with headers', 7, 'HTTP/1.1 100 OK\r\nx: y\r\n\r\nHTTP/1.1 100\r\n\r\n'],
  ])('skips `100 Continue` that it has not requested, %s', async (_what, size, text) => {
    const server = await serveBytes(async (socket) => {
      const bytes = `${text}${responseOf(body(server.url))}`;
      for (let at = 0; at < bytes.length; at += size) {
        socket.write(bytes.slice(at, at + size));
        await new Promise(setImmediate);
      }
    });
    const send = open(server.url);
    for (let nth = 0; nth < 2; nth += 1) expect(await send()).toBeUndefined();
    expect(server.received.requests).toBe(2);
  });
});

describe.each(Object.entries(UPSTREAM))('%s', (_name, { open, body }) => {
  const bytes = Buffer.from(JSON.stringify(body('')));
  it.each<[string, number, Record<string, string>, Buffer]>([
    ['in gzip', 200, { 'content-encoding': 'gzip' }, gzipSync(bytes)],
    ['in deflate', 200, { 'content-encoding': 'Deflate' }, deflateSync(bytes)],
    ['in Brotli', 200, { 'content-encoding': 'br' }, brotliCompressSync(bytes)],
    ['in Zstandard', 200, { 'content-encoding': 'zstd' }, zstdCompressSync(bytes)],
    ['with a false content-encoding', 200, { 'content-encoding': 'gzip' }, bytes],
    ['with a byte order mark', 200, {}, Buffer.concat([Buffer.from('\ufeff'), bytes])],
    ['with status 203', 203, {}, bytes],
  ])('reads a response %s', async (_what, status, headers, content) => {
    const receiver = await openReceiver({ status, headers, body: content });
    expect(await open(receiver.url)()).toBeUndefined();
  });

  it('refuses a response that would expand without limit, and says why', async () => {
    const headers = { 'content-encoding': 'gzip' };
    const receiver = await openReceiver({ headers, body: gzipSync(Buffer.alloc(50_000_000)) });
    expect(await open(receiver.url)()).toContain('a body of more than 1048576 bytes');
  });
});

import dns from 'node:dns';
import {
  brotliCompressSync,
  deflateRawSync,
  deflateSync,
  gzipSync,
  zstdCompressSync,
} from 'node:zlib';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { usersOf } from '../../src/access/users.ts';
import { Heartbeat } from '../../src/alerts/heartbeat.ts';
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
import { openClient } from '../support/servers/upstream-server.ts';
import { createVirtualClock, HeldClock } from '../support/virtual-time/virtual-clock.ts';

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
  const options = { guard: undefined, version: 'test', clock: new HeldClock(1_000) };
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
      const client = openClient(url, { connections: 2 });
      return async () => {
        const result = classify(ID, await client.getSubmissionInfo(ID));
        return result.kind === 'pending' ? undefined : (result.error ?? result.kind);
      };
    },
    body: () => ({ id: ID, state: 'Pending', error: null }),
  },
  'a user lookup': {
    open(url) {
      const paths = { get_path: '/users/get_user', list_path: '/admin/get_all_users' };
      const client = openClient(url, { connections: 2 });
      const settings = { bearer: 'x', users: { ...paths, parameters: 'query' as const } };
      const users = usersOf({ upstreams: { default: settings } }, client);
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
};

const PLACES = Object.entries({ ...UPSTREAM, ...OTHERS });

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
});

describe.each(Object.entries(UPSTREAM))('%s', (_name, { open, body }) => {
  const bytes = Buffer.from(JSON.stringify(body('')));
  it.each<[string, number, Record<string, string>, Buffer]>([
    ['in gzip', 200, { 'content-encoding': 'gzip' }, gzipSync(bytes)],
    ['in deflate', 200, { 'content-encoding': 'Deflate' }, deflateSync(bytes)],
    ['in deflate without a header', 200, { 'content-encoding': 'deflate' }, deflateRawSync(bytes)],
    ['in gzip that is not declared', 200, {}, gzipSync(bytes)],
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

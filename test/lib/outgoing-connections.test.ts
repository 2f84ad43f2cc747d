import dns from 'node:dns';
import {
  brotliCompressSync,
  deflateRawSync,
  deflateSync,
  gzipSync,
  zstdCompressSync,
} from 'node:zlib';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { createWebhookChannel, makeSecret } from '../../src/notifications/channels/webhook.ts';
import type { LookupAll } from '../../src/notifications/transport/address-guard.ts';
import { createHttpPost } from '../../src/notifications/transport/http-post.ts';
import { classify } from '../../src/submissions/classify.ts';
import { SubmissionEventType } from '../../src/submissions/event-types.ts';
import { outgoing, submissionEvent } from '../notifications/sample-events.ts';
import { startConnectProxy } from '../support/servers/connect-proxy.ts';
import { openReceiver } from '../support/servers/receiver.ts';
import { openClient } from '../support/servers/upstream-server.ts';
import { HeldClock } from '../support/virtual-time/virtual-clock.ts';

const ID = '11111111-1111-4111-8111-111111111111';
const { signal } = new AbortController();

/** Returns why a request failed; undefined: its response was read. */
type Send = () => Promise<string | undefined>;
type Place = {
  open: (url: string, lookup?: LookupAll) => Send;
  /** What the server returns with 200. */
  body: (url: string) => object;
};

/** User lookups use the same client. */
const POLL: Place = {
  open(url) {
    const client = openClient(url, { connections: 2 });
    return async () => {
      const result = classify(ID, await client.getSubmissionInfo(ID));
      return result.kind === 'pending' ? undefined : (result.error ?? result.kind);
    };
  },
  body: () => ({ id: ID, state: 'Pending', error: null }),
};

/** Channels and the heartbeat use the same connections. */
const WEBHOOK: Place = {
  open(url, lookup) {
    const options = { guard: undefined, version: 'test', clock: new HeldClock(1_000) };
    const { post, close } = createHttpPost({ ...options, ...(lookup && { lookup }) });
    onTestFinished(() => close());
    const endpoint = { url, secrets: [makeSecret()] };
    const common = { post, refusalOf: () => undefined, now: Date.now };
    const channel = createWebhookChannel({ endpoint, ...common });
    const events = [outgoing(submissionEvent(SubmissionEventType.finalized))];
    return async () => {
      const result = await channel.send(events, signal);
      return result.kind === 'failed' ? result.error : undefined;
    };
  },
  body: () => ({}),
};

describe.each([
  ['a poll', POLL],
  ['a webhook', WEBHOOK],
])('%s', (_name, { open, body }) => {
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

describe('a poll', () => {
  const { open, body } = POLL;
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

import type { LookupAddress } from 'node:dns';
import { gzipSync } from 'node:zlib';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { toSendResult } from '../../src/notifications/channels/channel.ts';
import {
  createAddressGuard,
  type LookupAll,
} from '../../src/notifications/transport/address-guard.ts';
import { createHttpPost } from '../../src/notifications/transport/http-post.ts';
import {
  drip,
  openReceiver,
  type ScriptedResponse,
  selfSigned,
} from '../support/servers/receiver.ts';
import { eventually, until } from '../support/until.ts';
import { HeldClock } from '../support/virtual-time/virtual-clock.ts';

type Settings = {
  allow?: string[];
  lookup?: LookupAll;
};
const TIMEOUT_MS = 15_000;
const BODY_TIMEOUT_MS = 2_000;

/** No time passes, except by `expire`; connections are closed when the test ends. */
function poster({ allow = ['127.0.0.1/32'], lookup }: Settings = {}) {
  const guard = createAddressGuard({ allow });
  const clock = new HeldClock(BODY_TIMEOUT_MS);
  const http = createHttpPost({
    guard,
    version: '1.2.3',
    clock,
    ...(lookup && { lookup }),
  });
  onTestFinished(() => http.close());
  const post = async (url: string, signal = new AbortController().signal) => {
    const result = toSendResult(
      await http.post({ url: `${url}/hook?token=secret`, body: '{}', signal }),
    );
    // No error contains the address, which may hold a secret, or what its name resolved to.
    if (result.kind === 'failed')
      expect(result.error).not.toMatch(/\d\.\d+\.\d|::|:\d|token|secret|receiver\.test|\//);
    return result;
  };
  /** Waits until a time limit runs, and exceeds it. */
  const expire = async (limitMs: number) => {
    await eventually(() => expect(clock.held(limitMs)).toBe(1));
    clock.fire(limitMs);
  };
  return { post, close: http.close, expire };
}

const failed = (error: string | RegExp) => ({
  kind: 'failed',
  httpStatus: null,
  error: expect.stringMatching(error),
  response: null,
});

type Receiver = Awaited<ReturnType<typeof openReceiver>>;
const isLeft = ({ connections }: Receiver) =>
  eventually(() => expect(connections.open.size).toBe(0));

describe('a receiver that', () => {
  it.each<[string, ScriptedResponse, string, number?]>([
    ['never answers', () => undefined, 'no response within 15 s', TIMEOUT_MS],
    [
      'sends its headers byte by byte',
      ({ socket }) => drip(socket, 'HTTP/1.1 200 OK\r\nx: '),
      'no response within 15 s',
      TIMEOUT_MS,
    ],
    ['resets', ({ socket }) => socket.resetAndDestroy(), 'closed before a response'],
    [
      'sends 1 MB of headers',
      ({ socket }) => socket.end(`HTTP/1.1 200 OK\r\nx: ${'x'.repeat(1e6)}\r\n\r\n`),
      'headers are too large',
    ],
    [
      'does not speak HTTP',
      ({ socket }) => socket.end('220 mail.receiver.test ESMTP\r\n'),
      'not HTTP',
    ],
  ])('%s fails, gets one request, and is disconnected', async (_what, script, error, limitMs) => {
    const receiver = await openReceiver(script);
    const { post, expire } = poster();
    const posted = post(receiver.url);
    await until(() => receiver.requests.length === 1);
    if (limitMs) await expire(limitMs);
    expect(await posted).toEqual(failed(error));
    expect([receiver.requests.length, receiver.connections.total()]).toEqual([1, 1]);
    await isLeft(receiver);
  });

  const partialResponse = 'HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\nbeginning';
  it.each<[string, ScriptedResponse, RegExp, number?]>([
    [
      'closes the connection within its response',
      ({ socket }) => socket.end(partialResponse),
      /^beginning$/,
    ],
    [
      'resets the connection within its response',
      ({ socket }) => socket.write(partialResponse, () => socket.resetAndDestroy()),
      /^(beginning)?$/,
    ],
    [
      'stops within its response',
      ({ socket }) => socket.write(partialResponse),
      /^beginning$/,
      BODY_TIMEOUT_MS,
    ],
    [
      'sends its response byte by byte',
      ({ socket }) => socket.write(partialResponse, () => drip(socket, '.')),
      /^beginning\.*$/,
      BODY_TIMEOUT_MS,
    ],
  ])('%s has accepted, and is disconnected', async (_what, script, response, limitMs) => {
    const receiver = await openReceiver(script);
    const { post, expire } = poster();
    const posted = post(receiver.url);
    if (limitMs) await expire(limitMs);
    const result = await posted;
    expect(result).toMatchObject({ kind: 'delivered', httpStatus: 200 });
    expect(result.response ?? '').toMatch(response);
    await isLeft(receiver);
  });

  it('responds with 100 MB has accepted, and most of the response is never read', async () => {
    let sent = 0;
    const receiver = await openReceiver(({ response, socket }) => {
      const more = () => {
        while (sent < 1e8 && !socket.destroyed && response.write('x'.repeat(65_536)))
          sent += 65_536;
      };
      response.on('drain', more);
      more();
    });
    const response = 'x'.repeat(4_096);
    expect(await poster().post(receiver.url)).toEqual({
      kind: 'delivered',
      httpStatus: 200,
      response,
    });
    await isLeft(receiver);
    expect(sent).toBeLessThan(5e7);
  });

  it('responds with 50 MB in compressed form is not decompressed', async () => {
    const packed = gzipSync(Buffer.alloc(50_000_000));
    const receiver = await openReceiver({ headers: { 'content-encoding': 'gzip' }, body: packed });
    const { response } = await poster().post(receiver.url);
    expect(response).toBe('gzip, not decoded');
    expect(receiver.requests[0]?.headers['accept-encoding']).toBe('identity');
  });

  it('quotes its address has it redacted in the recorded response', async () => {
    const receiver = await openReceiver(({ request, response }) =>
      response.end(`Cannot POST ${request.url}`),
    );
    const { response } = await poster().post(`${receiver.url}/services/T0p-Secret-Path`);
    expect(response).toBe('Cannot POST [redacted]');
  });

  it('does not speak TLS fails', async () => {
    const { port } = await openReceiver();
    expect(await poster().post(`https://127.0.0.1:${port}`)).toEqual(failed('TLS failed'));
  });

  const tls = selfSigned();
  it.skipIf(!tls)('has an untrusted certificate receives nothing', async () => {
    const receiver = await openReceiver({}, { ...(tls && { tls }) });
    expect(await poster().post(receiver.url)).toEqual(failed('TLS failed .*SELF_SIGNED'));
    expect(receiver.requests).toEqual([]);
  });
});

/** Returns a resolver with one result per lookup; the last one repeats. */
function names(...resolved: string[][]) {
  return vi.fn<LookupAll>((_hostname, _options, callback) => {
    const found = (resolved.length > 1 ? resolved.shift() : resolved[0]) ?? [];
    const addresses = found.map(
      (address): LookupAddress => ({ address, family: address.includes(':') ? 6 : 4 }),
    );
    process.nextTick(callback, null, addresses);
  });
}

describe('the address guard', () => {
  const named = ({ port }: Receiver) => `http://receiver.test:${port}`;
  /** Listens on every address of this machine, to detect connections that pass the guard. */
  const allAddresses = (script: ScriptedResponse = {}) => openReceiver(script, { host: '0.0.0.0' });

  it('refuses a name that is public at the first lookup and private at the second', async () => {
    const receiver = await allAddresses({ headers: { connection: 'close' } });
    const lookup = names(['127.0.0.1'], ['127.0.0.2']);
    const { post } = poster({ lookup });
    expect(await post(named(receiver))).toMatchObject({ kind: 'delivered' });
    expect(await post(named(receiver))).toEqual(
      failed(/^refused: its address is not public \(loopback\), and not in webhooks\.allow$/),
    );
    expect([receiver.connections.total(), lookup.mock.calls.length]).toEqual([1, 2]);
  });

  it('skips the private ones of several addresses', async () => {
    const receiver = await allAddresses();
    const lookup = names(['127.0.0.2', '10.0.0.1', '::1', '127.0.0.1', '127.0.0.3']);
    expect(await poster({ lookup }).post(named(receiver))).toMatchObject({ kind: 'delivered' });
    expect(receiver.requests.map(({ localAddress }) => localAddress)).toEqual(['127.0.0.1']);
  });

  it('fails if the host name does not resolve', async () => {
    const error = Object.assign(new Error('getaddrinfo ENOTFOUND receiver.test'), {
      code: 'ENOTFOUND',
    });
    const lookup: LookupAll = (_hostname, _options, callback) =>
      process.nextTick(callback, error, []);
    expect(await poster({ lookup }).post('http://receiver.test')).toEqual(
      failed('does not resolve'),
    );
  });
});

describe('an aborted POST', () => {
  it('ends at once, even during a name lookup', async () => {
    const stop = new AbortController();
    const { post } = poster({ lookup: () => void setImmediate(() => stop.abort()) });
    expect(await post('http://receiver.test', stop.signal)).toEqual(failed('was aborted'));
  });

  it('ends when the transport closes, as do idle connections, and no new one is opened', async () => {
    const receiver = await openReceiver([{}, () => void close()]);
    const { post, close } = poster();
    expect(await post(receiver.url)).toMatchObject({ kind: 'delivered' });
    expect(receiver.connections.open.size).toBe(1);
    expect(await post(receiver.url)).toEqual(failed('was aborted'));
    await Promise.all([close(), close()]);
    await isLeft(receiver);
    expect(await post(receiver.url)).toEqual(failed('was aborted'));
  });
});

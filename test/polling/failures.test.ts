import type { RequestListener } from 'node:http';
import { describe, expect, it } from 'vitest';
import { classify } from '../../src/submissions/classify.ts';
import {
  deadAddress,
  KEY,
  openClient,
  serve,
  serveRaw,
} from '../support/servers/upstream-server.ts';
import { createVirtualClock, HeldClock } from '../support/virtual-time/virtual-clock.ts';

const TIMEOUT_MS = 10_000;
const HEAD = 'HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n';

async function failureOf(url: string, clock = new HeldClock(TIMEOUT_MS)) {
  const response = await openClient(url, { clock }).getSubmissionInfo('s');
  if (response.kind !== 'failure') throw new Error(`answered with ${response.httpStatus}`);
  expect(response.detail).not.toContain(KEY);
  expect(response.detail.length).toBeLessThan(300);
  expect(classify('s', response)).toMatchObject({ kind: 'unavailable', reason: response.reason });
  return response;
}

describe('the time limit of a call applies to', () => {
  const drip: RequestListener = (_request, response) => {
    response.write('{');
    const timer = setInterval(() => response.write(' '), 20);
    response.on('close', () => clearInterval(timer));
  };
  it.each<[string, RequestListener]>([
    ['no response at all', () => undefined],
    [
      'half a body',
      (_request, response) => response.writeHead(200, { 'content-length': 100 }).write('{'),
    ],
    ['a byte at intervals', drip],
  ])('%s', async (_name, respond) => {
    const { url, sockets, requests } = await serve(respond);
    const clock = new HeldClock(TIMEOUT_MS);
    const failure = failureOf(url, clock);
    await expect.poll(() => requests).toHaveLength(1);
    clock.fire(TIMEOUT_MS);
    expect(await failure).toMatchObject({
      reason: 'timeout',
      detail: expect.stringMatching(/10 s/),
    });
    await expect.poll(() => sockets.open.size, { message: 'the connection was given up' }).toBe(0);
  });

  it('a late response, not to stalls of this process, however many, during which a response stays unread', async () => {
    const arrived = Promise.withResolvers<void>();
    const released = Promise.withResolvers<void>();
    const { url } = await serve(async (_request, response) => {
      arrived.resolve();
      await released.promise;
      response.end('{}');
    });
    const clock = createVirtualClock(0);
    const response = openClient(url, { clock }).getSubmissionInfo('s');
    await arrived.promise;
    for (let stall = 0; stall < 2; stall++) {
      clock.stall(TIMEOUT_MS + 600);
      // The timer of the call fires late.
      await clock.advance(0);
    }
    released.resolve();
    expect(await response).toMatchObject({ kind: 'response' });
  });
});

describe('an endless body is cut off, and its connection closed', () => {
  it.each([
    ['without a length', {}],
    ['with a length', { 'content-length': 1_000_000_000 }],
  ])('%s', async (_name, headers) => {
    let sentBytes = 0;
    const chunk = Buffer.alloc(64 * 1024, 0x20);
    const { url, sockets } = await serve((_request, response) => {
      response.writeHead(200, headers);
      const sendChunks = () => {
        while (!response.destroyed && response.write(chunk)) sentBytes += chunk.length;
      };
      response.on('drain', sendChunks);
      sendChunks();
    });
    expect((await failureOf(url)).reason).toBe('too_large');
    await expect.poll(() => sockets.open.size).toBe(0);
    expect(sentBytes).toBeLessThan(16 * 1024 * 1024);
  });
});

describe('a broken connection is a network failure', () => {
  it.each<[string, string | null]>([
    ['on opening', null],
    ['after the request', ''],
    ['within the headers', 'HTTP/1.1 200 OK\r\ncontent-le'],
    ['within the body', `${HEAD}{"state":`],
  ])('reset %s', async (_name, sent) => {
    const { url } = await serveRaw((socket) => {
      if (sent === null) socket.resetAndDestroy();
      else
        socket.once('data', () => {
          socket.write(sent, () => socket.resetAndDestroy());
        });
    });
    expect((await failureOf(url)).reason).toBe('network');
  });

  it.each([
    ['another protocol', 'SSH-2.0-OpenSSH_9.9\r\n'],
    ['an endless header', `HTTP/1.1 200 OK\r\nx-long: ${'x'.repeat(100_000)}`],
    [
      'two lengths that differ',
      'HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\n{}x',
    ],
  ])('%s', async (_name, sent) => {
    const { url } = await serveRaw((socket) => socket.once('data', () => socket.end(sent)));
    expect((await failureOf(url)).reason).toBe('network');
  });

  it('no server listening', async () => {
    expect(await failureOf(await deadAddress())).toMatchObject({
      reason: 'network',
      detail: expect.stringMatching(/refused/),
    });
  });
});

describe('closing', () => {
  it('returns failures for calls in flight and closes every connection; it can be called twice', async () => {
    const { url, sockets, requests } = await serve((request, response) => {
      if (request.url?.endsWith('body')) response.write('{');
    });
    const client = openClient(url, { connections: 2 });
    const calls = ['hangs', 'body', 'waits'].map((id) => client.getSubmissionInfo(id));
    await expect.poll(() => requests).toHaveLength(2);
    await client.close();
    for (const response of await Promise.all(calls))
      expect(response).toMatchObject({ kind: 'failure', reason: 'network' });
    await expect.poll(() => sockets.open.size).toBe(0);
    await client.close();
    expect(await client.getSubmissionInfo('late')).toMatchObject({
      kind: 'failure',
      detail: expect.stringMatching(/closed/),
    });
  });
});

import type { ServerResponse } from 'node:http';
import { describe, expect, it } from 'vitest';
import { KEY, openClient, serve } from '../support/servers/upstream-server.ts';
import { HeldClock } from '../support/virtual-time/virtual-clock.ts';

const ok = (body = '{}') => serve((_request, response) => response.end(body));

describe('a request', () => {
  it('contains the key in its header, and not in its URL', async () => {
    const { url, requests } = await ok();
    await openClient(url).getSubmissionInfo('s');
    expect(requests[0]).toMatchObject({
      method: 'GET',
      url: '/v1/get_submission_info?submission_id=s',
    });
    expect(requests[0]?.headers).toMatchObject({
      'x-api-key': KEY,
      accept: 'application/json',
      'user-agent': 'dawatch/1.2.3',
    });
    expect(requests[0]?.headers).not.toHaveProperty('accept-encoding');
  });

  it.each([
    ['', '/v1/'],
    ['/', '/v1/'],
    ['/base', '/base/v1/'],
    ['/a%20b/c', '/a%20b/c/v1/'],
  ])('keeps the path of a base URL that ends in %j', async (path, expected) => {
    const { url, requests } = await ok();
    await openClient(url + path).getSubmissionInfo('s');
    expect(requests[0]?.url).toBe(`${expected}get_submission_info?submission_id=s`);
  });

  it.each(['a/b', '../x', '?x=1', 'a&submission_id=b', 'a+b', '\'"\\<>{}|^`'])(
    'requests exactly the id %j',
    async (id) => {
      const { url, requests } = await ok();
      await openClient(url).getSubmissionInfo(id);
      const requested = new URL(requests[0]?.url ?? '', url);
      expect(requested.pathname).toBe('/v1/get_submission_info');
      expect([...requested.searchParams]).toEqual([['submission_id', id]]);
    },
  );
});

describe('a response', () => {
  it('is returned with its status, its body and the two relevant headers', async () => {
    const { url } = await serve((_request, response) => {
      response
        .writeHead(429, { 'retry-after': '7', date: 'Sat, 01 Jan 2000 00:00:00 GMT' })
        .end('grüße');
    });
    expect(await openClient(url).getSubmissionInfo('s')).toEqual({
      kind: 'response',
      httpStatus: 429,
      retryAfter: '7',
      date: 'Sat, 01 Jan 2000 00:00:00 GMT',
      body: 'grüße',
    });
  });

  it.each([302, 307])(
    'that redirects (%i) is returned; no request is sent to the other host',
    async (status) => {
      const other = await ok();
      const { url, requests } = await serve((_request, response) => {
        response.writeHead(status, { location: `${other.url}/v1/stolen` }).end();
      });
      expect(await openClient(url).getSubmissionInfo('s')).toMatchObject({
        kind: 'response',
        httpStatus: status,
      });
      expect(requests).toHaveLength(1);
      expect(other.sockets.total).toBe(0);
    },
  );

  it('of exactly 1 MiB is read, and one of a byte more is truncated', async () => {
    const body = 'x'.repeat(1024 * 1024);
    const fits = await ok(body);
    expect(await openClient(fits.url).getSubmissionInfo('s')).toMatchObject({
      kind: 'response',
      body,
    });
    const large = await ok(`${body}y`);
    expect(await openClient(large.url).getSubmissionInfo('s')).toMatchObject({
      kind: 'failure',
      reason: 'too_large',
    });
  });
});

it('a response that quotes the credential of its request has it redacted', async () => {
  const { url } = await serve(({ headers }, response) =>
    response.end(`no such key: ${headers['x-api-key'] ?? headers.authorization}`),
  );
  const client = openClient(url);
  expect(await client.getSubmissionInfo('a')).toMatchObject({ body: 'no such key: [redacted]' });
  const lookup = { path: '/users/get_user', headers: { authorization: 'Bearer of-an-admin' } };
  expect(await client.get(lookup)).toMatchObject({ body: 'no such key: Bearer [redacted]' });
});

describe('connections', () => {
  it('never exceed the limit, and all requests are served', async () => {
    const waiting: ServerResponse[] = [];
    const { url, sockets } = await serve((_request, response) => {
      waiting.push(response);
      // A turn later, so that the client could open more.
      setImmediate(() => waiting.shift()?.end('{}'));
    });
    const client = openClient(url, { connections: 3 });
    const responses = await Promise.all(
      Array.from({ length: 60 }, (_, i) => client.getSubmissionInfo(`s${i}`)),
    );
    expect(responses.every(({ kind }) => kind === 'response')).toBe(true);
    expect(sockets.maxOpen).toBe(3);
  });

  it('time spent waiting for a free one counts towards the limit of a call', async () => {
    const { url, requests } = await serve(() => undefined);
    const clock = new HeldClock(10_000);
    const client = openClient(url, { connections: 1, clock });
    const responses = [client.getSubmissionInfo('a'), client.getSubmissionInfo('b')];
    await expect.poll(() => requests).toHaveLength(1);
    clock.fire(10_000);
    expect(await Promise.all(responses)).toMatchObject([
      { reason: 'timeout' },
      { reason: 'timeout' },
    ]);
  });
});

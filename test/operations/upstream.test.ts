import type { RequestListener } from 'node:http';
import { describe, expect, it } from 'vitest';
import { checkUpstream } from '../../src/operations/doctor/upstream.ts';
import { upstreamOf } from '../support/doctor.ts';
import { openReceiver, selfSigned } from '../support/servers/receiver.ts';
import { deadAddress, KEY, serve, serveRaw } from '../support/servers/upstream-server.ts';

async function examined(
  url: string,
  fields: { api_key?: string | undefined; limitMs?: number } = {},
) {
  const { limitMs = 5_000, ...upstream } = fields;
  const findings = await checkUpstream({
    name: 'default',
    upstream: upstreamOf({ url, api_key: KEY, ...upstream }),
    limitMs,
    signal: new AbortController().signal,
  });
  expect(JSON.stringify(findings)).not.toContain(KEY);
  for (const { status, action } of findings) expect(action === null).toBe(status === 'ok');
  return findings;
}

const NOT_FOUND = JSON.stringify({ state: 'ERROR', error: 'record not found' });
const respondWith =
  (status: number, body: string, headers: Record<string, string> = {}): RequestListener =>
  (_request, response) =>
    response.writeHead(status, headers).end(body);
const dated = (offMs: number) => ({ date: new Date(Date.now() + offMs).toUTCString() });

describe('an upstream', () => {
  it('that finds nothing under a random id works, and accepted the key', async () => {
    const { url, requests } = await serve(respondWith(500, NOT_FOUND));
    const [upstream, clock] = await examined(url);
    expect(upstream).toEqual({
      name: 'upstream.default',
      status: 'ok',
      message: `${new URL(url).host} works and accepts the key`,
      action: null,
    });
    expect(clock).toMatchObject({ name: 'clock.default', status: 'ok' });
    expect(requests).toHaveLength(1);
    expect(requests[0]?.url).toMatch(/^\/v1\/get_submission_info\?submission_id=[0-9a-f-]{36}$/);
    expect(requests[0]?.headers['x-api-key']).toBe(KEY);
  });

  it.each<[string, RequestListener, 'warning' | 'problem', RegExp, RegExp]>([
    [
      'that refuses the key',
      respondWith(401, `{"error":"bad ${KEY}"}`),
      'problem',
      /refuses the key/,
      /DAWATCH_UPSTREAM_API_KEY/,
    ],
    ['that requests a lower rate', respondWith(429, ''), 'warning', /rate limiting/, /budget/],
    [
      'that redirects',
      respondWith(302, '', { location: '/login' }),
      'problem',
      /redirects \(HTTP 302\)/,
      /target of the redirect/,
    ],
    [
      'behind a proxy that sends a page',
      respondWith(200, ' <html>Sign in</html>'),
      'problem',
      /web page \(HTTP 200\)/,
      /base address/,
    ],
    [
      'that sends another response',
      respondWith(200, '[]'),
      'problem',
      /not respond like the upstream service/,
      /base address/,
    ],
    ['at another path', respondWith(404, 'nothing here'), 'problem', /HTTP 404/, /base address/],
    [
      'that fails',
      respondWith(503, 'overloaded'),
      'problem',
      /HTTP 503 overloaded/,
      /resumes by itself/,
    ],
    [
      'that refuses UUIDs',
      respondWith(406, '{"error":"invalid submission id"}'),
      'warning',
      /invalid submission id/,
      /UUIDs/,
    ],
    [
      'that closes the connection',
      (request) => request.socket.destroy(),
      'problem',
      /does not respond/,
      /address of the upstream/,
    ],
  ])('%s', async (_what, respond, status, message, action) => {
    const [upstream] = await examined((await serve(respond)).url);
    expect(upstream).toMatchObject({
      status,
      message: expect.stringMatching(message),
      action: expect.stringMatching(action),
    });
  });

  it('that never responds is abandoned at the time limit', async () => {
    const { url } = await serve(() => undefined);
    const [upstream] = await examined(url, { limitMs: 100 });
    expect(upstream).toMatchObject({
      status: 'problem',
      message: expect.stringMatching(/no complete response within 100 ms/),
    });
  });

  it('passes without a key if it requires none, and fails if it requires one', async () => {
    const open = await serve(respondWith(500, NOT_FOUND));
    const closed = await serve(respondWith(401, ''));
    expect((await examined(open.url, { api_key: undefined }))[0]).toMatchObject({
      status: 'warning',
    });
    expect((await examined(closed.url, { api_key: undefined }))[0]).toMatchObject({
      status: 'problem',
      message: expect.stringMatching(/none is set/),
    });
  });

  it('with a refused connection', async () => {
    expect(await examined(await deadAddress())).toMatchObject([
      {
        status: 'problem',
        message: expect.stringMatching(/the connection was refused/),
        action: expect.stringMatching(/runs/),
      },
    ]);
  });

  it('whose name does not resolve', async () => {
    expect(await examined('http://nowhere.invalid')).toMatchObject([
      {
        status: 'problem',
        message: expect.stringMatching(/name/),
        action: expect.stringMatching(/name/),
      },
    ]);
  });

  it.skipIf(!selfSigned())('with an untrusted certificate', async () => {
    const tls = selfSigned();
    const { url, requests } = await openReceiver({}, tls && { tls });
    expect(await examined(url)).toMatchObject([
      {
        message: expect.stringMatching(/TLS failed \(\w+\)/),
        action: expect.stringMatching(/NODE_EXTRA_CA_CERTS/),
      },
    ]);
    expect(requests).toEqual([]);
  });

  it('that accepts a connection but does not speak TLS', async () => {
    const { url } = await serveRaw((socket) => socket.pause());
    expect(await examined(url.replace('http:', 'https:'), { limitMs: 100 })).toMatchObject([
      { message: expect.stringMatching(/the connection timed out/) },
    ]);
  });
});

describe('the clock', () => {
  it.each<[string, number, string, RegExp]>([
    ['slightly behind', 3_000, 'ok', /within 5 s/],
    ['behind', 20_000, 'warning', /this clock is \d\d s behind the clock of default/],
    ['ahead', -20_000, 'warning', /this clock is \d\d s ahead of the clock of default/],
    ['far behind', 3_600_000, 'problem', /3\d{3} s behind/],
  ])('%s', async (_what, offMs, status, message) => {
    const { url } = await serve((_request, response) =>
      response.writeHead(500, dated(offMs)).end(NOT_FOUND),
    );
    const [, clock] = await examined(url);
    expect(clock).toMatchObject({ status, message: expect.stringMatching(message) });
  });

  it('is not compared without a Date header', async () => {
    const { url } = await serve((_request, response) => {
      response.sendDate = false;
      response.writeHead(500).end(NOT_FOUND);
    });
    expect(await examined(url)).toHaveLength(1);
  });
});

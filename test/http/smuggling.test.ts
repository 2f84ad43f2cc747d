import { connect } from 'node:net';
import { describe, expect, it } from 'vitest';
import { call, listOf, post, problemOf } from '../support/app/http-calls.ts';
import { API_KEY, useApp } from '../support/app/running-app.ts';

/**
 * A proxy and this server must agree on where each request ends, otherwise part of one client's
 * request is read as the request of another. An ambiguous request is refused, and its connection is
 * closed together with the rest of its bytes.
 */
const app = useApp();

const HEAD = `POST /v1/submissions HTTP/1.1\r\nhost: x\r\nx-api-key: ${API_KEY}\r\ncontent-type: application/json\r\n`;
const BODY = '{"submission_id":"smuggled"}';
const SIZE = BODY.length;
const HEX = SIZE.toString(16);
/** A request that an attacker would have smuggled. */
const INNER = `DELETE /v1/submissions/kept HTTP/1.1\r\nhost: x\r\nx-api-key: ${API_KEY}\r\n\r\n`;
const CHUNKED = `${HEX}\r\n${BODY}\r\n0\r\n\r\n`;

type Received = { statuses: number[]; text: string; isClosed: boolean };

/**
 * Returns everything received up to the last expected response, or until the connection is closed.
 */
function exchange(bytes: string, responseCount = 1): Promise<Received> {
  return new Promise((resolve) => {
    const socket = connect(Number(new URL(app.url).port), '127.0.0.1');
    let text = '';
    const statuses = () =>
      [...text.matchAll(/HTTP\/1\.1 (\d+) /g)].map(([, status]) => Number(status));
    const done = (isClosed: boolean) => {
      socket.destroy();
      resolve({ statuses: statuses(), text, isClosed });
    };
    socket.setEncoding('latin1').on('data', (part) => {
      text += part;
      if (
        statuses().filter((status) => status !== 100).length >= responseCount &&
        text.endsWith('}')
      )
        done(false);
    });
    socket.on('error', () => undefined).on('close', () => done(true));
    socket.write(bytes, 'latin1');
  });
}

/** Waits, so that a server which reads on incorrectly is detected. */
async function refused(bytes: string): Promise<Received> {
  const received = await exchange(bytes, Number.POSITIVE_INFINITY);
  expect(received.isClosed).toBe(true);
  return received;
}

/** Body framing that Node's parser and a proxy could read in two ways. */
const CHUNKS = `${HEAD}transfer-encoding: chunked\r\n`;
describe('is refused with 400 once, and the rest of its connection is ignored:', () => {
  it.each<[string, string]>([
    [
      'a length and chunks (CL.TE)',
      `${HEAD}content-length: ${5 + INNER.length}\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n`,
    ],
    ['chunks and a length (TE.CL)', `${CHUNKS}content-length: 4\r\n\r\n${CHUNKED}`],
    ['two lengths', `${HEAD}content-length: ${SIZE}\r\ncontent-length: 0\r\n\r\n${BODY}`],
    ['a negative length', `${HEAD}content-length: -1\r\n\r\n${BODY}`],
    ['a space before a colon', `${HEAD}content-length : ${SIZE}\r\n\r\n${BODY}`],
    ['a folded header', `${HEAD}content-length: ${SIZE}\r\nx-a: b\r\n c\r\n\r\n${BODY}`],
    ['lines that end in LF', 'GET /livez HTTP/1.1\nhost: x\n\n'],
    ['an encoding after chunked', `${HEAD}transfer-encoding: chunked, identity\r\n\r\n${CHUNKED}`],
    ['a chunk size that overflows', `${CHUNKS}\r\nffffffffffffffffff\r\n${BODY}`],
    ['a chunk longer than its size', `${CHUNKS}\r\n1\r\n${BODY}\r\n0\r\n\r\n`],
    ['a NUL in its target', 'GET /livez\0 HTTP/1.1\r\nhost: x\r\n\r\n'],
    ['HTTP/2 by prior knowledge', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
  ])('%s', async (_, bytes) => {
    await post(app.url, { submission_id: 'kept' });
    const received = await refused(bytes + INNER);
    expect(received.statuses).toEqual([400]);
    const { submissions } = listOf(await call(app.url, '/v1/submissions'));
    expect(submissions).toMatchObject([{ submission_id: 'kept', status: 'tracking' }]);
  });
});

const MB = 'x'.repeat(1_000_000);
const MANY = Array.from({ length: 2_000 }, (_, n) => `h${n}: ${'x'.repeat(20)}\r\n`).join('');
it.each<[string, string]>([
  ['2,000 headers', `GET /livez HTTP/1.1\r\nhost: x\r\n${MANY}\r\n`],
  ['a header of 1 MB', `GET /livez HTTP/1.1\r\nhost: x\r\na: ${MB}\r\n\r\n`],
  ['a target of 1 MB', `GET /${MB} HTTP/1.1\r\nhost: x\r\n\r\n`],
  ['a trailer of 1 MB', `${CHUNKS}\r\n0\r\na: ${MB}\r\n\r\n`],
  ['an endless chunk size', `${CHUNKS}\r\n${HEX};${MB}\r\n`],
])('%s are never read completely', async (_, bytes) => {
  const { statuses } = await refused(bytes);
  // A client that is still sending may be disconnected before it reads the response.
  for (const status of statuses) expect([400, 431]).toContain(status);
});

it('more than one Host is refused, in every version', async () => {
  for (const version of ['1.0', '1.1'])
    expect(
      (await refused(`GET /livez HTTP/${version}\r\nhost: x\r\nhost: y\r\n\r\n`)).text,
    ).toContain('more than one Host');
});

it.each(['gzip', 'gzip, identity', 'x'])('a body encoded with %s is refused', async (coding) => {
  const response = await post(app.url, { submission_id: 'packed' }, { 'content-encoding': coding });
  expect(response.status).toBe(415);
  expect(problemOf(response).detail).toBe('the body must be sent without Content-Encoding');
});

it('a compressed transfer encoding is refused', async () => {
  const { statuses } = await refused(
    `${HEAD}transfer-encoding: gzip, chunked\r\n\r\n${CHUNKED}${INNER}`,
  );
  expect(statuses).toEqual([415]);
});

it('CONNECT opens no tunnel, TRACE echoes nothing, an upgrade is ignored', async () => {
  const tunnel = await refused(
    `CONNECT 127.0.0.1:22 HTTP/1.1\r\nhost: x\r\nx-api-key: ${API_KEY}\r\n\r\n${INNER}`,
  );
  expect(tunnel.text).toBe('');
  const trace = await exchange(
    `TRACE /v1/submissions HTTP/1.1\r\nhost: x\r\nx-api-key: ${API_KEY}\r\n\r\n`,
  );
  expect(trace.statuses).toEqual([404]);
  expect(trace.text).not.toContain(API_KEY);
  for (const protocol of ['websocket', 'h2c']) {
    const upgrade = `GET /livez HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: ${protocol}\r\n\r\n`;
    expect((await exchange(upgrade)).statuses).toEqual([200]);
  }
});

const TARGETS = [
  '/docs/../livez /docs/%2e%2e/livez /docs/..%2flivez /docs/..\\livez /docs// /assets/lib/../docs.js',
  '/d%6fcs /assets/../livez /assets//main.js /assets/lib/../main.js //livez',
  '/v1/submissions/..;/livez http://evil.example/docs/../livez',
];
it.each(TARGETS.join(' ').split(' '))(
  'a target that could be read in two ways leads to no other route: %s',
  async (target) => {
    const { statuses, text } = await exchange(`GET ${target} HTTP/1.1\r\nhost: x\r\n\r\n`);
    expect(statuses[0]).toBeGreaterThanOrEqual(400);
    expect(statuses[0]).toBeLessThan(500);
    expect(text).not.toContain('{"status":"ok"}');
  },
);

it('an absolute target refers to this server, whatever its host, with the same authentication', async () => {
  const request = (header: string) =>
    exchange(`GET http://evil.example/v1/submissions HTTP/1.1\r\nhost: x\r\n${header}\r\n`);
  expect((await request('')).statuses).toEqual([401]);
  expect((await request(`x-api-key: ${API_KEY}\r\n`)).statuses).toEqual([200]);
});

describe('one connection', () => {
  const livez = 'GET /livez HTTP/1.1\r\nhost: x\r\n\r\n';

  it('has as many responses as requests, in order, each for its own credential', async () => {
    const list = (header: string) => `GET /v1/submissions HTTP/1.1\r\nhost: x\r\n${header}\r\n`;
    const key = `x-api-key: ${API_KEY}\r\n`;
    const bytes = [list(key), list(''), livez, list(key), list('')].join('');
    expect((await exchange(bytes, 5)).statuses).toEqual([200, 401, 200, 200, 401]);
  });

  it.each<[string, string, number]>([
    ['to a route without one', 'GET /livez', 200],
    ['of a refused request', 'POST /v1/submissions', 401],
    ['to an unknown route', 'GET /nowhere', 404],
  ])('reads the body %s as a body, not as a request', async (_, line, status) => {
    const head = `${line} HTTP/1.1\r\nhost: x\r\ncontent-length: ${INNER.length}\r\ncontent-type: application/json\r\n\r\n`;
    const { statuses } = await exchange(`${head}${INNER}${livez}`, 2);
    expect(statuses).toEqual([status, 200]);
  });

  it('uses no credential from the end of a body', async () => {
    const head =
      'POST /v1/submissions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n';
    const trailer = `${head}trailer: x-api-key\r\n\r\n${CHUNKED.slice(0, -2)}x-api-key: ${API_KEY}\r\n\r\n`;
    expect((await exchange(trailer)).statuses).toEqual([401]);
  });

  it('of HTTP/1.0 ends with its response, unless it requests otherwise, and never continues after chunks', async () => {
    expect(await refused('GET /livez HTTP/1.0\r\n\r\n')).toMatchObject({ statuses: [200] });
    const kept = await exchange(`GET /livez HTTP/1.0\r\nconnection: keep-alive\r\n\r\n${livez}`, 2);
    expect(kept.statuses).toEqual([200, 200]);
    const chunks = HEAD.replace('HTTP/1.1', 'HTTP/1.0').replace(API_KEY, 'nobody');
    const received = await refused(`${chunks}transfer-encoding: chunked\r\n\r\n${CHUNKED}${INNER}`);
    // What follows on the connection is not served.
    expect([[400], [401]]).toContainEqual(received.statuses);
  });

  it('that expects 100-continue gets it, and its length is enforced', async () => {
    const head = HEAD.replace(API_KEY, 'nobody');
    const expecting = `${head}expect: 100-continue\r\ncontent-length: ${INNER.length}\r\n\r\n${INNER}${livez}`;
    expect((await exchange(expecting, 2)).statuses).toEqual([100, 401, 200]);
    const huge = await refused(`${HEAD}expect: 100-continue\r\ncontent-length: 99999999\r\n\r\n`);
    expect(huge.statuses).toEqual([100, 413]);
  });
});

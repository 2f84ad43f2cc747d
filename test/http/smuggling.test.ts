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
    ['a space before a colon', `${HEAD}content-length : ${SIZE}\r\n\r\n${BODY}`],
    ['lines that end in LF', 'GET /livez HTTP/1.1\nhost: x\n\n'],
  ])('%s', async (_, bytes) => {
    await post(app.url, { submission_id: 'kept' });
    const received = await refused(bytes + INNER);
    expect(received.statuses).toEqual([400]);
    const { submissions } = listOf(await call(app.url, '/v1/submissions'));
    expect(submissions).toMatchObject([{ submission_id: 'kept', status: 'tracking' }]);
  });
});

it('more than one Host is refused, in every version, and HTTP/1.0 needs none', async () => {
  for (const version of ['1.0', '1.1'])
    expect(
      (await refused(`GET /livez HTTP/${version}\r\nhost: x\r\nhost: y\r\n\r\n`)).text,
    ).toContain('more than one Host');
  expect(await refused('GET /livez HTTP/1.0\r\n\r\n')).toMatchObject({ statuses: [200] });
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

  it.each<[string, string, number]>([
    ['to a route without one', 'GET /livez', 200],
    ['of a refused request', 'POST /v1/submissions', 401],
    ['to an unknown route', 'GET /nowhere', 404],
  ])('reads the body %s as a body, not as a request', async (_, line, status) => {
    const head = `${line} HTTP/1.1\r\nhost: x\r\ncontent-length: ${INNER.length}\r\ncontent-type: application/json\r\n\r\n`;
    const { statuses } = await exchange(`${head}${INNER}${livez}`, 2);
    expect(statuses).toEqual([status, 200]);
  });
});

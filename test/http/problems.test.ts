import { fastify } from 'fastify';
import { describe, expect, it, onTestFinished } from 'vitest';
import { registerProblems } from '../../src/http/problems.ts';
import { LedgerError } from '../../src/ledger/errors.ts';
import { call, type HttpResponse, post, problemOf, sendRaw } from '../support/app/http-calls.ts';
import { ADMIN_TOKEN } from '../support/app/lookups.ts';
import { API_KEY, useApp } from '../support/app/running-app.ts';

const app = useApp({ adminToken: ADMIN_TOKEN });

/** Parses the only response on a raw connection. */
function parseResponse(received: string): HttpResponse {
  const [head = '', text = ''] = received.split('\r\n\r\n');
  const [first = '', ...lines] = head.split('\r\n');
  const pairs = lines.map((line) => line.split(': '));
  const headers = Object.fromEntries(
    pairs.map(([name = '', value = '']) => [name.toLowerCase(), value]),
  );
  return { status: Number(first.split(' ')[1]), headers, text };
}

it.each(['application/json', 'application/json; charset=utf-8', 'Application/JSON'])(
  'accepts the type %s',
  async (type) => {
    expect(
      (await post(app.url, '{"submission_id":"typed"}', { 'content-type': type })).status,
    ).toBe(202);
  },
);

it('refuses a body above 8 MiB with 413, declared or not', async () => {
  const body = `{"submission_id":"large","metadata":{"a":"${'x'.repeat(8 * 1024 * 1024)}"}}`;
  const head = `POST /v1/submissions HTTP/1.1\r\nhost: x\r\nx-api-key: ${API_KEY}\r\ncontent-type: application/json\r\n`;
  const announced = parseResponse(
    await sendRaw(app.url, `${head}content-length: ${body.length}\r\n\r\n`),
  );
  expect(announced.status).toBe(413);
  expect(problemOf(announced).title).toBe('The body is too large');
  const chunk = 'x'.repeat(0x10_000);
  const chunks = `10000\r\n${chunk}\r\n`.repeat(129);
  const chunked = parseResponse(
    await sendRaw(
      app.url,
      `${head}transfer-encoding: chunked\r\nconnection: close\r\n\r\n${chunks}0\r\n\r\n`,
    ),
  );
  expect(chunked.status).toBe(413);
});

it('refuses any other body above 64 KiB with 413', async () => {
  const headers = { 'x-api-key': ADMIN_TOKEN };
  const statusAndDetail = async (bytes: number) => {
    const body = 'x'.repeat(bytes);
    const response = await call(app.url, '/v1/webhooks', { method: 'POST', headers, body });
    return [response.status, problemOf(response).detail];
  };
  expect(await statusAndDetail(65_536)).toEqual([400, expect.any(String)]);
  expect(await statusAndDetail(65_537)).toEqual([413, expect.stringContaining('65536')]);
});

describe('invalid HTTP is refused with 400:', () => {
  it.each([
    ['words', 'hello there\r\n\r\n'],
    ['a fragment, which other programs cut off', 'GET /livez?x=1#frag HTTP/1.1\r\nhost: x\r\n\r\n'],
    ['a fragment in the path', 'GET /livez#/../metrics HTTP/1.1\r\nhost: x\r\n\r\n'],
  ])('%s', async (_, bytes) => {
    const response = parseResponse(await sendRaw(app.url, bytes));
    expect(response.status).toBe(400);
    problemOf(response);
  });
});

describe('an internal error', () => {
  async function responseTo(error: unknown): Promise<{ response: HttpResponse; logged: string }> {
    let logged = '';
    const write = (line: string) => {
      logged += line;
    };
    const server = fastify({ logger: { level: 'error', stream: { write } } });
    onTestFinished(() => server.close());
    registerProblems(server);
    server.get('/', async () => {
      throw error;
    });
    return {
      response: await call(await server.listen({ port: 0, host: '127.0.0.1' }), '/'),
      logged,
    };
  }

  it('has Retry-After if the disk is full', async () => {
    const { response, logged } = await responseTo(
      new LedgerError('full', 'no room left to write /secret/path'),
    );
    expect(response.status).toBe(507);
    expect(response.headers['retry-after']).toBe('30');
    expect(problemOf(response)).toMatchObject({
      type: 'urn:dawatch:problem:out-of-space',
      title: 'Out of space',
      detail: 'the disk is full: nothing of the request was stored',
    });
    expect(logged).toContain('/secret/path');
  });

  it.each([
    ['an error', new Error('the secret text')],
    [
      'an error that claims to be caused by the client',
      Object.assign(new Error('the secret text'), { statusCode: 299 }),
    ],
    ['an error of an upstream', Object.assign(new Error('the secret text'), { statusCode: 502 })],
  ])('that is %s hides its text, which the log has under the same instance', async (_, error) => {
    const { response, logged } = await responseTo(error);
    expect(response.status).toBe(500);
    const problem = problemOf(response);
    expect(response.text).not.toContain('secret');
    expect(logged).toContain('the secret text');
    expect(logged).toContain(problem.instance);
  });
});

import { once } from 'node:events';
import { connect } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { z } from 'zod';
import {
  call,
  detailsOf,
  type HttpResponse,
  pathOf,
  problemOf,
} from '../support/app/http-calls.ts';
import { API_KEY, openApp, useApp, useAppWithSandbox } from '../support/app/running-app.ts';
import { storeToken } from '../support/ledger/audit.ts';
import { deadAddress, serve } from '../support/servers/upstream-server.ts';
import { tempFolder } from '../support/temp-folder.ts';

const ID = '6df2c1ce-b11a-4828-b2a6-62bf5b7cb325';
const SUBMIT = { enabled: true, max_bytes: 100_000 };
const ADMIN_TOKEN = 'an-admin-token-for-tests-0123456789';
const upstream = { submit: SUBMIT, timeout_s: 0.4 };
const app = useAppWithSandbox({ upstream });
const disabled = useApp();

const submitTo = (
  url: string,
  body: unknown = { data: 'abc' },
  path = '/v1/submit_data',
  headers = {},
) => call(url, path, { method: 'POST', body, headers });
const submit = (body?: unknown, path?: string, headers?: object) =>
  submitTo(app.url, body, path, headers);
const acceptedId = ({ status, text: body }: HttpResponse): string => {
  expect([status, body]).toEqual([200, expect.stringContaining('submission_id')]);
  return JSON.parse(body).submission_id;
};

/** Returns everything that a raw connection receives until the server closes it. */
async function exchange(url: string, bytes: string): Promise<string> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname).setEncoding('latin1');
  socket.write(bytes);
  return await text(socket);
}

/** The app in front of an upstream that the test controls. */
async function openBehind(url: string, upstreamSettings = {}, settings = {}) {
  const behind = await openApp({
    database: join(tempFolder(), 'ledger.db'),
    upstreamUrl: url,
    upstream: { ...upstream, ...upstreamSettings },
    ...settings,
  });
  onTestFinished(() => behind.close());
  return behind;
}

/** An upstream that responds to a submit, and finds nothing. */
async function serveSubmits(
  status: number,
  body: string | Buffer,
  headers: Record<string, string> = {},
) {
  const bodies: Buffer[] = [];
  const served = await serve((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk) => chunks.push(chunk));
    request.on('end', () => {
      if (request.method === 'GET') {
        response
          .writeHead(404, { 'content-type': 'application/json' })
          .end('{"error":"not found"}');
        return;
      }
      bodies.push(Buffer.concat(chunks));
      response.writeHead(status, headers).end(body);
    });
  });
  return {
    ...served,
    bodies,
    submits: () => served.requests.filter(({ method }) => method === 'POST'),
  };
}

it.each([
  ['/v1/submit_data', 'application/json', '{"data":"raw request"}'],
  ['/v1/submit_raw_data', 'application/octet-stream', 'raw bytes'],
])(
  'an upstream client that uses %s changes its base URL and nothing else',
  async (path, type, body) => {
    // The key of the client is the key of the service, which sends the same one to the upstream.
    const client = async (base: string, id?: string): Promise<{ id: string; state: unknown }> => {
      const { host } = new URL(base);
      const head = (line: string) =>
        `${line} HTTP/1.1\r\nhost: ${host}\r\nx-api-key: ${KEY}\r\nconnection: close\r\n`;
      const entity = `content-type: ${type}\r\ncontent-length: ${body.length}\r\n\r\n${body}`;
      const submitted =
        id ??
        JSON.parse(bodyOf(await exchange(base, `${head(`POST ${path}`)}${entity}`))).submission_id;
      const info = await exchange(
        base,
        `${head(`GET /v1/get_submission_info?submission_id=${submitted}`)}\r\n`,
      );
      return {
        id: submitted,
        state: info.startsWith('HTTP/1.1 200') ? JSON.parse(bodyOf(info)).state : undefined,
      };
    };
    const bodyOf = (response: string) => /\{.*\}/s.exec(response)?.[0] ?? response;
    const KEY = 'sandbox-key';
    const behind = await openApp({
      database: join(tempFolder(), 'l.db'),
      upstreamUrl: app.sandbox.url,
      apiKey: KEY,
      upstream,
    });
    onTestFinished(() => behind.close());
    for (const base of [app.sandbox.url, behind.url]) {
      const { id } = await client(base);
      await vi.waitFor(
        async () => expect((await client(base, id)).state).toBe('Finalized'),
        15_000,
      );
    }
  },
);

it('tracks the submission before the client receives its id, and until it is final', async () => {
  const id = acceptedId(await submit());
  expect(detailsOf(await call(app.url, pathOf(id)))).toMatchObject({
    upstream: 'default',
    submission_id: id,
  });
  expect(JSON.parse((await call(app.url, `${pathOf(id)}/wait?timeout_s=20`)).text).status).toBe(
    'finalized',
  );
});

it('forwards the bytes, the query and the headers of the data, and returns the response unchanged', async () => {
  const body = `{ "submission_id" : "${ID}" , "extra": 1 }`;
  const headers = { 'content-type': 'application/json; charset=utf-8', 'x-other': 'kept back' };
  const target = await serveSubmits(201, body, headers);
  const { url } = await openBehind(`${target.url}/base`);
  const bytes = Buffer.from(Array.from({ length: 70_000 }, (_, index) => index % 256));
  const sent = {
    'content-type': 'application/x-blob; a=b',
    authorization: 'Bearer secret',
  };
  const response = await submitTo(url, bytes, '/v1/submit_raw_data?upstream=default&x=%2F&y', sent);
  expect([response.status, response.text, response.headers['content-type']]).toEqual([
    201,
    body,
    headers['content-type'],
  ]);
  expect(response.headers['x-other']).toBeUndefined();
  expect(target.bodies).toEqual([bytes]);
  const [request] = target.submits();
  expect(request?.url).toBe('/base/v1/submit_raw_data?x=%2F&y');
  expect(request?.headers).toMatchObject({
    'content-type': 'application/x-blob; a=b',
    // The id in a compressed response could not be read.
    'accept-encoding': 'identity',
    'content-length': '70000',
    'x-api-key': 'sandbox-key',
  });
  expect(JSON.stringify(request?.rawHeaders)).not.toMatch(new RegExp(`${API_KEY}|Bearer`));
  expect((await call(url, pathOf(ID))).status).toBe(200);
});

it('every request to the upstream has the further headers of the settings; a response that quotes them has them masked', async () => {
  const secret = 'the-secret-of-the-gateway';
  const target = await serveSubmits(201, `{"submission_id":"${ID}","seen":"${secret}"}`);
  const headers = { 'X-Gateway': `Key ${secret}`, 'x-short': '1' };
  const { url } = await openBehind(
    target.url,
    { headers, bearer: 'b' },
    { adminToken: ADMIN_TOKEN },
  );
  const { text: answer } = await submitTo(url);
  expect(answer).toBe(`{"submission_id":"${ID}","seen":"[redacted]"}`);
  await call(url, '/users/get_user?name=a&email=a@b.example', {
    headers: { 'x-api-key': [], authorization: `Bearer ${ADMIN_TOKEN}` },
  });
  await expect
    .poll(() => new Set(target.requests.map((request) => request.url?.split('?')[0])))
    .toEqual(new Set(['/v1/submit_data', '/v1/get_submission_info', '/users/get_user']));
  for (const request of target.requests)
    expect(request.headers).toMatchObject({
      'x-gateway': headers['X-Gateway'],
      'x-short': '1',
      'user-agent': expect.stringMatching(/^dawatch\/\d/),
    });
});

it('forwards an Idempotency-Key that differs between callers and stays the same for each', async () => {
  const target = await serveSubmits(200, `{"submission_id":"${ID}"}`);
  const database = join(tempFolder(), 'ledger.db');
  const open = () => openBehind(target.url, {}, { database, adminToken: ADMIN_TOKEN });
  const bearer = (token: string) => ({ 'x-api-key': [], authorization: `Bearer ${token}` });
  let behind = await open();
  const [one, other] = ['one', 'other'].map((name) => storeToken(database, 'service', name));
  const sent = async (headers: object, key: string) => {
    const withKey = { ...headers, 'idempotency-key': key };
    await submitTo(behind.url, undefined, undefined, withKey);
    return target.submits().at(-1)?.headers['idempotency-key'];
  };
  const callers = [{}, bearer(ADMIN_TOKEN), bearer(one?.token ?? ''), bearer(other?.token ?? '')];
  const keys: unknown[] = [];
  for (const headers of callers)
    for (const key of ['order-1', 'order-2']) keys.push(await sent(headers, key));
  expect(new Set(keys).size).toBe(8);
  for (const key of keys) expect(z.uuid({ version: 'v8' }).safeParse(key).success).toBe(true);

  await behind.close();
  behind = await open();
  expect(await sent({}, 'order-1'), 'after a restart').toBe(keys[0]);
  const rotated = await call(behind.url, `/v1/credentials/${one?.id}/rotate`, {
    method: 'POST',
    body: {},
    headers: bearer(ADMIN_TOKEN),
  });
  const { secret } = JSON.parse(rotated.text);
  expect(await sent(bearer(secret), 'order-1'), 'after a rotation').toBe(keys[4]);
  expect(await sent({}, ''), 'an empty key').toBeUndefined();

  const elsewhere = await openBehind(target.url);
  await submitTo(elsewhere.url, undefined, undefined, { 'idempotency-key': 'order-1' });
  expect(target.submits().at(-1)?.headers['idempotency-key'], 'of another ledger').not.toBe(
    keys[0],
  );
});

it.each([
  ['x=a"b<c>{d}|e\\f^g`h', 'x=a%22b%3Cc%3E%7Bd%7D%7Ce%5Cf%5Eg%60h'],
  ["a=!$'()*+,;:@/?&b=%2F%zz&c", "a=!$'()*+,;:@/?&b=%2F%zz&c"],
  ['%75pstream=default&x=1', 'x=1'],
])('forwards only characters that a query can contain: %s', async (query, forwarded) => {
  const target = await serveSubmits(200, `{"submission_id":"${ID}"}`);
  const { url } = await openBehind(target.url);
  const head = `POST /v1/submit_data?${query} HTTP/1.1\r\nhost: x\r\nx-api-key: ${API_KEY}\r\nconnection: close\r\n`;
  expect(await exchange(url, `${head}content-length: 2\r\n\r\n{}`)).toMatch(/^HTTP\/1.1 200 /);
  expect(target.submits()[0]?.url).toBe(`/v1/submit_data?${forwarded}`);
});

it.each([
  [400, 'Json deserialize error', {}],
  [402, '{"error":"no credit"}', { 'content-type': 'application/json' }],
  [429, 'Too many requests', { 'retry-after': '7' }],
])(
  'returns the refusal %i of the upstream unchanged, and tracks nothing',
  async (status, body, headers) => {
    const target = await serveSubmits(status, body, headers);
    const { url } = await openBehind(target.url);
    const response = await submitTo(url);
    expect(response).toMatchObject({ status, text: body });
    expect(response.headers).toMatchObject(headers);
    expect(target.submits()).toHaveLength(1);
    expect(JSON.parse((await call(url, '/v1/submissions')).text).submissions).toEqual([]);
  },
);

/**
 * Submits over a raw connection, and returns the head of the response and the bytes of its body.
 */
async function submitRaw(url: string) {
  const head = `POST /v1/submit_raw_data HTTP/1.1\r\nhost: x\r\nx-api-key: ${API_KEY}\r\nconnection: close\r\n`;
  const response = await exchange(url, `${head}content-length: 3\r\n\r\nabc`);
  const at = response.indexOf('\r\n\r\n');
  return { head: response.slice(0, at), body: Buffer.from(response.slice(at + 4), 'latin1') };
}

describe('returns the bytes of the upstream with the headers that describe them:', () => {
  it.each<[string, number, Buffer, Record<string, string>]>([
    [
      'text that is not UTF-8',
      422,
      Buffer.from('zu gro\xdf', 'latin1'),
      { 'content-type': 'text/plain; charset=latin1' },
    ],
    [
      'what is not encoded as stated',
      400,
      Buffer.from('plain'),
      { 'content-encoding': 'gzip', 'content-language': 'en' },
    ],
  ])('%s', async (_, status, body, headers) => {
    const target = await serveSubmits(status, body, headers);
    const { url } = await openBehind(target.url);
    const response = await submitRaw(url);
    expect(response.head).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
    for (const [name, value] of Object.entries(headers))
      expect(response.head.toLowerCase()).toContain(`${name}: ${value}`);
    expect(response.body).toEqual(body);
    expect((await call(url, pathOf(ID))).status).toBe(status === 200 ? 200 : 404);
  });

  it('except credentials of this server', async () => {
    const target = await serveSubmits(400, 'wrong key sandbox-key');
    const { url } = await openBehind(target.url);
    const { body } = await submitRaw(url);
    expect(String(body)).toBe('wrong key [redacted]');
  });
});

it('sends nothing to an upstream that has asked for a pause, until it is over', async () => {
  const target = await serveSubmits(429, 'Too many requests', { 'retry-after': '60' });
  const { url } = await openBehind(target.url);
  expect((await submitTo(url)).status).toBe(429);
  await call(url, '/v1/submissions', { method: 'POST', body: { submission_id: 'open' } });
  const response = await submitTo(url);
  expect(problemOf(response)).toMatchObject({ status: 503, submitted: 'no' });
  expect(Number(response.headers['retry-after'])).toBeGreaterThan(50);
  expect(target.requests).toHaveLength(1);
});

describe('after an unclear response, reports that, submits nothing again and tracks nothing:', () => {
  it.each([
    ['no response', 'hang', 504],
    ['a reset', 'reset', 502],
    ['a proxy that fails', 'html_502', 502],
    ['half of the JSON', 'truncated', 502],
    ['a redirect', 'redirect', 502],
  ] as const)('%s', async (_, kind, status) => {
    const before = { submitted: app.sandbox.model.size, tracked: await trackedCount() };
    app.sandbox.injectFault({ kind, target: 'submits', count: 1 });
    const problem = problemOf(await submit());
    expect(problem).toMatchObject({ status, submitted: 'unclear', error: problem.detail });
    expect(problem.detail).toContain('it is unclear whether the upstream has accepted the data');
    expect({ submitted: app.sandbox.model.size - 1, tracked: await trackedCount() }).toEqual(
      before,
    );
  });

  const trackedCount = async () =>
    JSON.parse((await call(app.url, '/v1/overview')).text).submissions.total;
});

it('logs no part of the data, even if an unclear response repeats it', async () => {
  const logged: string[] = [];
  const target = await serveSubmits(500, 'cannot store secret-data');
  const { url } = await openBehind(
    target.url,
    {},
    { logLevel: 'debug', onLog: (line: string) => logged.push(line) },
  );
  expect(problemOf(await submitTo(url, 'secret-data')).detail).toContain(
    'HTTP 500: cannot store secret-data',
  );
  await expect.poll(() => logged.join('')).toContain('"reason":"HTTP 500"');
  expect(logged.join('')).not.toContain('secret-data');
});

describe('reports that nothing was submitted:', () => {
  it('the upstream cannot be reached', async () => {
    const { url } = await openBehind(await deadAddress());
    expect(problemOf(await submitTo(url))).toMatchObject({ submitted: 'no' });
  });

  it('the upstream refuses the key of this server', async () => {
    const target = await serveSubmits(401, 'Invalid API key');
    const { url } = await openBehind(target.url);
    const problem = problemOf(await submitTo(url));
    expect(problem).toMatchObject({ status: 502, submitted: 'no' });
    expect(problem.detail).toContain('refuses the credentials of this server');
  });

  it('a firewall refuses the request, which says nothing about the key', async () => {
    const target = await serveSubmits(403, '<html><h1>Forbidden</h1></html>');
    const { url } = await openBehind(target.url);
    const problem = problemOf(await submitTo(url));
    expect(problem).toMatchObject({ status: 502, submitted: 'no' });
    expect(problem.detail).toContain('a proxy or firewall refused the request with HTTP 403');
  });

  it('the request budget is exhausted', async () => {
    const target = await serveSubmits(200, `{"submission_id":"${ID}"}`);
    const { url } = await openBehind(target.url, {
      budget: { requests: 2, per_s: 600, concurrency: 2 },
    });
    // One request for the submit, and one for the poll of its submission.
    acceptedId(await submitTo(url));
    await expect.poll(() => target.requests).toHaveLength(2);
    const response = await submitTo(url);
    expect(problemOf(response)).toMatchObject({ status: 503, submitted: 'no' });
    expect(Number(response.headers['retry-after'])).toBeGreaterThan(60);
    expect(target.submits()).toHaveLength(1);
  });

  it('the data is too large, declared or not', async () => {
    const large = 'x'.repeat(SUBMIT.max_bytes + 1);
    expect(problemOf(await submit(large)).detail).toBe('the body must have at most 100000 bytes');
    const chunked = await submit(large, '/v1/submit_raw_data', {
      'content-length': [],
      'transfer-encoding': 'chunked',
    });
    expect(chunked.status).toBe(413);
  });

  it.each([
    [401, { 'x-api-key': 'wrong-key-of-this-test' }, ''],
    [415, { 'content-encoding': 'gzip' }, ''],
    [415, { 'content-type': 'nonsense' }, ''],
    [400, {}, '?upstream=default&upstream=default'],
  ])(
    'it is refused with %i before it reaches the handler: %j%s',
    async (status, headers, query) => {
      const problem = problemOf(await submit({}, `/v1/submit_data${query}`, headers));
      expect(problem).toMatchObject({ status, submitted: 'no', error: problem.detail });
    },
  );
});

it('tracks the submission of a client that disconnects after the upstream has received the data', async () => {
  const released = Promise.withResolvers<void>();
  const received = Promise.withResolvers<void>();
  const target = await serve((request, response) => {
    if (request.method === 'GET') {
      response.writeHead(404).end();
      return;
    }
    received.resolve();
    void released.promise.then(() => response.end(`{"submission_id":"${ID}"}`));
  });
  const { url } = await openBehind(target.url, { timeout_s: 5 });
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  socket.write(
    `POST /v1/submit_raw_data HTTP/1.1\r\nhost: x\r\nx-api-key: ${API_KEY}\r\ncontent-length: 3\r\n\r\nabc`,
  );
  await received.promise;
  socket.destroy();
  await once(socket, 'close');
  released.resolve();
  await vi.waitFor(async () => expect((await call(url, pathOf(ID))).status).toBe(200), 5_000);
});

it('spends no request budget on a client that disconnects while its data waits', async () => {
  const released = Promise.withResolvers<void>();
  const received = Promise.withResolvers<void>();
  const target = await serve((request, response) => {
    if (request.method === 'GET') {
      response.writeHead(404).end('{"error":"not found"}');
      return;
    }
    received.resolve();
    void released.promise.then(() => response.end(`{"submission_id":"${ID}"}`));
  });
  const { url } = await openBehind(target.url, {
    timeout_s: 5,
    budget: { requests: 2, per_s: 600, concurrency: 1 },
  });
  const first = submitTo(url);
  await received.promise;
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  socket.write(
    `POST /v1/submit_raw_data HTTP/1.1\r\nhost: x\r\nx-api-key: ${API_KEY}\r\ncontent-length: 3\r\n\r\nabc`,
  );
  await new Promise((resolve) => setTimeout(resolve, 100));
  socket.destroy();
  await once(socket, 'close');
  await new Promise((resolve) => setTimeout(resolve, 100));
  released.resolve();
  acceptedId(await first);
  // The rest of the budget is for the poll of the first submission.
  await vi.waitFor(
    () => expect(target.requests.map(({ method }) => method)).toEqual(['POST', 'GET']),
    5_000,
  );
});

it('sends no data of a credential that ends while the data waits for the request budget', async () => {
  const released = Promise.withResolvers<void>();
  const received = Promise.withResolvers<void>();
  const posts: string[] = [];
  const target = await serve((request, response) => {
    if (request.method === 'POST') posts.push(String(request.headers['content-type']));
    received.resolve();
    void released.promise.then(() => response.end(`{"submission_id":"${ID}"}`));
  });
  const database = join(tempFolder(), 'ledger.db');
  const upstreamSettings = {
    timeout_s: 5,
    budget: { requests: 50, per_s: 1, concurrency: 1 },
  };
  const { url } = await openBehind(target.url, upstreamSettings, { database });
  const { token, revoke } = storeToken(database, 'service');
  const first = submitTo(url);
  await received.promise;
  const second = submitTo(url, {}, '/v1/submit_data', { 'x-api-key': token });
  for (let times = 0; times < 5; times += 1) await call(url, '/livez');
  revoke();
  released.resolve();
  acceptedId(await first);
  expect(problemOf(await second)).toMatchObject({ status: 401, submitted: 'no' });
  expect(posts).toHaveLength(1);
});

it('never sends the body of a client that disconnects before its end', async () => {
  const target = await serveSubmits(200, `{"submission_id":"${ID}"}`);
  const { url } = await openBehind(target.url);
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  socket.write(
    `POST /v1/submit_raw_data HTTP/1.1\r\nhost: x\r\nx-api-key: ${API_KEY}\r\ncontent-length: 9\r\n\r\nabc`,
  );
  await new Promise((resolve) => setTimeout(resolve, 50));
  socket.destroy();
  acceptedId(await submitTo(url, 'later'));
  expect(target.bodies.map(String)).toEqual(['later']);
});

it('needs a credential of dawatch, and does not exist unless it is enabled', async () => {
  expect(
    (await submit({}, '/v1/submit_data', { 'x-api-key': 'wrong-key-of-this-test' })).status,
  ).toBe(401);
  const response = await submitTo(disabled.url);
  expect(problemOf(response).detail).toBe(
    'there is no POST /v1/submit_data: upstreams.<name>.submit.enabled is false for each upstream',
  );
});

it('describes both endpoints in the OpenAPI document, with examples', async () => {
  const { paths } = JSON.parse((await call(app.url, '/openapi.json')).text);
  for (const [path, type] of [
    ['/v1/submit_data', 'application/json'],
    ['/v1/submit_raw_data', 'application/octet-stream'],
  ]) {
    const { post } = paths[path as string];
    expect(Object.keys(post.requestBody.content)).toEqual([type]);
    expect(Object.keys(post.responses)).toEqual(
      expect.arrayContaining(['200', '413', '502', '504', '507']),
    );
  }
  const { paths: without } = JSON.parse((await call(disabled.url, '/openapi.json')).text);
  expect(Object.keys(without)).not.toContain('/v1/submit_data');
});

import { Agent } from 'node:http';
import { afterAll, describe, expect, it } from 'vitest';
import { call, problemOf, sendRaw } from '../support/app/http-calls.ts';
import { ADMIN_TOKEN } from '../support/app/lookups.ts';
import { fetchDocument } from '../support/app/openapi-document.ts';
import { API_KEY, useApp } from '../support/app/running-app.ts';

const app = useApp({ adminToken: ADMIN_TOKEN });
/** One connection, because opening one per request takes a fifth of the CPU time. */
const agent = new Agent({ keepAlive: true, maxSockets: 1 });
afterAll(() => agent.destroy());
const METHODS = ['GET', 'POST', 'PATCH', 'DELETE', 'TRACE'];
/** Paths whose last part can also be an id. */
const ALSO_AN_ID: Record<string, string> = {
  '/v1/deliveries/replay': '/v1/deliveries/{id}',
  '/v1/submissions/lookup': '/v1/submissions/{id}',
};

/** Every path with its methods in the OpenAPI document. */
async function documentedPaths(): Promise<Map<string, string[]>> {
  const { operations } = await fetchDocument(app.url);
  const paths = new Map<string, string[]>();
  for (const operation of operations.keys()) {
    const [method = '', path = ''] = operation.split(' ');
    paths.set(path, [...(paths.get(path) ?? []), method]);
  }
  for (const path of ['/', '/docs', '/docs/', '/assets/main.js']) paths.set(path, ['GET']);
  return paths;
}

describe('a request that changes something', () => {
  it('may have the content type of JSON without a body, as many clients send it, on every route that needs none', async () => {
    const { operations } = await fetchDocument(app.url);
    let compared = 0;
    for (const [operation, { requestBody }] of operations) {
      const [method = '', path = ''] = operation.split(' ');
      if (method === 'GET' || (requestBody && !path.endsWith('/rotate'))) continue;
      const id = path.startsWith('/v1/webhooks/') ? `wh_${'0'.repeat(32)}` : '1';
      const at = path.replace('{id}', id).replace('{name}', 'none');
      const send = (headers: object) =>
        call(app.url, at, { method, agent, headers: { 'x-api-key': ADMIN_TOKEN, ...headers } });
      const plain = await send({});
      const type = { 'content-type': 'application/json; charset=utf-8' };
      expect([400, 401], operation).not.toContain(plain.status);
      for (const headers of [type, { ...type, 'content-length': '0' }])
        expect((await send(headers)).status, operation).toBe(plain.status);
      compared += 1;
    }
    expect(compared).toBeGreaterThan(5);
  });

  it('may have a slash at its end, as some frameworks send it, if it cannot lack an id', async () => {
    const send = (method: string, path: string) =>
      call(app.url, path, {
        method,
        ...(method === 'POST' && { body: { submission_ids: ['a'] } }),
      });
    expect((await send('POST', '/v1/submissions/')).status).toBe(202);
    expect((await send('POST', '/v1/submissions/lookup/?')).status).toBe(200);
    expect((await send('DELETE', '/v1/submissions/')).status).toBe(400);
    expect((await send('GET', '/v1/submissions/')).status).toBe(400);
    expect((await send('POST', '/v1/submissions//')).status).toBe(404);
  });
});

it.each([
  ['webhooks', { url: 'https://hooks.example.com/x' }],
  ['mutes', { reason: 'x', until: new Date(Date.now() + 86_400_000).toISOString() }],
])(
  'Location leads to a new member of %s also below a path of a proxy, and after a slash at its end',
  async (collection, body) => {
    for (const path of [`/v1/${collection}`, `/v1/${collection}/`, `/v1/${collection}/?`]) {
      const headers = { authorization: `Bearer ${ADMIN_TOKEN}` };
      const made = await call(app.url, path, { method: 'POST', headers, body });
      expect(made.status, made.text).toBe(201);
      const location = new URL(`${made.headers.location}`, `http://proxy.example/dawatch${path}`);
      const { id } = JSON.parse(made.text);
      expect(location.href).toBe(`http://proxy.example/dawatch/v1/${collection}/${id}`);
    }
  },
);

describe('a method that a path does not support', () => {
  it('is refused with 405 and Allow, at every path, without a credential', async () => {
    const paths = await documentedPaths();
    for (const [path, methods] of paths) {
      const others = METHODS.filter((method) => !methods.includes(method));
      // A static path can also match a path with a parameter.
      const also = paths.get(ALSO_AN_ID[path] ?? '') ?? [];
      const at = path.replace('{id}', '1');
      const readable = (methods.includes('GET') && path !== '/v1/events') || also.includes('GET');
      const expected = new Set([...methods, ...also, 'OPTIONS', ...(readable ? ['HEAD'] : [])]);
      for (const method of others.filter((one) => !also.includes(one))) {
        const response = await call(app.url, at, { method, agent, headers: { 'x-api-key': [] } });
        expect(response.status, `${method} ${path}`).toBe(405);
        const allowed = String(response.headers.allow).split(', ');
        const detail = `${at} does not support ${method}, only ${allowed.join(', ')}`;
        expect(problemOf(response).detail).toBe(detail);
        expect(allowed.toSorted(), path).toEqual([...expected].toSorted());
      }
    }
  });

  it.each([
    ['an encoded path', '/%6civez'],
    ['a path with a query', '/livez?x=/v1'],
    ['an id with an encoded slash', '/v1/submissions/a%2fb'],
    ['an absolute URL', 'http://evil.example/livez'],
  ])('is refused at %s', async (_, path) => {
    expect((await sendRaw(app.url, `PUT ${path} HTTP/1.1\r\nhost: x\r\n\r\n`)).slice(0, 12)).toBe(
      'HTTP/1.1 405',
    );
  });

  const NOTHING = '/nowhere /v1 /v1/ /v1/submissions/a/b //livez /LIVEZ /livez/ /asset/x';
  it.each(NOTHING.split(' '))('is 404 where there is nothing: %s', async (path) => {
    for (const method of [...METHODS, 'OPTIONS']) {
      const response = await call(app.url, path, { method });
      expect([response.status, response.headers.allow], method).toEqual([404, undefined]);
    }
  });
});

describe('OPTIONS', () => {
  it('returns Allow at every path, without a credential', async () => {
    for (const path of (await documentedPaths()).keys()) {
      const response = await call(app.url, path.replace('{id}', '1'), {
        method: 'OPTIONS',
        headers: { 'x-api-key': [] },
      });
      expect([response.status, response.text], path).toEqual([204, '']);
      expect(response.headers.allow, path).toMatch(/^(?:GET|POST|DELETE)\b.*, OPTIONS$/);
    }
  });

  it('returns the methods of all paths for the server', async () => {
    const response = await call(app.url, '*', { method: 'OPTIONS' });
    expect([response.status, response.headers.allow]).toEqual([
      204,
      'GET, HEAD, POST, PATCH, DELETE, OPTIONS',
    ]);
  });
});

it('HEAD is GET without the body', async () => {
  const PATHS = '/ /livez /readyz /openapi.json /docs /assets/main.js /v1/submissions /v1/whoami';
  for (const path of PATHS.split(' ')) {
    const [head, get] = [await call(app.url, path, { method: 'HEAD' }), await call(app.url, path)];
    expect([head.status, head.text, head.headers['content-type']], path).toEqual([
      200,
      '',
      get.headers['content-type'],
    ]);
  }
  const missing = await call(app.url, '/v1/submissions/never', {
    method: 'HEAD',
    headers: { 'x-api-key': API_KEY },
  });
  expect([missing.status, missing.text]).toEqual([404, '']);
});

import { Agent } from 'node:http';
import { afterAll, describe, expect, it } from 'vitest';
import { call, problemOf } from '../support/app/http-calls.ts';
import { ADMIN_TOKEN } from '../support/app/lookups.ts';
import { fetchDocument } from '../support/app/openapi-document.ts';
import { API_KEY, useApp } from '../support/app/running-app.ts';

const app = useApp({ adminToken: ADMIN_TOKEN });
/** One connection, because opening one per request takes a fifth of the CPU time. */
const agent = new Agent({ keepAlive: true, maxSockets: 1 });
afterAll(() => agent.destroy());

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
});

it.each([
  ['webhooks', { url: 'https://hooks.example.com/x' }],
  ['mutes', { reason: 'x', until: new Date(Date.now() + 86_400_000).toISOString() }],
])(
  'Location leads to a new member of %s also below a path of a proxy',
  async (collection, body) => {
    const path = `/v1/${collection}`;
    const headers = { authorization: `Bearer ${ADMIN_TOKEN}` };
    const made = await call(app.url, path, { method: 'POST', headers, body });
    expect(made.status, made.text).toBe(201);
    const location = new URL(`${made.headers.location}`, `http://proxy.example/dawatch${path}`);
    const { id } = JSON.parse(made.text);
    expect(location.href).toBe(`http://proxy.example/dawatch${path}/${id}`);
  },
);

it('a method that a path does not support is 404 without a credential, as where there is nothing', async () => {
  const paths = ['/livez', '/v1/submissions', '/v1/submissions/a/b', '/nowhere', '/v1/', '/LIVEZ'];
  for (const path of paths)
    for (const method of ['PUT', 'TRACE', 'OPTIONS']) {
      const response = await call(app.url, path, { method, headers: { 'x-api-key': [] } });
      expect(problemOf(response).detail, path).toBe(`there is no ${method} ${path}`);
      expect(response.status).toBe(404);
    }
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

import { describe, expect, it } from 'vitest';
import { call, type HttpResponse, sendRaw } from '../support/app/http-calls.ts';
import { fetchDocument } from '../support/app/openapi-document.ts';
import { useApp } from '../support/app/running-app.ts';

const app = useApp();

function expectSecured({ headers }: Pick<HttpResponse, 'headers'>): void {
  expect(headers).toMatchObject({
    'x-content-type-options': 'nosniff',
    'x-frame-options': 'DENY',
    'referrer-policy': 'no-referrer',
    'cross-origin-opener-policy': 'same-origin',
    'cross-origin-resource-policy': 'same-origin',
    'cross-origin-embedder-policy': 'require-corp',
  });
  const csp = String(headers['content-security-policy']);
  expect(csp).toMatch(/^default-src 'none';/);
  expect(csp).toContain("frame-ancestors 'none'");
  expect(csp).not.toMatch(/unsafe|\*|https?:/);
  const REVEALING = 'server x-powered-by strict-transport-security access-control-allow-origin via';
  for (const name of REVEALING.split(' ')) expect(headers, name).not.toHaveProperty(name);
}

describe('every response has security headers, reveals no server and is not cached:', () => {
  it.each<[string, number, string, object]>([
    ['an answer', 200, '/v1/submissions', {}],
    ['a probe', 200, '/livez', {}],
    ['a head', 200, '/v1/submissions', { method: 'HEAD' }],
    ['an invalid request', 400, '/v1/submissions?limit=x', {}],
    ['a request without access', 401, '/v1/submissions', { headers: { 'x-api-key': [] } }],
    ['an unknown path', 404, '/nowhere', {}],
    ['an unsupported method', 404, '/livez', { method: 'PATCH' }],
    ['a body that is not JSON', 400, '/v1/submissions', { method: 'POST', body: '{' }],
    [
      'a body above the limit',
      413,
      '/v1/submissions',
      { method: 'POST', body: 'x'.repeat(8 * 1024 * 1024 + 1) },
    ],
    ['a path that cannot be decoded', 400, '/v1/submissions/%zz', {}],
    ['a path that the router refuses', 400, `/v1/submissions/${'x'.repeat(400)}`, {}],
  ])('%s', async (_, status, path, options) => {
    const response = await call(app.url, path, options);
    expect(response.status).toBe(status);
    expectSecured(response);
    expect(response.headers['cache-control']).toBe('no-store');
    expect(response.headers['content-security-policy']).not.toContain('self');
  });

  it.each([
    ['input that is not HTTP', 'nonsense\r\n\r\n', 400],
    [
      'headers above the limit',
      `GET / HTTP/1.1\r\nhost: x\r\na: ${'x'.repeat(20_000)}\r\n\r\n`,
      431,
    ],
    ['no Host', 'GET /livez HTTP/1.1\r\nconnection: close\r\n\r\n', 400],
  ])('%s', async (_, bytes, status) => {
    const [first = '', ...lines] =
      (await sendRaw(app.url, bytes)).split('\r\n\r\n')[0]?.split('\r\n') ?? [];
    expect(first).toContain(`HTTP/1.1 ${status}`);
    expectSecured({
      headers: Object.fromEntries(lines.map((line) => line.split(/: (.*)/).slice(0, 2))),
    });
  });
});

it('every route, file and page has a policy against inline scripts and styles', async () => {
  const { operations } = await fetchDocument(app.url);
  const assets = ['/assets/main.js', '/assets/style/base.css', '/assets/lib/swagger-ui.css'];
  const open = ['/', '/docs', ...assets];
  const sent = [...operations.keys()].map((operation) => operation.split(' ') as [string, string]);
  for (const [method, path] of [...sent, ...open.map((path) => ['GET', path] as const)]) {
    const stream = path === '/v1/events' ? '?after=x' : '';
    const { headers } = await call(app.url, `${path.replace('{id}', 'a')}${stream}`, { method });
    const policy = String(headers['content-security-policy']);
    expect(policy, path).toMatch(/^default-src 'none';/);
    expect(policy, path).not.toMatch(/unsafe|\*|https?:/);
    for (const directive of ["base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"])
      expect(policy, path).toContain(directive);
  }
});

describe('pages of other origins', () => {
  const ORIGIN = 'https://app.example';
  const open = useApp({ corsOrigins: [ORIGIN, 'http://localhost:3000'] });
  const preflight = {
    'access-control-request-method': 'POST',
    'access-control-request-headers': 'x-api-key',
  };
  const corsOf = ({ headers }: HttpResponse) =>
    Object.keys(headers).filter((name) => /^(access-control|vary)/.test(name));

  it('may read nothing unless it is configured', async () => {
    const headers = { origin: ORIGIN, ...preflight };
    expect(corsOf(await call(app.url, '/v1/submissions', { headers }))).toEqual([]);
    const preflightResponse = await call(app.url, '/v1/submissions', {
      method: 'OPTIONS',
      headers,
    });
    expect([preflightResponse.status, ...corsOf(preflightResponse)]).toEqual([404]);
  });

  it('may read responses and refusals, and preflight, if exactly their origin is configured', async () => {
    for (const [status, secret] of [
      [200, undefined],
      [401, []],
    ] as const) {
      const headers = { origin: ORIGIN, ...(secret && { 'x-api-key': [...secret] }) };
      const response = await call(open.url, '/v1/submissions', { headers });
      expect(response.status).toBe(status);
      expect(response.headers).toMatchObject({
        'access-control-allow-origin': ORIGIN,
        vary: 'Origin',
      });
      expect(response.headers['access-control-expose-headers']).toContain('retry-after');
      expect(response.headers).not.toHaveProperty('access-control-allow-credentials');
    }
    const headers = { origin: ORIGIN, 'x-api-key': [], ...preflight };
    const preflightResponse = await call(open.url, '/v1/submissions', {
      method: 'OPTIONS',
      headers,
    });
    expect([preflightResponse.status, preflightResponse.text]).toEqual([204, '']);
    expect(preflightResponse.headers).toMatchObject({
      'access-control-allow-origin': ORIGIN,
      'access-control-allow-methods': expect.stringContaining('DELETE'),
      'access-control-allow-headers': expect.stringMatching(/x-api-key/),
      'x-content-type-options': 'nosniff',
    });
  });

  it.each(['https://app.example.evil', 'http://app.example'])(
    'may read nothing as %s if another origin is configured',
    async (origin) => {
      const response = await call(open.url, '/v1/submissions', { headers: { origin } });
      expect(corsOf(response)).toEqual(['vary']);
      const preflightResponse = await call(open.url, '/v1/submissions', {
        method: 'OPTIONS',
        headers: { origin, ...preflight },
      });
      expect([preflightResponse.status, ...corsOf(preflightResponse)]).toEqual([404, 'vary']);
    },
  );
});

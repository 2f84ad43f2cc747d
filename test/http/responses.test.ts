import { beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { call, type HttpResponse, pathOf, problemOf, sendRaw } from '../support/app/http-calls.ts';
import { openLookups, useLookups, userPath } from '../support/app/lookups.ts';
import { type Documented, fetchDocument, type Operation } from '../support/app/openapi-document.ts';

const lookups = useLookups({
  sandbox: { rowDelayMs: 0 },
  upstream: { timeout_s: 0.3 },
  channels: { ops: { type: 'slack', url: 'http://127.0.0.1:1' } },
});
let spec: Documented;

/** Documented responses that no request in this test causes, with the reason. */
const LISTED: Record<string, string> = {
  503: 'the ledger fails: test/http/problems.test.ts',
  507: 'the disk is full: test/http/problems.test.ts',
  default: 'whatever else goes wrong: test/http/problems.test.ts',
};
/** The route that every role may use. */
const OPEN_TO_ALL_ROLES = ['GET /v1/whoami', 'POST /v1/session', 'DELETE /v1/session'];
/** Responses that are caused elsewhere. */
const ELSEWHERE = [
  // A hundred mutes: test/alerts/deliveries-alerts.test.ts.
  'POST /v1/mutes 409',
  // The most credentials and webhooks: test/scenarios/stored-limits.test.ts.
  'POST /v1/credentials 409',
  'POST /v1/webhooks 409',
  // The settings of this server have an admin token: test/access/credentials.test.ts.
  'DELETE /v1/credentials/{id} 409',
  // People need a provider: test/access/oidc.test.ts.
  'DELETE /v1/session 200',
];
const isListed = (route: string, status: string) =>
  status in LISTED ||
  ['GET /v1/events 200', ...OPEN_TO_ALL_ROLES.map((one) => `${one} 403`), ...ELSEWHERE].includes(
    `${route} ${status}`,
  );

/** Sends a request made of the document's own examples. */
function exampleOf(route: string, operation: Operation) {
  const [method = '', template = ''] = route.split(' ');
  const required = operation.parameters.filter((parameter) => parameter.required);
  const exampleFor = (name: string) =>
    encodeURIComponent(String(required.find((one) => one.name === name)?.example));
  const path = template.replace(/\{(\w+)\}/g, (_, name: string) => exampleFor(name));
  const query = required
    .filter((one) => one.in === 'query')
    .map(({ name }) => `${name}=${exampleFor(name)}`);
  const [body] = (operation.requestBody?.content['application/json']?.schema?.examples ??
    []) as unknown[];
  return {
    method,
    path: query.length > 0 ? `${path}?${query.join('&')}` : path,
    body,
  };
}

const as = (token: string | undefined) => ({
  'x-api-key': [],
  ...(token && { authorization: `Bearer ${token}` }),
});

function send(
  url: string,
  route: string,
  token: string | undefined,
  more: { path?: string; body?: unknown; headers?: object } = {},
) {
  const operation = spec.operations.get(route) ?? expect.fail(route);
  const { method, ...example } = exampleOf(route, operation);
  const { path, body, headers } = { ...example, ...more };
  return call(url, path, {
    method,
    headers: { ...as(token), ...headers },
    ...(body !== undefined && { body }),
  });
}

/** Returns the schema without the fields that a newer server may add. */
function strict(node: unknown): unknown {
  if (Array.isArray(node)) return node.map(strict);
  if (typeof node !== 'object' || node === null) return node;
  const closed =
    'properties' in node && !('additionalProperties' in node)
      ? { additionalProperties: false }
      : {};
  return {
    ...Object.fromEntries(Object.entries(node).map(([key, value]) => [key, strict(value)])),
    ...closed,
  };
}

/** Expects exactly what the document says about this status. */
function expectDocumented(route: string, status: number, response: HttpResponse): void {
  expect(response.status, `${route}: ${response.text}`).toBe(status);
  const documented =
    spec.operations.get(route)?.responses[status] ?? expect.fail(`${route} has no ${status}`);
  if (status === 204 || status === 304) {
    expect([documented.content, response.text]).toEqual([{}, '']);
    return;
  }
  const type = String(response.headers['content-type']).split(';')[0] ?? '';
  const { schema } =
    documented.content[type] ?? expect.fail(`${route} has no ${status} as ${type}`);
  z.fromJSONSchema(strict(schema) as z.core.JSONSchema.BaseSchema).parse(
    type.endsWith('json') ? JSON.parse(response.text) : response.text,
  );
  if (status >= 400 && type === 'application/problem+json') problemOf(response);
}

const ID = '6df2c1ce-b11a-4828-b2a6-62bf5b7cb325';
/** Sends the request while the upstream fails once in this way. */
function failing(
  kind: 'hang' | 'html_502',
  target: 'users' | 'submissions',
  request: () => Promise<HttpResponse>,
) {
  return () => {
    lookups().sandbox.injectFault({ kind, count: 1, target });
    return request();
  };
}

const INFO = 'GET /v1/get_submission_info';
const USERS = ['GET /users/get_user', 'GET /user/get_user', 'GET /admin/get_all_users'];
const admin = (route: string, more = {}) =>
  send(lookups().url, route, lookups().tokens.admin, more);
const info = (id: string, more = '') =>
  admin(INFO, { path: `/v1/get_submission_info?submission_id=${id}${more}` });
const submit = () => lookups().sandbox.model.submit('some data', Date.now());
const track = (id: string, more = {}) =>
  admin('POST /v1/submissions', { body: { submission_id: id, ...more } });

const PATCH = 'PATCH /v1/submissions/{id}';
const patch = (id: string, more = {}) =>
  admin(PATCH, { path: pathOf(id), body: { metadata: null }, ...more });

/**
 * Routes that require more than their example, in this order, because some depend on the result of
 * earlier ones.
 */
type Cases = [route: string, status: number, request: () => Promise<HttpResponse>][];

const SUBMISSIONS: Cases = [
  ['POST /v1/submissions', 202, () => track('documented', { metadata: { a: [1, null] } })],
  ['POST /v1/submissions', 409, () => track('documented', { upstream: 'other' })],
  [
    'GET /v1/submissions/{id}',
    200,
    () => admin('GET /v1/submissions/{id}', { path: pathOf('documented') }),
  ],
  [
    'GET /v1/submissions/{id}/wait',
    200,
    () =>
      admin('GET /v1/submissions/{id}/wait', { path: `${pathOf('documented')}/wait?timeout_s=0` }),
  ],
  [PATCH, 200, () => patch('documented')],
  [
    'DELETE /v1/submissions/{id}',
    200,
    () => admin('DELETE /v1/submissions/{id}', { path: pathOf('documented') }),
  ],
  [PATCH, 409, () => patch('documented', { body: { stuck_after_s: 5 } })],
  [INFO, 200, () => info(submit())],
  [INFO, 404, () => info(ID)],
  [INFO, 502, failing('html_502', 'submissions', () => info(ID))],
  [INFO, 504, failing('hang', 'submissions', () => info(ID))],
  ...USERS.slice(0, 2).map((route): Cases[number] => [
    route,
    200,
    () => admin(route, { path: userPath(undefined, route.slice('GET '.length)) }),
  ]),
  ['GET /users/get_user', 404, () => admin('GET /users/get_user')],
  ['GET /user/get_user', 404, () => admin('GET /user/get_user')],
  ...USERS.flatMap(
    (route): Cases => [
      [route, 502, failing('html_502', 'users', () => admin(route))],
      [route, 504, failing('hang', 'users', () => admin(route))],
    ],
  ),
];

const HOOK = 'GET /v1/webhooks/{id}';
const NO_WEBHOOK = `wh_${'0'.repeat(32)}`;
const HOOK_PATCH = { enabled: false };
let hook = '';
let delivery = 0;
const on = (route: string, body?: unknown, id = hook) =>
  admin(route, { path: route.slice(route.indexOf(' ') + 1).replace('{id}', id), body });
const replayAll = (destination: string) =>
  admin('POST /v1/deliveries/replay', { body: { destination } });
const NOTIFICATIONS: Cases = [
  [
    'POST /v1/webhooks',
    201,
    async () => {
      const response = await admin('POST /v1/webhooks', {
        body: { url: 'https://example.com/' },
      });
      hook = JSON.parse(response.text).id;
      return response;
    },
  ],
  [HOOK, 200, () => on(HOOK)],
  [
    'PATCH /v1/webhooks/{id}',
    200,
    () => on('PATCH /v1/webhooks/{id}', { metadata: { team: 'billing' } }),
  ],
  ['POST /v1/webhooks/{id}/rotate', 200, () => on('POST /v1/webhooks/{id}/rotate', {})],
  [
    'POST /v1/webhooks/{id}/test',
    202,
    async () => {
      const response = await on('POST /v1/webhooks/{id}/test');
      delivery = JSON.parse(response.text).id;
      return response;
    },
  ],
  [
    'POST /v1/webhooks/{id}/test',
    409,
    () => on('POST /v1/webhooks/{id}/test', undefined, 'callbacks'),
  ],
  ['GET /v1/deliveries/{id}', 200, () => on('GET /v1/deliveries/{id}', undefined, `${delivery}`)],
  [
    'POST /v1/deliveries/{id}/replay',
    202,
    () => on('POST /v1/deliveries/{id}/replay', undefined, `${delivery}`),
  ],
  ['POST /v1/deliveries/replay', 202, () => replayAll(`webhook:${hook}`)],
  ['POST /v1/deliveries/replay', 404, () => replayAll('webhook:never')],
  [
    'POST /v1/deliveries/replay',
    409,
    async () => {
      await on('PATCH /v1/webhooks/{id}', HOOK_PATCH);
      return replayAll(`webhook:${hook}`);
    },
  ],
  [
    'POST /v1/deliveries/{id}/replay',
    409,
    () => on('POST /v1/deliveries/{id}/replay', undefined, `${delivery}`),
  ],
  ['DELETE /v1/webhooks/{id}', 204, () => on('DELETE /v1/webhooks/{id}')],
  ['DELETE /v1/webhooks/{id}', 409, () => on('DELETE /v1/webhooks/{id}', undefined, 'callbacks')],
];

let mute = 0;
const ALERTS: Cases = [
  [
    'GET /v1/alerts',
    200,
    async () => {
      // Its upstream does not exist.
      await track('of-an-alert', { upstream: 'other' });
      for (;;) {
        const response = await admin('GET /v1/alerts');
        if (JSON.parse(response.text).alerts.length > 0) return response;
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    },
  ],
  [
    'POST /v1/mutes',
    201,
    async () => {
      const until = new Date(Date.now() + 3_600_000).toISOString();
      const response = await admin('POST /v1/mutes', { body: { rule: 'backlog', until } });
      mute = JSON.parse(response.text).id;
      return response;
    },
  ],
  ['DELETE /v1/session', 204, () => admin('DELETE /v1/session')],
  ['DELETE /v1/mutes/{id}', 204, () => on('DELETE /v1/mutes/{id}', undefined, `${mute}`)],
  ['POST /v1/channels/{name}/test', 202, () => admin('POST /v1/channels/{name}/test')],
  ['POST /v1/callbacks/test', 202, () => admin('POST /v1/callbacks/test')],
  [
    'POST /v1/callbacks/test',
    409,
    async () => {
      await on('PATCH /v1/webhooks/{id}', HOOK_PATCH, 'callbacks');
      return admin('POST /v1/callbacks/test');
    },
  ],
];

let credential = '';
const onCredential = (method: string, path = '', body?: unknown, id = credential) =>
  on(`${method} /v1/credentials/{id}${path}`, body, id);
const CREDENTIALS: Cases = [
  [
    'POST /v1/credentials',
    201,
    async () => {
      const response = await admin('POST /v1/credentials');
      credential = String(JSON.parse(response.text).id);
      return response;
    },
  ],
  ['GET /v1/credentials/{id}', 200, () => onCredential('GET')],
  ['DELETE /v1/credentials/{id}', 204, () => onCredential('DELETE')],
];

beforeAll(async () => {
  spec = await fetchDocument(lookups().url);
});

describe('a real response is as documented:', () => {
  it.each([
    ['submissions and users', SUBMISSIONS],
    ['webhooks and deliveries', NOTIFICATIONS],
    ['alerts and tests of receivers', ALERTS],
    ['credentials', CREDENTIALS],
  ])('%s', async (_, cases) => {
    for (const [route, status, request] of cases) expectDocumented(route, status, await request());
  });
});

describe('on every route', () => {
  const shown = new Set(
    [...SUBMISSIONS, ...NOTIFICATIONS, ...ALERTS, ...CREDENTIALS].map(
      ([route, status]) => `${route} ${status}`,
    ),
  );
  const routes = (status: number) =>
    [...spec.operations].filter(
      ([route, { responses }]) =>
        responses[status] !== undefined && !shown.has(`${route} ${status}`),
    );

  it('the documented example succeeds', async () => {
    for (const [route] of routes(200).filter(([route]) => !isListed(route, '200')))
      expectDocumented(route, 200, await admin(route));
  });

  it('an invalid request is 400', async () => {
    for (const [route, { security }] of routes(400)) {
      const [, path = ''] = route.split(' ');
      if (security?.length === 0) {
        // The route has no parameters: only the HTTP request itself can be invalid.
        const received = await sendRaw(
          lookups().url,
          `GET ${path} HTTP/1.1\r\nconnection: close\r\n\r\n`,
        );
        expect(received, route).toMatch(
          /^HTTP\/1\.1 400 .*content-type: application\/problem\+json/s,
        );
        continue;
      }
      const wrong = `${path.replace(/\{\w+\}/, '%20')}?limit=x&after=x`;
      expectDocumented(
        route,
        400,
        await admin(route, { path: wrong, body: route.startsWith('POST') ? {} : undefined }),
      );
    }
  });

  it('an unknown id is 404', async () => {
    for (const [route] of routes(404)) {
      const [, path = ''] = route.split(' ');
      const unknown = path.includes('/webhooks/') ? NO_WEBHOOK : '4711';
      expectDocumented(route, 404, await admin(route, { path: path.replace(/\{\w+\}/, unknown) }));
    }
  });

  it('a body that is too large is 413, and one that is not JSON 415', async () => {
    for (const [route] of routes(413))
      expectDocumented(route, 413, await admin(route, { body: 'x'.repeat(8 * 1024 * 1024 + 1) }));
    const headers = { 'content-type': 'text/plain' };
    for (const [route] of routes(415))
      expectDocumented(route, 415, await admin(route, { body: 'x', headers }));
  });

  it('a missing credential is 401 and a wrong role 403', async () => {
    const { url, tokens } = lookups();
    const refusing = routes(403).map(([route]) => route);
    expect(refusing.length).toBeGreaterThan(8);
    for (const route of routes(401).map(([route]) => route)) {
      const response = await send(url, route, undefined);
      expectDocumented(route, 401, response);
      expect(response.headers['www-authenticate'], route).toMatch(/^Bearer/);
      expect(refusing).toContain(route);
      if (OPEN_TO_ALL_ROLES.includes(route)) continue;
      const others = await Promise.all(
        [tokens.service, tokens.user].map((token) => refusalOf(route, token)),
      );
      const refused =
        others.find((other) => other?.status === 403) ?? expect.fail(`${route} refuses no role`);
      expectDocumented(route, 403, refused);
    }
  });

  it('the limit is 429', async () => {
    const limited = await openLookups({ limits: { requests_per_minute: 1 } });
    await limited.get('/nowhere', limited.tokens.admin);
    for (const [route] of routes(429)) {
      const response = await send(limited.url, route, limited.tokens.admin);
      expectDocumented(route, 429, response);
      const documented = Object.keys(spec.operations.get(route)?.responses[429]?.headers ?? {});
      for (const header of documented)
        expect(response.headers, `${route} ${header}`).toHaveProperty(header);
    }
  });

  it('no other documented response is untested, except those listed with a reason', () => {
    const left = [...spec.operations].flatMap(([route, { responses }]) =>
      Object.keys(responses)
        .filter((status) => !/^(?:200|400|401|403|404|413|415|429)$/.test(status))
        .filter((status) => !isListed(route, status) && !shown.has(`${route} ${status}`))
        .map((status) => `${route} ${status}`),
    );
    expect(left).toEqual([]);
  });
});

/** Returns undefined if the role has access, because a feed would never end. */
async function refusalOf(route: string, token: string): Promise<HttpResponse | undefined> {
  return route === 'GET /v1/events' && token === lookups().tokens.service
    ? undefined
    : send(lookups().url, route, token);
}

it('a response with a field of another type is detected', async () => {
  const { schema } =
    spec.operations.get('GET /v1/submissions/{id}')?.responses[200]?.content['application/json'] ??
    {};
  const check = z.fromJSONSchema(schema as z.core.JSONSchema.BaseSchema);
  await track('typed');
  const shown = JSON.parse(
    (await admin('GET /v1/submissions/{id}', { path: pathOf('typed') })).text,
  ) as object;
  expect(check.safeParse(shown).success).toBe(true);
  expect(check.safeParse({ ...shown, polls: '1' }).success).toBe(false);
  expect(check.safeParse({ ...shown, history: [{}] }).success).toBe(false);
});

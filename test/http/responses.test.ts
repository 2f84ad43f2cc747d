import { beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { call, type HttpResponse, problemOf, sendRaw } from '../support/app/http-calls.ts';
import { openLookups, useLookups, userPath } from '../support/app/lookups.ts';
import { type Documented, fetchDocument, type Operation } from '../support/app/openapi-document.ts';
import { HeldClock } from '../support/virtual-time/virtual-clock.ts';

const TIMEOUT_MS = 10_000;
const clock = new HeldClock(TIMEOUT_MS);
const lookups = useLookups({
  clock,
  channels: { ops: { type: 'slack', url: 'http://127.0.0.1:1' } },
});
let spec: Documented;

/** Documented responses that no request in this test causes, with the reason. */
const LISTED: Record<string, string> = {
  413: 'the body is too large: test/http/problems.test.ts',
  503: 'the ledger fails: test/scenarios/locked-ledger.test.ts',
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
  // A proof needs a node: test/docs/docs-chain.test.ts.
  'GET /v1/submissions/{id}/proof 200',
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
const INFO = 'GET /v1/get_submission_info';
const USERS = ['GET /users/get_user', 'GET /user/get_user', 'GET /admin/get_all_users'];
const SUBMISSION = '/v1/submissions/{id}';
const HOOK = '/v1/webhooks/{id}';
const NO_WEBHOOK = `wh_${'0'.repeat(32)}`;
const REPLAY = 'POST /v1/deliveries/replay';

/** Routes that require more than their example, in order, because some depend on earlier ones. */
type Case = [route: string, status: number, request: () => Promise<HttpResponse>];
type Id = string | (() => string);

const admin = (route: string, more = {}) =>
  send(lookups().url, route, lookups().tokens.admin, more);
/** A request with the example of the document. */
const plain = (route: string, status: number): Case => [route, status, () => admin(route)];
/** A request with this id in its path. */
const on = (route: string, status: number, id: Id = '', body?: unknown, query = ''): Case => [
  route,
  status,
  () => {
    const name = typeof id === 'string' ? id : id();
    const path = `${route.slice(route.indexOf(' ') + 1).replace(/\{\w+\}/, name)}${query}`;
    return admin(route, { path, body });
  },
];
/** The ids of what the requests created. */
const created = { hook: '', delivery: '', mute: '', credential: '' };
const creating = (name: keyof typeof created, [route, status, request]: Case): Case => [
  route,
  status,
  async () => {
    const response = await request();
    created[name] = String(JSON.parse(response.text).id);
    return response;
  },
];
const hook = () => created.hook;
const delivery = () => created.delivery;
const credential = () => created.credential;

/** A request while the upstream fails once in this way. */
const failing = (
  kind: 'hang' | 'html_502',
  target: 'users' | 'submissions',
  [route, status, request]: Case,
): Case => [
  route,
  status,
  async () => {
    const { sandbox } = lookups();
    sandbox.injectFault({ kind, target });
    const response = await (kind === 'hang' ? clock.exceed(TIMEOUT_MS, request()) : request());
    sandbox.injectFault({ kind: 'none', target });
    return response;
  },
];
const info = (status: number, id: () => string) =>
  [INFO, status, () => admin(INFO, { path: `${INFO.slice(4)}?submission_id=${id()}` })] as Case;
const found = (route: string): Case => [
  route,
  200,
  () => admin(route, { path: userPath(undefined, route.slice('GET '.length)) }),
];
const replayAll = (status: number, id: () => string) =>
  [REPLAY, status, () => admin(REPLAY, { body: { destination: `webhook:${id()}` } })] as Case;

const SUBMISSIONS: Case[] = [
  on('POST /v1/submissions', 202, '', { submission_id: 'documented', metadata: { a: [1, null] } }),
  on('POST /v1/submissions', 409, '', { submission_id: 'documented', upstream: 'other' }),
  on(`GET ${SUBMISSION}`, 200, 'documented'),
  on(`GET ${SUBMISSION}/wait`, 200, 'documented', undefined, '?timeout_s=0'),
  on(`PATCH ${SUBMISSION}`, 200, 'documented', { metadata: null }),
  on(`DELETE ${SUBMISSION}`, 200, 'documented'),
  on(`PATCH ${SUBMISSION}`, 409, 'documented', { stuck_after_s: 5 }),
  info(200, () => lookups().sandbox.model.submit('some data', Date.now())),
  info(404, () => ID),
  failing(
    'html_502',
    'submissions',
    info(502, () => ID),
  ),
  failing(
    'hang',
    'submissions',
    info(504, () => ID),
  ),
  ...USERS.slice(0, 2).flatMap((route) => [found(route), plain(route, 404)]),
  ...USERS.map((route) => failing('html_502', 'users', plain(route, 502))),
  ...USERS.map((route) => failing('hang', 'users', plain(route, 504))),
];

const NOTIFICATIONS: Case[] = [
  creating('hook', on('POST /v1/webhooks', 201, '', { url: 'https://example.com/' })),
  on(`GET ${HOOK}`, 200, hook),
  on(`PATCH ${HOOK}`, 200, hook, { metadata: { team: 'billing' } }),
  on(`POST ${HOOK}/rotate`, 200, hook, {}),
  creating('delivery', on(`POST ${HOOK}/test`, 202, hook)),
  on(`POST ${HOOK}/test`, 409, 'callbacks'),
  on('GET /v1/deliveries/{id}', 200, delivery),
  on('POST /v1/deliveries/{id}/replay', 202, delivery),
  replayAll(202, hook),
  replayAll(404, () => 'never'),
  on(`PATCH ${HOOK}`, 200, hook, { enabled: false }),
  replayAll(409, hook),
  on('POST /v1/deliveries/{id}/replay', 409, delivery),
  on(`DELETE ${HOOK}`, 204, hook),
  on(`DELETE ${HOOK}`, 409, 'callbacks'),
];

const until = new Date(Date.now() + 3_600_000).toISOString();
const ALERTS: Case[] = [
  // Its upstream does not exist.
  on('POST /v1/submissions', 202, '', { submission_id: 'of-an-alert', upstream: 'other' }),
  [
    'GET /v1/alerts',
    200,
    async () => {
      const response = () => admin('GET /v1/alerts');
      await expect.poll(async () => JSON.parse((await response()).text).alerts).not.toEqual([]);
      return await response();
    },
  ],
  creating('mute', on('POST /v1/mutes', 201, '', { rule: 'backlog', until })),
  plain('DELETE /v1/session', 204),
  on('DELETE /v1/mutes/{id}', 204, () => created.mute),
  plain('POST /v1/channels/{name}/test', 202),
  plain('POST /v1/callbacks/test', 202),
  on(`PATCH ${HOOK}`, 200, 'callbacks', { enabled: false }),
  plain('POST /v1/callbacks/test', 409),
];

const CREDENTIALS: Case[] = [
  creating('credential', plain('POST /v1/credentials', 201)),
  on('DELETE /v1/credentials/{id}', 204, credential),
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

  it('a body that is not JSON is 415', async () => {
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
        .filter((status) => !/^(?:200|400|401|403|404|415|429)$/.test(status))
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

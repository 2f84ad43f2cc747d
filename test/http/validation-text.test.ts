import { Agent } from 'node:http';
import { afterAll, describe, expect, it } from 'vitest';
import { call, post, problemOf } from '../support/app/http-calls.ts';
import { ADMIN_TOKEN } from '../support/app/lookups.ts';
import { fetchDocument } from '../support/app/openapi-document.ts';
import { useApp } from '../support/app/running-app.ts';

const app = useApp({ adminToken: ADMIN_TOKEN, upstream: { bearer: 'an-upstream-bearer' } });
const headers = { 'x-api-key': ADMIN_TOKEN };
/** One connection, because opening one per request takes a fifth of the CPU time. */
const agent = new Agent({ keepAlive: true, maxSockets: 1 });
afterAll(() => agent.destroy());

/** Typical wordings of zod, Fastify, Ajv and JSON.parse. */
const RAW =
  /invalid (?:input|string|option|key|element|iso|type|date|email|url)|expected \w+, received|received undefined|\bnan\b|too (?:big|small)|<=|>=|unrecognized|must match|should (?:be|have)|(?<!\/)(?:body|querystring|params|headers)\/|cannot be empty|content-type is set|request body|media type|unexpected (?:token|end)|position \d|prototype property|fst_|zod|\[object|undefined/i;

/** Each reason states the expectation for one field or the whole, after the position. */
function expectClear(status: number, text: string, what: string) {
  const { detail, errors } = problemOf({
    status,
    text,
    headers: { 'content-type': 'application/problem+json' },
  });
  for (const message of [detail, ...(errors ?? []).map((error) => error.detail)]) {
    expect(message, what).not.toMatch(RAW);
    expect(message.length, what).toBeGreaterThan(10);
  }
  for (const error of errors ?? []) expect(error.detail, what).toMatch(/^[a-z"@]/);
  return { detail, errors };
}

const LONG = 'x'.repeat(5_000);
const VALUES: unknown[] = [null, true, 'words', LONG, [LONG], { a: { b: 1 } }];

type Schema = {
  properties?: Record<string, unknown>;
  $ref?: string;
  anyOf?: Schema[];
  allOf?: Schema[];
};
type Parameter = { name: string; in: string };
type Documented = {
  parameters?: Parameter[];
  requestBody?: { content?: { 'application/json'?: { schema?: Schema } } };
};

async function operations(): Promise<
  { method: string; path: string; parameters: Parameter[]; fields: string[] | null }[]
> {
  const { operations: all } = await fetchDocument(app.url);
  return [...all].map(([name, operation]) => {
    const [method = '', path = ''] = name.split(' ');
    const { parameters = [], requestBody } = operation as unknown as Documented;
    const schema = requestBody?.content?.['application/json']?.schema;
    return {
      method,
      path,
      parameters,
      fields: schema ? Object.keys(schema.properties ?? {}) : null,
    };
  });
}

/** A valid id if the path itself is validated, otherwise any. */
const filled = (path: string) =>
  path.replace(
    '{id}',
    /webhooks/.test(path) ? 'callbacks' : /deliveries/.test(path) ? '1' : 'some-id',
  );

describe('the reasons of invalid requests are clear', () => {
  it('for every parameter of every route', async () => {
    let refused = 0;
    for (const { method, path, parameters } of await operations()) {
      if (path === '/v1/submissions/{id}/wait') continue;
      const inQuery = parameters
        .filter((parameter) => parameter.in === 'query')
        .map(({ name }) => name);
      const queries = [
        ...inQuery.flatMap((name) =>
          ['', 'words', LONG.slice(0, 3_000)].map(
            (value) => `${name}=${encodeURIComponent(value)}`,
          ),
        ),
        ...inQuery.map((name) => `${name}=a&${name}=b`),
        'unknown=1&other=2&__proto__=3',
        '',
      ];
      if (path === '/v1/events') queries.pop();
      for (const query of queries) {
        // Excludes valid requests that would open a stream or change something.
        if (path === '/v1/events' && /^(type|submission_id|metadata)=words/.test(query)) continue;
        const response = await call(app.url, `${filled(path)}?${query}`, {
          method,
          headers: { ...headers, ...(path === '/v1/events' && { 'last-event-id': 'x' }) },
          agent,
        });
        if (response.status !== 400) continue;
        refused += 1;
        expectClear(response.status, response.text, `${method} ${path}?${query.slice(0, 60)}`);
      }
    }
    expect(refused).toBeGreaterThan(60);
  });

  it('for every field of every body', async () => {
    let refused = 0;
    for (const { method, path, fields } of await operations()) {
      if (fields === null) continue;
      const bodies: unknown[] = [
        ...fields.flatMap((field) => VALUES.map((value) => ({ [field]: value }))),
        { submission_id: 'x', url: 'https://example.com', [LONG]: 1 },
        ...VALUES.map((value) => JSON.stringify(value)),
        Object.fromEntries(Array.from({ length: 30 }, (_, index) => [`unknown-${index}`, 1])),
      ];
      for (const body of bodies) {
        const sent = typeof body === 'string' ? body : JSON.stringify(body);
        const response = await call(app.url, filled(path), {
          method,
          agent,
          headers: { ...headers, 'content-type': 'application/json' },
          body: sent,
        });
        if (response.status < 400) continue;
        refused += 1;
        expectClear(response.status, response.text, `${method} ${path} ${sent.slice(0, 80)}`);
        expect(response.text.length).toBeLessThan(10_000);
      }
    }
    expect(refused).toBeGreaterThan(90);
  });

  it.each<[string, string, string | undefined, number, string]>([
    ['empty', '', 'application/json', 400, 'body: must be an object'],
    ['half of a document', '{', 'application/json', 400, 'the body is not valid JSON, or has'],
    ['no type', '{}', '', 415, 'the body must be JSON, sent with content-type: application/json'],
    ['another type', '{}', 'text/csv', 415, 'application/json, not "text/csv"'],
  ])('for a body that is %s', async (_, body, type, status, detail) => {
    const response = await post(app.url, body, { ...headers, 'content-type': type });
    expect(response.status).toBe(status);
    expect(expectClear(status, response.text, body.slice(0, 20)).detail).toContain(detail);
  });

  const ID = { submission_id: 'a' };
  it.each<[string, unknown, string, string]>([
    ['POST /v1/submissions', { submission_id: 7 }, '/submission_id', 'a string, not a number'],
    ['POST /v1/submissions', { submission_ids: [] }, '/submission_ids', 'must not be empty'],
    [
      'POST /v1/submissions',
      { ...ID, deadline: 'soon' },
      '/deadline',
      'a time with its zone, like',
    ],
    ['POST /v1/submissions', { ...ID, 'x/y~z': 1 }, '/', 'there is no field "x/y~z"'],
    [
      'POST /v1/webhooks/callbacks/rotate',
      { keep_old_s: 1.5 },
      '/keep_old_s',
      'a whole number, not',
    ],
    ['GET /v1/submissions?limit=many', undefined, 'limit', 'number from 1 to 1000, not "many"'],
    ['GET /v1/submissions?limit=1&limit=2', undefined, 'limit', 'must be given once'],
    ['GET /v1/submissions?offset=1', undefined, '', 'there is no parameter "offset"'],
  ])('%s with %j reports "%s": %s', async (endpoint, body, pointer, expected) => {
    const [method = '', path = ''] = endpoint.split(' ');
    const options = { method, headers, ...(body !== undefined && { body }) };
    const response = await call(app.url, path, options);
    expect(response.status).toBe(400);
    const { detail, errors } = expectClear(response.status, response.text, path);
    expect(detail).toContain(expected);
    if (pointer !== '')
      expect(errors?.[0]).toMatchObject({ pointer, detail: expect.stringContaining(expected) });
  });
});

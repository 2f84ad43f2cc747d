import { beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { type Answer, call, pathOf, post } from '../support/http-calls.ts';
import { useApp } from '../support/running-app.ts';

const schema = z.record(z.string(), z.unknown());
const operationSchema = z.object({
  summary: z.string().min(5),
  security: z.array(z.record(z.string(), z.array(z.string()))).optional(),
  parameters: z
    .array(z.object({ name: z.string(), in: z.enum(['path', 'query']), required: z.boolean().optional(), schema }))
    .optional(),
  requestBody: z.object({ required: z.literal(true), content: z.record(z.string(), z.object({ schema })) }).optional(),
  responses: z.record(
    z.string().regex(/^[2-5]\d\d$/),
    z.object({ description: z.string(), content: z.record(z.string(), z.object({ schema })) }),
  ),
});
const documentSchema = z.object({
  openapi: z.string().regex(/^3\.1\.\d$/),
  info: z.object({ title: z.literal('dawatch'), version: z.string(), description: z.string() }),
  paths: z.record(z.string().startsWith('/'), z.partialRecord(z.enum(['get', 'post', 'delete']), operationSchema)),
  components: z.object({ securitySchemes: z.record(z.string(), schema) }),
  security: z.array(z.record(z.string(), z.array(z.string()))),
});

const app = useApp();
let document: z.output<typeof documentSchema>;

beforeAll(async () => {
  document = documentSchema.parse(JSON.parse((await call(app.url, '/openapi.json')).text));
});

const operation = (route: string) => {
  const [method = '', path = ''] = route.split(' ');
  return document.paths[path]?.[method.toLowerCase() as 'get'];
};

const ROUTES = {
  'GET /livez': ['200'],
  'GET /readyz': ['200', '503'],
  'POST /v1/submissions': ['202', '400', '401', '409', '413', '415', '503', '507'],
  'GET /v1/submissions': ['200', '400', '401', '503'],
  'GET /v1/submissions/{id}': ['200', '400', '401', '404', '503'],
  'GET /v1/submissions/{id}/wait': ['200', '400', '401', '404', '503'],
  'DELETE /v1/submissions/{id}': ['200', '400', '401', '404', '503', '507'],
};

it('has every route, with everything it may answer', () => {
  const documented = Object.entries(document.paths).flatMap(([path, operations]) =>
    Object.entries(operations).map(([method, operation]) => [
      `${method.toUpperCase()} ${path}`,
      Object.keys(operation?.responses ?? {}),
    ]),
  );
  expect(Object.fromEntries(documented)).toEqual(ROUTES);
});

it('names both ways to show a key, and which routes want one', () => {
  expect(document.components.securitySchemes).toEqual({
    apiKey: { type: 'apiKey', in: 'header', name: 'x-api-key' },
    bearer: { type: 'http', scheme: 'bearer' },
  });
  expect(document.security).toEqual([{ apiKey: [] }, { bearer: [] }]);
  for (const route of Object.keys(ROUTES))
    expect(operation(route)?.security, route).toEqual(route.includes('/v1/') ? undefined : []);
});

it.each([
  ['GET /v1/submissions', ['status', 'limit', 'cursor']],
  ['GET /v1/submissions/{id}', ['id']],
  ['GET /v1/submissions/{id}/wait', ['id', 'timeout_s']],
  ['DELETE /v1/submissions/{id}', ['id']],
])('%s has the parameters %j', (route, names) => {
  const parameters = operation(route)?.parameters ?? [];
  expect(parameters.map(({ name }) => name).toSorted()).toEqual(names.toSorted());
  for (const parameter of parameters) expect(parameter.required ?? false).toBe(parameter.in === 'path');
});

describe('real answers are as documented:', () => {
  const DEAD = { submission_id: 'documented' };
  const asCall =
    (method: string, path: string, headers = {}) =>
    () =>
      call(app.url, path, { method, headers });
  const CASES: [string, number, () => Promise<Answer>][] = [
    ['GET /livez', 200, asCall('GET', '/livez')],
    ['GET /readyz', 200, asCall('GET', '/readyz')],
    ['POST /v1/submissions', 202, () => post(app.url, { ...DEAD, metadata: { a: [1, null] } })],
    ['POST /v1/submissions', 400, () => post(app.url, {})],
    ['POST /v1/submissions', 401, () => post(app.url, DEAD, { 'x-api-key': 'nobody' })],
    ['POST /v1/submissions', 409, () => post(app.url, { ...DEAD, upstream: 'other' })],
    ['POST /v1/submissions', 413, () => post(app.url, 'x'.repeat(2 * 1024 * 1024 + 1))],
    ['POST /v1/submissions', 415, () => post(app.url, 'x', { 'content-type': 'text/plain' })],
    ['GET /v1/submissions', 200, asCall('GET', '/v1/submissions?limit=1')],
    ['GET /v1/submissions', 400, asCall('GET', '/v1/submissions?limit=x')],
    ['GET /v1/submissions/{id}', 200, asCall('GET', pathOf('documented'))],
    ['GET /v1/submissions/{id}', 400, asCall('GET', pathOf(' '))],
    ['GET /v1/submissions/{id}', 404, asCall('GET', pathOf('never'))],
    ['GET /v1/submissions/{id}/wait', 200, asCall('GET', `${pathOf('documented')}/wait?timeout_s=0`)],
    ['GET /v1/submissions/{id}/wait', 401, asCall('GET', `${pathOf('documented')}/wait`, { 'x-api-key': '' })],
    ['DELETE /v1/submissions/{id}', 200, asCall('DELETE', pathOf('documented'))],
    ['DELETE /v1/submissions/{id}', 404, asCall('DELETE', pathOf('never'))],
  ];

  it.each(CASES)('%s with %i', async (route, status, send) => {
    const answer = await send();
    expect(answer.status).toBe(status);
    const type = String(answer.headers['content-type']).split(';')[0] ?? '';
    const documented = operation(route)?.responses[status]?.content[type]?.schema;
    expect(documented, `${status} as ${type}`).toBeDefined();
    z.fromJSONSchema(documented as z.core.JSONSchema.BaseSchema).parse(JSON.parse(answer.text));
  });

  it('so that one with a field of another kind would be noticed', async () => {
    const documented = operation('GET /v1/submissions/{id}')?.responses[200]?.content['application/json']?.schema;
    const shown = JSON.parse((await call(app.url, pathOf('documented'))).text) as object;
    const check = z.fromJSONSchema(documented as z.core.JSONSchema.BaseSchema);
    expect(check.safeParse(shown).success).toBe(true);
    expect(check.safeParse({ ...shown, polls: '1' }).success).toBe(false);
    expect(check.safeParse({ ...shown, history: [{}] }).success).toBe(false);
  });
});

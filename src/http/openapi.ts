import type { RouteOptions } from 'fastify';
import { z } from 'zod';
import { type Converted, convertSchemas, type JsonSchema } from './components.ts';
import { PROBLEMS, type ProblemStatus, problemBody, problemSchema } from './problems.ts';
import { isUnlimited } from './typed-server.ts';

/** The `detail` of an example of each documented problem. */
const EXAMPLES: Partial<Record<ProblemStatus, string>> = {
  400: 'query limit: must be a whole number from 1 to 1000, not "many"',
  401: 'send a valid credential as x-api-key or Authorization: Bearer',
  403: 'this needs the scope admin; the role user has users:read',
  404: '6df2c1ce was never tracked here',
  409: '6df2c1ce is already tracked at the upstream other; nothing was accepted',
  413: 'the body must have at most 65536 bytes',
  415: 'the body must be JSON, sent with content-type: application/json, not "text/plain"',
  429: 'at most 60000 requests a minute; try again in 17 s',
  502: 'the upstream failed',
  503: 'the ledger is unavailable: nothing of the request was stored',
  504: 'the upstream did not respond in time',
  507: 'the disk is full: nothing of the request was stored',
};

const number = (description: string, example: number) => ({
  description,
  schema: { type: 'integer' },
  example,
});

const RESPONSE_HEADERS = {
  'x-request-id': {
    description: "Id of this request, as in the logs; the client's own if it sent a valid one",
    schema: { type: 'string' },
    example: '0b9ff3b2-6f0a-4f2c-8a50-8d0a4f6f1a55',
  },
  'ratelimit-limit': number('Requests per minute', 60_000),
  'ratelimit-remaining': number('Requests left in this window', 59_998),
  'ratelimit-reset': number('Seconds until the window ends', 43),
  'retry-after': number('Seconds to wait before the next attempt', 17),
  etag: {
    description: 'Entity tag for If-None-Match',
    schema: { type: 'string' },
    example: '"n4bQgYhMfWWaL-qgxVrQFa"',
  },
  'www-authenticate': {
    description: 'How to authenticate',
    schema: { type: 'string' },
    example: 'Bearer realm="dawatch"',
  },
};
type HeaderName = keyof typeof RESPONSE_HEADERS;

const INSTANCE = '0b9ff3b2-6f0a-4f2c-8a50-8d0a4f6f1a55';
const PROBLEM_REF = { $ref: '#/components/schemas/Problem' };

/** Statuses with Retry-After. */
const RETRIED: readonly number[] = [429, 502, 503, 504, 507];

const PROBLEM_RESPONSES = {
  ...Object.fromEntries(
    Object.entries(EXAMPLES).map(([text, detail]) => {
      const status = Number(text) as ProblemStatus;
      const [name, description] = PROBLEMS[status];
      const example = problemBody({ status, detail }, INSTANCE);
      const content = { 'application/problem+json': { schema: PROBLEM_REF, example } };
      const own: HeaderName[] =
        status === 401 ? ['www-authenticate'] : RETRIED.includes(status) ? ['retry-after'] : [];
      const headers = { ...headerRefs(own), ...commonRefs({ isLimited: true }) };
      return [name, { description, headers, content }];
    }),
  ),
  Problem: {
    description: 'Any other problem',
    content: { 'application/problem+json': { schema: PROBLEM_REF } },
  },
};

type Operation = {
  security?: unknown[] | undefined;
  responses: Record<string, { headers?: object; content?: object }>;
};

/** Adds the problems that every route can return and the headers of all responses. */
function completeOperation(path: string, operation: Operation): void {
  const isOpen = operation.security?.length === 0;
  const common = [400, ...(isOpen ? [] : [401, 403, 503]), ...(isUnlimited(path) ? [] : [429])];
  for (const status of common) operation.responses[status] ??= {};
  for (const [status, response] of Object.entries(operation.responses)) {
    if (Number(status) in EXAMPLES && isProblem(response)) {
      const [name] = PROBLEMS[Number(status) as ProblemStatus];
      operation.responses[status] = { $ref: `#/components/responses/${name}` } as object;
    } else if ('304' in operation.responses && Number(status) < 400)
      response.headers = {
        ...headerRefs(['etag']),
        ...commonRefs({ isLimited: !isUnlimited(path) }),
      };
    else
      response.headers = { ...response.headers, ...commonRefs({ isLimited: !isUnlimited(path) }) };
  }
  operation.responses.default = { $ref: '#/components/responses/Problem' } as object;
}

function isProblem({ content }: { content?: object }): boolean {
  return content === undefined || 'application/problem+json' in content;
}

function commonRefs({ isLimited }: { isLimited: boolean }) {
  const limits = ['ratelimit-limit', 'ratelimit-remaining', 'ratelimit-reset'] as const;
  return headerRefs(['x-request-id', ...(isLimited ? limits : [])]);
}

function headerRefs(names: readonly HeaderName[]) {
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));
}

const DESCRIPTION = `Tracks data-availability submissions until they are final.

Send a credential as \`x-api-key\` or \`Authorization: Bearer\`. Its scopes determine access. A role is a set of
scopes: **service** for submissions, **user** for lookups of single users, **operator** for reading submissions, webhooks, deliveries, channels and mutes,
**admin** for everything. If a request has both headers, routes for users and admins use
the bearer and all others the x-api-key. Errors are problem documents (RFC 9457). A method that a path does not support returns
405 with \`Allow\`, OPTIONS returns 204 with \`Allow\`. Times are ISO 8601 in UTC. A newer server may send more fields.`;

const TAGS = [
  { name: 'submissions', description: 'Track, read, await and cancel submissions' },
  { name: 'events', description: 'The live feed of events' },
  { name: 'notifications', description: 'Webhooks, channels and deliveries' },
  { name: 'alerts', description: 'Firing alerts, acknowledgements, mutes and maintenance windows' },
  { name: 'credentials', description: 'Tokens of clients: scopes, expiry, rotation' },
  { name: 'users', description: 'Audited lookups of users of the upstream' },
  { name: 'operations', description: 'For operators of dawatch' },
];

const SECURITY_SCHEMES = {
  apiKey: {
    type: 'apiKey',
    in: 'header',
    name: 'x-api-key',
    description: 'A token of `dawatch token create`, or DAWATCH_API_KEY',
  },
  bearer: { type: 'http', scheme: 'bearer', description: 'The same token as a bearer' },
} as const;

/** A response of a route: its schema as JSON, or its media types. */
type Described =
  | z.ZodType
  | { description: string; content: Record<string, { schema: z.ZodType }> };
type RouteSchema = {
  operationId?: string;
  summary?: string;
  description?: string;
  tags?: string[];
  security?: object[];
  params?: z.ZodType;
  querystring?: z.ZodType;
  headers?: z.ZodType;
  /** Headers of the request that are not validated, because every value is valid. */
  describedHeaders?: z.ZodType;
  body?: z.ZodType;
  /** The media types of the body; default: JSON. */
  consumes?: string[];
  response?: Record<string, Described>;
};

/**
 * What the server sends to others: the schema of an event, and the `webhooks` section of the
 * OpenAPI document.
 */
export type SentEvents = { schema: z.ZodType; webhooks: object };

/** Returns the OpenAPI document of the routes. */
export function openapiDocument(
  routes: readonly RouteOptions[],
  version: string,
  events: SentEvents,
) {
  const described = routes.map(({ method, url, schema = {} }) => ({
    method,
    url,
    schema: schema as RouteSchema,
  }));
  const schemas = convertSchemas([
    ...described.flatMap(({ schema }) => schemasOf(schema)),
    problemSchema,
    events.schema,
  ]);
  const paths: Record<string, Record<string, unknown>> = {};
  const used = new Set<string>();
  for (const { method, url, schema } of described)
    for (const name of [method].flat()) {
      const path = url.replace(/:(\w+)/g, '{$1}');
      const operation = operationOf(schema, schemas);
      completeOperation(path, operation);
      for (const tag of schema.tags ?? []) used.add(tag);
      paths[path] = { ...paths[path], [name.toLowerCase()]: operation };
    }
  return {
    openapi: '3.1.0',
    info: {
      title: 'dawatch',
      version,
      summary: 'Tracks data-availability submissions',
      description: DESCRIPTION,
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: '/', description: 'This server' }],
    tags: TAGS.filter(({ name }) => used.has(name)),
    security: [{ apiKey: [] }, { bearer: [] }],
    paths,
    webhooks: events.webhooks,
    components: {
      securitySchemes: SECURITY_SCHEMES,
      schemas: schemas.components,
      responses: PROBLEM_RESPONSES,
      headers: RESPONSE_HEADERS,
    },
  };
}

function schemasOf(schema: RouteSchema): z.ZodType[] {
  const { params, querystring, headers, describedHeaders, body, response = {} } = schema;
  const responses = Object.values(response).flatMap((described) =>
    described instanceof z.ZodType
      ? [described]
      : Object.values(described.content).map(({ schema }) => schema),
  );
  return [params, querystring, headers, describedHeaders, body, ...responses].filter(
    (schema) => schema !== undefined,
  );
}

function operationOf(schema: RouteSchema, { jsonOf }: Converted) {
  const {
    params,
    querystring,
    body,
    consumes = ['application/json'],
    response = {},
    ...others
  } = schema;
  const { headers, describedHeaders = headers, ...described } = others;
  const parameters = Object.entries({
    path: params,
    query: querystring,
    header: describedHeaders,
  }).flatMap(([place, given]) => (given ? parametersOf(place, jsonOf(given)) : []));
  return {
    ...described,
    ...(parameters.length > 0 && { parameters }),
    ...(body && { requestBody: { required: true, content: contentOf(consumes, jsonOf(body)) } }),
    responses: Object.fromEntries(
      Object.entries(response).map(([status, one]) => [status, responseOf(one, jsonOf)]),
    ) as Record<string, { headers?: object; content?: object }>,
  };
}

function contentOf(types: readonly string[], schema: JsonSchema) {
  return Object.fromEntries(types.map((type) => [type, { schema }]));
}

function parametersOf(place: string, { properties = {}, required = [] }: JsonSchema) {
  return Object.entries(properties).map(([name, property]) => {
    const { description, examples, ...schema } = property as JsonSchema;
    const [example] = examples ?? [];
    return {
      name,
      in: place,
      ...((place === 'path' || required.includes(name)) && { required: true }),
      description,
      schema,
      ...(example !== undefined && { example }),
    };
  });
}

function responseOf(described: Described, jsonOf: Converted['jsonOf']) {
  if (!(described instanceof z.ZodType)) {
    const content = Object.entries(described.content).map(([type, { schema }]) => [
      type,
      { schema: jsonOf(schema) },
    ]);
    return { description: described.description, content: Object.fromEntries(content) };
  }
  const description = described.description ?? 'The response';
  if (described instanceof z.ZodNull) return { description };
  return { description, content: { 'application/json': { schema: jsonOf(described) } } };
}

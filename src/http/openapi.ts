import type { FastifyDynamicSwaggerOptions, SwaggerTransform } from '@fastify/swagger';
import {
  createJsonSchemaTransform,
  createJsonSchemaTransformObject,
} from 'fastify-type-provider-zod';
import { z } from 'zod';
import { simplify } from './json-schema.ts';
import { PROBLEMS, type ProblemStatus, problemBody } from './problems.ts';
import { isUnlimited } from './typed-server.ts';

const EXAMPLES: Partial<Record<ProblemStatus, string>> = {
  400: 'query limit: must be a whole number from 1 to 1000, not "many"',
  401: 'send a valid credential as x-api-key or Authorization: Bearer',
  403: 'this needs the role admin; the credential has the role user',
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

const RESPONSE_HEADERS = {
  'x-request-id': {
    description: "Id of this request, as in the logs; the client's own if it sent a valid one",
    schema: { type: 'string' },
    example: '0b9ff3b2-6f0a-4f2c-8a50-8d0a4f6f1a55',
  },
  'retry-after': {
    description: 'Seconds to wait before the next attempt',
    schema: { type: 'integer' },
    example: 17,
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
      const example = problemBody(INSTANCE, status, detail);
      const content = { 'application/problem+json': { schema: PROBLEM_REF, example } };
      const special: HeaderName[] =
        status === 401 ? ['www-authenticate'] : RETRIED.includes(status) ? ['retry-after'] : [];
      return [name, { description, headers: headerRefs(['x-request-id', ...special]), content }];
    }),
  ),
  Problem: {
    description: 'Any other problem',
    content: { 'application/problem+json': { schema: PROBLEM_REF } },
  },
};

type Operation = {
  tags?: string[];
  parameters?: { schema: { allOf?: object[] } }[];
  security?: unknown[] | undefined;
  responses: Record<string, { headers?: object; content?: object }>;
};

/** Adds the problems of every route and the response headers; unwraps parameter references. */
function completeOperation(path: string, operation: Operation): void {
  const isOpen = operation.security?.length === 0;
  const common = [400, ...(isOpen ? [] : [401, 403, 503]), ...(isUnlimited(path) ? [] : [429])];
  for (const status of common) operation.responses[status] ??= {};
  for (const [status, response] of Object.entries(operation.responses)) {
    if (Number(status) in EXAMPLES && isProblem(response)) {
      const [name] = PROBLEMS[Number(status) as ProblemStatus];
      operation.responses[status] = { $ref: `#/components/responses/${name}` } as object;
    } else response.headers = { ...response.headers, ...headerRefs(['x-request-id']) };
  }
  for (const parameter of operation.parameters ?? []) {
    const { allOf = [], ...schema } = parameter.schema;
    parameter.schema = Object.assign({}, ...allOf, schema);
  }
  operation.responses.default = { $ref: '#/components/responses/Problem' } as object;
}

function isProblem({ content }: { content?: object }): boolean {
  return content === undefined || 'application/problem+json' in content;
}

function headerRefs(names: readonly HeaderName[]) {
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));
}

const DESCRIPTION = `Tracks data-availability submissions until they are final.

Send a credential as \`x-api-key\` or \`Authorization: Bearer\`. Its role determines access: service
for submissions, user for lookups of single users, operator for reading submissions, webhooks,
deliveries, channels and mutes, admin for everything. If a request has both headers, routes for
users and admins use the bearer and all others the x-api-key. Errors are problem documents (RFC
9457). Times are ISO 8601 in UTC. A newer server may send more fields.`;

const TAGS = [
  { name: 'submissions', description: 'Track, read, await and cancel submissions' },
  { name: 'events', description: 'The live feed of events' },
  { name: 'notifications', description: 'Webhooks, channels and deliveries' },
  { name: 'alerts', description: 'Alerts and mutes' },
  { name: 'credentials', description: 'Tokens of clients' },
  { name: 'users', description: 'Audited lookups of users of the upstream' },
  { name: 'operations', description: 'For operators of dawatch' },
];

const SECURITY_SCHEMES = {
  apiKey: {
    type: 'apiKey',
    in: 'header',
    name: 'x-api-key',
    description: 'A token of `dawatch token create`, or DAWATCH_SERVICE_KEY',
  },
  bearer: { type: 'http', scheme: 'bearer', description: 'The same token as a bearer' },
} as const;

type RouteSchema = {
  headers?: z.ZodType;
  response?: Record<string, z.ZodType | object>;
};

export function openapiOptions(version: string): FastifyDynamicSwaggerOptions {
  const zodToJsonConfig = { override: simplify };
  const toDocument = createJsonSchemaTransformObject({ zodToJsonConfig });
  return {
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'dawatch',
        version,
        summary: 'Tracks data-availability submissions',
        description: DESCRIPTION,
        license: { name: 'MIT', identifier: 'MIT' },
      },
      tags: TAGS,
      security: [{ apiKey: [] }, { bearer: [] }],
      components: {
        securitySchemes: SECURITY_SCHEMES,
        responses: PROBLEM_RESPONSES,
        headers: RESPONSE_HEADERS,
      },
    },
    convertConstToEnum: false,
    transform: transformRoute(createJsonSchemaTransform({ zodToJsonConfig })),
    transformObject: (document) => ({
      ...complete(toDocument(document) as Document),
      // Relative to the address of the document: a proxy may serve it below a path.
      servers: [{ url: '.', description: 'This server' }],
    }),
  } as FastifyDynamicSwaggerOptions;
}

/** Describes responses, and wraps references of parameters: libraries omit both with an id. */
function transformRoute(transform: SwaggerTransform): SwaggerTransform {
  return ({ schema, ...route }) => {
    const { response = {}, ...others } = (schema ?? {}) as RouteSchema;
    const described = Object.entries(response).map(([status, one]) => {
      if (!(one instanceof z.ZodType) || one instanceof z.ZodNull) return [status, one];
      const content = { 'application/json': { schema: one } };
      return [status, { description: one.description ?? 'The response', content }];
    });
    const completed = { ...others, response: Object.fromEntries(described) };
    const transformed = transform({ ...route, schema: completed } as never);
    const { properties = {} } = (transformed.schema.querystring ?? {}) as z.core.JSONSchema.Schema;
    for (const [name, parameter] of Object.entries(properties)) {
      const { $ref, ...rest } = parameter as z.core.JSONSchema.Schema;
      if ($ref) properties[name] = { ...rest, allOf: [{ $ref }] };
    }
    return transformed;
  };
}

type Document = {
  tags: { name: string }[];
  paths: Record<string, Record<string, Operation>>;
  webhooks: object;
  components: { schemas: Record<string, object> };
};

/** Removes tags and schemas that nothing uses, and the library's suffix of request schemas. */
function complete(document: Document) {
  const used = new Set<string>();
  for (const [path, operations] of Object.entries(document.paths))
    for (const operation of Object.values(operations)) {
      completeOperation(path, operation);
      for (const tag of operation.tags ?? []) used.add(tag);
    }
  const { schemas, ...components } = document.components;
  const tags = document.tags.filter(({ name }) => used.has(name));
  const { paths, webhooks } = document;
  const rest = { ...document, tags, components };
  const named = usedSchemas([paths, webhooks, components], schemas);
  return { ...withoutSuffix(rest), components: { ...components, schemas: named } };
}

const REFERENCE = /#\/components\/schemas\/(\w+)/g;

/** Sorted by name. Throws if a schema differs between requests and responses: give each an id. */
function usedSchemas(places: object, schemas: Record<string, object>): Record<string, object> {
  const found = new Map<string, object>();
  const visited = new Set<string>();
  const visit = (node: object | undefined) => {
    for (const [, name = ''] of JSON.stringify(node ?? {}).matchAll(REFERENCE)) {
      if (visited.has(name)) continue;
      visited.add(name);
      const id = name.replace(/Input$/, '');
      const schema = withoutSuffix(schemas[name] ?? {});
      const other = found.get(id);
      if (other && JSON.stringify(other) !== JSON.stringify(schema))
        throw new Error(`the schema ${id} of responses differs from that of requests`);
      found.set(id, schema);
      visit(schemas[name]);
    }
  };
  visit(places);
  return Object.fromEntries([...found].toSorted(([a], [b]) => (a < b ? -1 : 1)));
}

function withoutSuffix<T extends object>(node: T): T {
  return JSON.parse(
    JSON.stringify(node).replaceAll(/(#\/components\/schemas\/\w+?)Input"/g, '$1"'),
  );
}

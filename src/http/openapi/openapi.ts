import type { RouteOptions } from 'fastify';
import { z } from 'zod';
import { eventSchema } from '../../domain/notifications/event-body.ts';
import { problemSchema } from '../problems.ts';
import { type Converted, convertSchemas, type JsonSchema } from './components.ts';
import { EVENT_WEBHOOKS } from './event-schema.ts';
import { completeOperation, PROBLEM_RESPONSES, RESPONSE_HEADERS } from './responses.ts';

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
type Described = z.ZodType | { description: string; content: Record<string, { schema: z.ZodType }> };
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

/** Returns the OpenAPI document of the routes. */
export function openapiDocument(routes: readonly RouteOptions[], version: string) {
  const described = routes.map(({ method, url, schema = {} }) => ({ method, url, schema: schema as RouteSchema }));
  const schemas = convertSchemas([...described.flatMap(({ schema }) => schemasOf(schema)), problemSchema, eventSchema]);
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
    webhooks: EVENT_WEBHOOKS,
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
    described instanceof z.ZodType ? [described] : Object.values(described.content).map(({ schema }) => schema),
  );
  return [params, querystring, headers, describedHeaders, body, ...responses].filter((schema) => schema !== undefined);
}

function operationOf(schema: RouteSchema, { jsonOf }: Converted) {
  const { params, querystring, body, consumes = ['application/json'], response = {}, ...others } = schema;
  const { headers, describedHeaders = headers, ...described } = others;
  const parameters = Object.entries({ path: params, query: querystring, header: describedHeaders }).flatMap(
    ([place, given]) => (given ? parametersOf(place, jsonOf(given)) : []),
  );
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
    const content = Object.entries(described.content).map(([type, { schema }]) => [type, { schema: jsonOf(schema) }]);
    return { description: described.description, content: Object.fromEntries(content) };
  }
  const description = described.description ?? 'The response';
  if (described instanceof z.ZodNull) return { description };
  return { description, content: { 'application/json': { schema: jsonOf(described) } } };
}

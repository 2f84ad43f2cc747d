import swagger from '@fastify/swagger';
import type { FastifyInstance } from 'fastify';
import { jsonSchemaTransform, jsonSchemaTransformObject } from 'fastify-type-provider-zod';
import { EVENT_WEBHOOKS, eventSchemas } from './event-schema.ts';
import { completeOperation, PROBLEM_COMPONENTS, RESPONSE_HEADERS } from './responses.ts';

const DESCRIPTION = `Tracks data-availability submissions until they are final.

Send a credential as \`x-api-key\` or \`Authorization: Bearer\`. Its role determines access: **service** for submissions,
**user** for lookups of single users, **admin** for everything. If a request has both headers, routes for users and admins use
the bearer and all others the x-api-key. Errors are problem documents (RFC 9457). A method that a path does not support returns
405 with \`Allow\`, OPTIONS returns 204 with \`Allow\`. Times are ISO 8601 in UTC.`;

const TAGS = [
  { name: 'submissions', description: 'Track, read, await and cancel submissions' },
  { name: 'events', description: 'The live feed of events' },
  { name: 'notifications', description: 'Webhooks and deliveries' },
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

/** Registers Swagger. Must be called before the first route, because the document is built from the schemas of routes. */
export async function addOpenapi(app: FastifyInstance, version: string): Promise<void> {
  await app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'dawatch',
        version,
        summary: 'Tracks data-availability submissions',
        description: DESCRIPTION,
        license: { name: 'MIT', identifier: 'MIT' },
      },
      servers: [{ url: '/', description: 'This server' }],
      tags: TAGS,
      components: { securitySchemes: SECURITY_SCHEMES },
      security: [{ apiKey: [] }, { bearer: [] }],
    },
    transform: jsonSchemaTransform,
    transformObject: (document) =>
      'openapiObject' in document ? complete(jsonSchemaTransformObject(document) as typeof document.openapiObject) : {},
  });
}

type Operations = Record<string, Parameters<typeof completeOperation>[1] & { tags?: string[] }>;

/** Adds the responses, headers and schemas that all routes share. */
function complete<D extends { tags?: { name: string }[]; components?: { schemas?: object }; paths?: object }>(
  document: D,
): D {
  const used = new Set<string>();
  for (const [path, operations] of Object.entries((document.paths ?? {}) as unknown as Record<string, Operations>))
    for (const operation of Object.values(operations)) {
      completeOperation(path, operation);
      for (const tag of operation.tags ?? []) used.add(tag);
    }
  return {
    ...document,
    tags: (document.tags ?? []).filter(({ name }) => used.has(name)),
    webhooks: EVENT_WEBHOOKS,
    components: {
      ...document.components,
      ...PROBLEM_COMPONENTS,
      schemas: { ...eventSchemas(document.components?.schemas), ...PROBLEM_COMPONENTS.schemas },
      headers: RESPONSE_HEADERS,
    },
  };
}

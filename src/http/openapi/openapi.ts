import swagger from '@fastify/swagger';
import type { FastifyInstance } from 'fastify';
import { jsonSchemaTransform, jsonSchemaTransformObject } from 'fastify-type-provider-zod';
import { EVENT_WEBHOOKS, eventSchemas } from './event-webhooks.ts';
import { completeOperation, PROBLEM_COMPONENTS, RESPONSE_HEADERS } from './responses.ts';

const DESCRIPTION = `Watches data-availability submissions until they are final.

Show a credential as \`x-api-key\` or \`Authorization: Bearer\`. Its role decides: **service** for submissions, **user** for
looking up one user, **admin** for everything. If a request carries both, the bearer decides on routes of users and for admins,
the x-api-key on the others. Every error is a problem document (RFC 9457). A method that a path does not have is answered with
405 and \`Allow\`, OPTIONS with 204 and \`Allow\`. Times are ISO 8601 in UTC.`;

const TAGS = [
  { name: 'submissions', description: 'Track submissions, look at them, wait for them, stop them' },
  { name: 'events', description: 'What happens, as it happens' },
  { name: 'notifications', description: 'Who is told of events, and what came of it' },
  { name: 'users', description: "The upstream's users; every lookup is audited" },
  { name: 'operations', description: 'For whoever runs dawatch' },
];

const SECURITY_SCHEMES = {
  apiKey: {
    type: 'apiKey',
    in: 'header',
    name: 'x-api-key',
    description: 'A token of `dawatch token create`, or DAWATCH_API_KEY',
  },
  bearer: { type: 'http', scheme: 'bearer', description: 'The same as a bearer token' },
} as const;

/** Before the first route: the document is made of the schemas that the routes validate with. */
export async function addOpenapi(app: FastifyInstance, version: string): Promise<void> {
  await app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'dawatch',
        version,
        summary: 'Watches data-availability submissions',
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

/** What every route may answer stands here once, not in each of them. */
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

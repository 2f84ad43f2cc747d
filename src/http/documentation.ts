import type { FastifyReply, FastifyRequest, RouteOptions } from 'fastify';
import { z } from 'zod';
import { operations } from './problems.ts';
import type { TypedServer } from './typed-server.ts';

const openapiSchema = z
  .looseObject({
    openapi: z.string(),
    info: z.looseObject({}),
    paths: z.record(z.string(), z.looseObject({})),
  })
  .describe('An OpenAPI 3.1 document')
  .meta({
    id: 'OpenapiDocument',
    examples: [{ openapi: '3.1.0', info: { title: 'dawatch', version: '0.1.0' }, paths: {} }],
  });

const jsonSchemaSchema = z
  .looseObject({ title: z.string(), anyOf: z.array(z.looseObject({})) })
  .describe('A JSON Schema (2020-12)')
  .meta({
    id: 'EventJsonSchema',
    examples: [{ title: 'Events of dawatch', anyOf: [{ type: 'object' }] }],
  });

const OPERATIONS = operations('operations', {
  getOpenapi: {
    summary: 'This document',
    security: [],
    response: { 200: openapiSchema },
  },
  getEventSchema: {
    summary: 'The JSON Schema of events',
    security: [],
    response: { 200: jsonSchemaSchema },
  },
});

/** Must precede the routes. Builds each document at its first request, to start fast. */
export function addDocumentation(
  app: TypedServer,
  { version, eventJsonSchema }: { version: string; eventJsonSchema: () => object },
): void {
  const routes: RouteOptions[] = [];
  app.addHook('onRoute', (route) => {
    if (route.method !== 'HEAD' && !route.schema?.hide) routes.push(route);
  });

  const jsonOf = (read: () => object | Promise<object>) => {
    let text: string | undefined;
    return async (_request: FastifyRequest, reply: FastifyReply) => {
      text ??= JSON.stringify(await read());
      return reply.type('application/json; charset=utf-8').send(Buffer.from(text)) as never;
    };
  };
  app.get(
    '/openapi.json',
    { config: { isOpen: true }, schema: OPERATIONS.getOpenapi },
    jsonOf(async () => {
      const { buildDocument } = await import('./document.ts');
      return buildDocument(routes, version);
    }),
  );
  app.get(
    '/events.schema.json',
    { config: { isOpen: true }, schema: OPERATIONS.getEventSchema },
    jsonOf(eventJsonSchema),
  );
}

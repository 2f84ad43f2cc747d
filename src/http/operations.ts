import type { FastifyInstance } from 'fastify';
import type { ZodTypeProvider } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { eventJsonSchema } from './event-schema.ts';
import type { Health } from './ports.ts';

const readinessSchema = z
  .object({
    status: z
      .enum(['ok', 'degraded', 'unavailable'])
      .describe('degraded: submissions are taken, but an upstream or Redis does not answer'),
    ledger: z.enum(['ok', 'not_writable']),
    upstreams: z.record(
      z.string(),
      z.object({
        state: z.enum(['closed', 'down', 'unauthorized']).describe('closed: it answers'),
        tracked: z.int().describe('Submissions that are being asked about'),
        in_flight: z.int().describe('Requests under way'),
      }),
    ),
    redis: z
      .object({
        state: z.enum(['up', 'away']).describe('away: this server asks alone, and events and queued submissions wait'),
        reason: z
          .enum(['unreachable', 'not_answering', 'refused'])
          .nullable()
          .describe('Why it is away; refused: the password, or a write'),
        workers: z
          .array(
            z.object({
              name: z.string(),
              version: z.string(),
              in_flight: z.int().describe('Requests under way'),
              concurrency: z.int().describe('Batches that it takes at once'),
            }),
          )
          .describe('Those that are alive; without any, this server asks'),
      })
      .optional()
      .describe('Only where there is a Redis'),
  })
  .describe('Whether submissions can be taken, and what stands in the way')
  .meta({
    examples: [{ status: 'ok', ledger: 'ok', upstreams: { default: { state: 'closed', tracked: 150, in_flight: 2 } } }],
  });

const openapiSchema = z
  .looseObject({ openapi: z.string(), info: z.looseObject({}), paths: z.record(z.string(), z.looseObject({})) })
  .describe('An OpenAPI 3.1 document')
  .meta({ examples: [{ openapi: '3.1.0', info: { title: 'dawatch', version: '0.1.0' }, paths: {} }] });

const schemaSchema = z
  .looseObject({ title: z.string(), anyOf: z.array(z.looseObject({})) })
  .describe('A JSON Schema (2020-12)')
  .meta({ examples: [{ title: 'Events of dawatch', anyOf: [{ type: 'object' }] }] });

export function registerOperations(
  instance: FastifyInstance,
  deps: { health: () => Health; document: () => Promise<unknown> },
): void {
  const app = instance.withTypeProvider<ZodTypeProvider>();

  app.get(
    '/livez',
    {
      schema: {
        operationId: 'getLiveness',
        summary: 'Whether the process answers',
        tags: ['operations'],
        security: [],
        response: {
          200: z
            .object({ status: z.literal('ok') })
            .describe('It does')
            .meta({ examples: [{ status: 'ok' }] }),
        },
      },
    },
    async () => ({ status: 'ok' as const }),
  );

  app.get(
    '/readyz',
    {
      schema: {
        operationId: 'getReadiness',
        summary: 'Whether submissions can be taken',
        tags: ['operations'],
        security: [],
        response: { 200: readinessSchema, 503: readinessSchema },
      },
    },
    async (_request, reply) => {
      const { ledgerWritable, upstreams, redis } = deps.health();
      const allUp = upstreams.every(({ state }) => state === 'closed') && redis?.state !== 'away';
      return reply.code(ledgerWritable ? 200 : 503).send({
        status: ledgerWritable ? (allUp ? 'ok' : 'degraded') : 'unavailable',
        ledger: ledgerWritable ? 'ok' : 'not_writable',
        upstreams: Object.fromEntries(
          upstreams.map(({ upstream, state, tracked, inFlight }) => [
            upstream,
            { state, tracked, in_flight: inFlight },
          ]),
        ),
        ...(redis && { redis: { ...redis, workers: [...redis.workers] } }),
      });
    },
  );

  app.get(
    '/openapi.json',
    {
      schema: {
        operationId: 'getOpenapi',
        summary: 'This document',
        tags: ['operations'],
        security: [],
        response: { 200: openapiSchema },
      },
    },
    async (_request, reply) => reply.send((await deps.document()) as z.output<typeof openapiSchema>),
  );

  let eventSchema: z.output<typeof schemaSchema> | undefined;
  app.get(
    '/events.schema.json',
    {
      schema: {
        operationId: 'getEventSchema',
        summary: 'What events look like, as a JSON Schema',
        tags: ['operations'],
        security: [],
        response: { 200: schemaSchema },
      },
    },
    async (_request, reply) => {
      // Made when somebody asks: it takes longer than opening all routes.
      eventSchema ??= eventJsonSchema() as z.output<typeof schemaSchema>;
      return reply.send(eventSchema);
    },
  );
}

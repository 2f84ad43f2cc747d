import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { ZodTypeProvider } from 'fastify-type-provider-zod';
import { z } from 'zod';
import type { Authenticator } from '../access/access.ts';
import { eventJsonSchema } from '../feed/event-schema.ts';
import type { Health } from '../ports.ts';
import { logOf } from '../request-log.ts';
import { type StoredResponse, sendStoredResponse, storedResponse } from '../stored-response.ts';

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
        tracked: z.int().optional().describe('Submissions that are being polled; for admins'),
        in_flight: z.int().optional().describe('Requests under way; for admins'),
      }),
    ),
    redis: z
      .object({
        state: z.enum(['up', 'away']).describe('away: this server asks alone, and events and queued submissions wait'),
        reason: z
          .enum(['unreachable', 'not_answering', 'refused'])
          .nullable()
          .optional()
          .describe('Why it is away; refused: the password, or a write. For admins'),
        workers: z
          .array(
            z.object({
              name: z.string(),
              version: z.string(),
              in_flight: z.int().describe('Requests under way'),
              concurrency: z.int().describe('Batches that it takes at once'),
            }),
          )
          .optional()
          .describe('Those that are alive; without any, this server polls. For admins'),
        refused_workers: z
          .int()
          .optional()
          .describe('How many announce themselves and get no jobs: `worker.refused` in the log says why. For admins'),
      })
      .optional()
      .describe('Only where there is a Redis'),
  })
  .describe('Whether submissions can be taken, and what stands in the way')
  .meta({
    examples: [{ status: 'ok', ledger: 'ok', upstreams: { default: { state: 'closed' } } }],
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
  deps: { authenticator: Authenticator; health: () => Health; document: () => Promise<StoredResponse> },
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
      config: { prefersBearer: true },
      schema: {
        operationId: 'getReadiness',
        summary: 'Whether submissions can be taken',
        description:
          'Open to everyone, who learns the names and states of the components. The role admin learns counts, reasons and workers too.',
        tags: ['operations'],
        security: [],
        response: { 200: readinessSchema, 503: readinessSchema },
      },
    },
    async (request, reply) => {
      const health = deps.health();
      const body = readinessOf(health, { isDetailed: isAdmin(request) });
      return reply.code(health.ledgerWritable ? 200 : 503).send(body);
    },
  );

  /** Also if the ledger cannot be read: then nobody is known, and the states are what matters. */
  function isAdmin(request: FastifyRequest): boolean {
    try {
      const identity = deps.authenticator.identify(request);
      return identity.kind === 'known' && identity.caller.role === 'admin';
    } catch (error) {
      logOf(request).error({ err: error }, 'http.failed');
      return false;
    }
  }

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
    async (request, reply) => sendStoredResponse(request, reply, await deps.document()) as never,
  );

  let eventSchema: StoredResponse | undefined;
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
    async (request, reply) => {
      // Built at the first request: it takes longer than registering all routes.
      eventSchema ??= storedResponse(JSON.stringify(eventJsonSchema()), {
        'content-type': 'application/json; charset=utf-8',
      });
      return sendStoredResponse(request, reply, eventSchema) as never;
    },
  );
}

/** Names of hosts, counts and reasons are for admins: anybody may ask. */
function readinessOf(
  { ledgerWritable, upstreams, redis }: Health,
  { isDetailed }: { isDetailed: boolean },
): z.output<typeof readinessSchema> {
  const allUp = upstreams.every(({ state }) => state === 'closed') && redis?.state !== 'away';
  return {
    status: ledgerWritable ? (allUp ? 'ok' : 'degraded') : 'unavailable',
    ledger: ledgerWritable ? 'ok' : 'not_writable',
    upstreams: Object.fromEntries(
      upstreams.map(({ upstream, state, tracked, inFlight }) => [
        upstream,
        { state, ...(isDetailed && { tracked, in_flight: inFlight }) },
      ]),
    ),
    ...(redis && {
      redis: isDetailed
        ? {
            state: redis.state,
            reason: redis.reason,
            workers: [...redis.workers],
            refused_workers: redis.refusedWorkers,
          }
        : { state: redis.state },
    }),
  };
}

import type { FastifyInstance } from 'fastify';
import type { ZodTypeProvider } from 'fastify-type-provider-zod';
import { z } from 'zod';
import type { Health } from './ports.ts';

const readinessSchema = z.object({
  status: z
    .enum(['ok', 'degraded', 'unavailable'])
    .describe('degraded: submissions are taken, but an upstream does not answer'),
  ledger: z.enum(['ok', 'not_writable']),
  upstreams: z.record(
    z.string(),
    z.object({
      state: z.enum(['closed', 'down', 'unauthorized']).describe('closed: it answers'),
      tracked: z.int().describe('Submissions that are being asked about'),
      in_flight: z.int().describe('Requests under way'),
    }),
  ),
});

export function registerOperations(instance: FastifyInstance, deps: { health: () => Health }): void {
  const app = instance.withTypeProvider<ZodTypeProvider>();

  app.get(
    '/livez',
    {
      schema: {
        summary: 'Whether the process answers',
        tags: ['operations'],
        security: [],
        response: { 200: z.object({ status: z.literal('ok') }) },
      },
    },
    async () => ({ status: 'ok' as const }),
  );

  app.get(
    '/readyz',
    {
      schema: {
        summary: 'Whether submissions can be taken',
        tags: ['operations'],
        security: [],
        response: { 200: readinessSchema, 503: readinessSchema },
      },
    },
    async (_request, reply) => {
      const { ledgerWritable, upstreams } = deps.health();
      const allUp = upstreams.every(({ state }) => state === 'closed');
      return reply.code(ledgerWritable ? 200 : 503).send({
        status: ledgerWritable ? (allUp ? 'ok' : 'degraded') : 'unavailable',
        ledger: ledgerWritable ? 'ok' : 'not_writable',
        upstreams: Object.fromEntries(
          upstreams.map(({ upstream, state, tracked, inFlight }) => [
            upstream,
            { state, tracked, in_flight: inFlight },
          ]),
        ),
      });
    },
  );

  app.get('/openapi.json', { schema: { hide: true } }, async () => instance.swagger());
}

import type { FastifyInstance } from 'fastify';
import type { ZodTypeProvider } from 'fastify-type-provider-zod';
import { z } from 'zod';
import type { Clock } from '../../domain/clock.ts';
import type { Overview } from '../ports.ts';
import { problemResponse } from '../problems.ts';
import { overviewSchema, toOverviewBody } from './overview-body.ts';

export function registerOverview(
  instance: FastifyInstance,
  { overview, clock, readers }: { overview: () => Overview; clock: Clock; readers: () => number },
): void {
  const app = instance.withTypeProvider<ZodTypeProvider>();
  app.get(
    '/v1/overview',
    {
      schema: {
        operationId: 'getOverview',
        summary: 'What is going on, and how the last hour was',
        tags: ['operations'],
        querystring: z.strictObject({}),
        response: {
          200: overviewSchema,
          400: problemResponse,
          401: problemResponse,
          403: problemResponse,
          503: problemResponse,
        },
      },
    },
    async () => toOverviewBody(overview(), { now: clock.now(), readers: readers() }),
  );
}

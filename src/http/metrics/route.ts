import type { FastifyInstance } from 'fastify';
import type { ZodTypeProvider } from 'fastify-type-provider-zod';
import { z } from 'zod';
import type { Clock } from '../../domain/clock.ts';
import type { UpstreamPacing } from '../../watch/watcher.ts';
import type { Health, Overview } from '../ports.ts';
import type { GaugeValues } from './gauges.ts';
import type { Metrics } from './metrics.ts';

/** For so long every request gets the same text. */
const MAX_AGE_MS = 1_000;

const metricsSchema = z
  .string()
  .describe('The text format of Prometheus, 0.0.4')
  .meta({
    examples: [
      '# HELP dawatch_pacing_tracked_submissions Submissions that are being asked about\n# TYPE dawatch_pacing_tracked_submissions gauge\ndawatch_pacing_tracked_submissions{upstream="default"} 150\n',
    ],
  });

export function registerMetrics(
  instance: FastifyInstance,
  deps: {
    metrics: Metrics;
    overview: () => Overview;
    pacing: () => UpstreamPacing[];
    health: () => Health;
    ledgerBytes: () => GaugeValues['ledgerBytes'];
    readers: () => number;
    waitingIds: () => number;
    clock: Clock;
  },
): void {
  const app = instance.withTypeProvider<ZodTypeProvider>();
  /** Where the ledger fails, everything else is still told. */
  const overview = () => {
    try {
      return deps.overview();
    } catch (error) {
      instance.log.error({ err: error }, 'metrics.incomplete');
      return undefined;
    }
  };
  const scrape = async (now: number) => {
    const { contentType, text } = await deps.metrics.scrape({
      now,
      overview: overview(),
      pacing: deps.pacing(),
      health: deps.health(),
      ledgerBytes: deps.ledgerBytes(),
      readers: deps.readers(),
      waitingIds: deps.waitingIds(),
    });
    return { contentType, body: Buffer.from(text) };
  };
  let last: { at: number; answer: ReturnType<typeof scrape> } | undefined;
  /** The route is open to everyone and has no limit, so that requests for it must not keep the server busy. */
  const shared = () => {
    const now = deps.clock.now();
    // Either way: the clock may be set back.
    if (last && Math.abs(now - last.at) < MAX_AGE_MS) return last.answer;
    const answer = scrape(now);
    last = { at: now, answer };
    answer.catch(() => {
      if (last?.answer === answer) last = undefined;
    });
    return answer;
  };
  app.get(
    '/metrics',
    {
      schema: {
        operationId: 'getMetrics',
        summary: 'Everything that is measured, for Prometheus',
        tags: ['operations'],
        security: [],
        response: {
          200: {
            description:
              'Gauges as they are now, counters and histograms since the server started; computed at most once a second',
            content: { 'text/plain': { schema: metricsSchema } },
          },
        },
      },
    },
    async (_request, reply) => {
      const { contentType, body } = await shared();
      return reply.type(contentType).send(body as never);
    },
  );
}

import { z } from 'zod';
import { operations } from '../../http/problems.ts';
import type { TypedServer } from '../../http/typed-server.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Watcher } from '../../polling/watcher.ts';
import type { LedgerStats } from '../../submissions/ledger-stats.ts';
import type { Readiness } from '../health-routes.ts';
import type { Metrics } from './metrics.ts';

/**
 * Requests within this time get the same text. The route is open and unlimited, so it must stay
 * cheap.
 */
const MAX_AGE_MS = 1_000;

const metricsSchema = z
  .string()
  .describe('The text format of Prometheus, 0.0.4')
  .meta({
    examples: [
      '# HELP dawatch_pacing_tracked_submissions Submissions being polled\n# TYPE dawatch_pacing_tracked_submissions gauge\ndawatch_pacing_tracked_submissions{upstream="default"} 150\n',
    ],
  });

const OPERATIONS = operations('operations', {
  getMetrics: {
    summary: 'Get the metrics for Prometheus',
    description: 'Needs no credential.',
    security: [],
    response: {
      200: {
        description:
          'Current gauges, and counters and histograms since the server started; computed at most once a second',
        content: { 'text/plain': { schema: metricsSchema } },
      },
    },
  },
});

export function registerMetrics(
  app: TypedServer,
  deps: {
    metrics: Metrics;
    watcher: Watcher;
    health: () => Readiness;
    ledger: { stats: LedgerStats };
    feed: { readers: number };
    waitingIds: () => number;
    clock: Clock;
  },
): void {
  /** Returns undefined if the ledger cannot be read; the other metrics are still served. */
  const readable = <T>(read: () => T): T | undefined => {
    try {
      return read();
    } catch (error) {
      app.log.error({ err: error }, 'metrics.incomplete');
      return undefined;
    }
  };
  const scrape = async (now: number) => {
    const { metrics, ledger, watcher, feed } = deps;
    metrics.set({
      now,
      counts: readable(() => ledger.stats.counts(1)),
      pacing: watcher.pacing(),
      ledgerBytes: ledger.stats.bytes(),
      disk: ledger.stats.disk(),
      readers: feed.readers,
      health: deps.health(),
      waitingIds: deps.waitingIds(),
    });
    const { contentType, text } = await metrics.text();
    return { contentType, body: Buffer.from(text) };
  };
  let last: { at: number; text: ReturnType<typeof scrape> } | undefined;
  app.get('/metrics', { schema: OPERATIONS.getMetrics }, async (_request, reply) => {
    const now = deps.clock.now();
    // Uses the absolute difference, because the clock can be set back.
    if (!last || Math.abs(now - last.at) >= MAX_AGE_MS) {
      const text = scrape(now);
      last = { at: now, text };
      text.catch(() => {
        if (last?.text === text) last = undefined;
      });
    }
    const { contentType, body } = await last.text;
    return reply.type(contentType).send(body as never);
  });
}

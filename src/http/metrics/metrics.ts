import { Registry } from 'prom-client';
import type { UpstreamPacing } from '../../watch/watcher.ts';
import { countHappened, type Happened } from './happened.ts';
import { createPacingGauges } from './pacing.ts';
import { collectProcess } from './process.ts';
import { createStandingGauges, type Standing } from './standing.ts';

/** What is shown to Prometheus. */
export type Metrics = {
  happened: Happened;
  /** The text format, with the gauges as they are now. */
  scrape(now: Standing & { pacing: readonly UpstreamPacing[] }): Promise<{ contentType: string; text: string }>;
  /** Every family. */
  describe(): { name: string; help: string; type: string; labels: readonly string[] }[];
};

/** One per server: there may be several in a process. */
export function createMetrics({ version }: { version: string }): Metrics {
  const registry = new Registry();
  const happened = countHappened(registry);
  const standing = createStandingGauges(registry, version);
  const pacing = createPacingGauges(registry);
  let isWatchingProcess = false;
  // Only where somebody looks: it costs timers and observers.
  const watchProcess = () => {
    if (!isWatchingProcess) collectProcess(registry);
    isWatchingProcess = true;
  };
  return {
    happened,
    async scrape({ pacing: upstreams, ...now }) {
      watchProcess();
      // Nothing waits between here and the last one, so two scrapes at once do not mix.
      standing(now);
      pacing(upstreams);
      return { contentType: registry.contentType, text: await registry.metrics() };
    },
    describe() {
      watchProcess();
      return registry.getMetricsAsArray().map((metric) => {
        const { name, help, type, labelNames } = metric as typeof metric & { labelNames?: readonly string[] };
        return { name, help, type: String(type), labels: labelNames ?? [] };
      });
    },
  };
}

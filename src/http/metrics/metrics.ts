import { Registry } from 'prom-client';
import type { UpstreamPacing } from '../../watch/watcher.ts';
import { type Counters, createCounters } from './counters.ts';
import { createGauges, type GaugeValues } from './gauges.ts';
import { createPacingGauges } from './pacing-gauges.ts';
import { collectProcessMetrics } from './process.ts';

/** What is shown to Prometheus. */
export type Metrics = {
  counters: Counters;
  /** The text format, with the gauges as they are now. */
  scrape(now: GaugeValues & { pacing: readonly UpstreamPacing[] }): Promise<{ contentType: string; text: string }>;
  /** Every family. */
  describe(): { name: string; help: string; type: string; labels: readonly string[] }[];
};

/** One per server: there may be several in a process. */
export function createMetrics({ version }: { version: string }): Metrics {
  const registry = new Registry();
  const counters = createCounters(registry);
  const setGauges = createGauges(registry, version);
  const pacing = createPacingGauges(registry);
  let isWatchingProcess = false;
  // Only where somebody looks: it costs timers and observers.
  const watchProcess = () => {
    if (!isWatchingProcess) collectProcessMetrics(registry);
    isWatchingProcess = true;
  };
  return {
    counters,
    async scrape({ pacing: upstreams, ...now }) {
      watchProcess();
      // Nothing waits between here and the last one, so two scrapes at once do not mix.
      setGauges(now);
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

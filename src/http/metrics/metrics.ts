import { collectDefaultMetrics, Registry } from 'prom-client';
import type { UpstreamPacing } from '../../watch/watcher.ts';
import { type Counters, createCounters } from './counters.ts';
import { createGauges, type GaugeValues } from './gauges.ts';
import { createPacingGauges } from './pacing-gauges.ts';

/** Gauges of Node named like counters, which Prometheus warns about. The families without `_total` have the same data. */
const MISNAMED = ['nodejs_active_handles_total', 'nodejs_active_requests_total', 'nodejs_active_resources_total'];

export type Metrics = {
  counters: Counters;
  /** Sets the gauges to `values` and returns the Prometheus text format. */
  scrape(values: GaugeValues & { pacing: readonly UpstreamPacing[] }): Promise<{ contentType: string; text: string }>;
  /** Returns every metric family. */
  describe(): { name: string; help: string; type: string; labels: readonly string[] }[];
};

/** Creates the metrics of one server; a process can have several servers. */
export function createMetrics({ version }: { version: string }): Metrics {
  const registry = new Registry();
  const counters = createCounters(registry);
  const setGauges = createGauges(registry, version);
  const setPacingGauges = createPacingGauges(registry);
  let collectsProcess = false;
  /** Starts at the first scrape, because it costs timers and observers. */
  const collectProcess = () => {
    if (collectsProcess) return;
    collectsProcess = true;
    collectDefaultMetrics({ register: registry });
    for (const name of MISNAMED) registry.removeSingleMetric(name);
  };
  return {
    counters,
    async scrape({ pacing: upstreams, ...values }) {
      collectProcess();
      // Synchronous, so that concurrent scrapes do not mix their values.
      setGauges(values);
      setPacingGauges(upstreams);
      return { contentType: registry.contentType, text: await registry.metrics() };
    },
    describe() {
      collectProcess();
      return registry.getMetricsAsArray().map((metric) => {
        const { name, help, type, labelNames } = metric as typeof metric & { labelNames?: readonly string[] };
        return { name, help, type: String(type), labels: labelNames ?? [] };
      });
    },
  };
}

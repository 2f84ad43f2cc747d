import { collectDefaultMetrics, Registry } from 'prom-client';
import type { ObjectiveStatus } from '../../domain/reports/objective.ts';
import type { UpstreamPacing } from '../../watch/watcher.ts';
import { createCounters } from './counters.ts';
import { createGauges, type GaugeValues } from './gauges.ts';
import { createObjectiveGauges } from './objective-gauges.ts';
import { createPacingGauges } from './pacing-gauges.ts';

/** Gauges of Node named like counters, which Prometheus warns about. The families without `_total` have the same data. */
const MISNAMED = ['nodejs_active_handles_total', 'nodejs_active_requests_total', 'nodejs_active_resources_total'];

export type Metrics = ReturnType<typeof createMetrics>;

/** Creates the metrics of one server; a process can have several servers. */
export function createMetrics({ version }: { version: string }) {
  const registry = new Registry();
  const counters = createCounters(registry);
  const setGauges = createGauges(registry, version);
  const setPacingGauges = createPacingGauges(registry);
  const setObjectiveGauges = createObjectiveGauges(registry);
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
    /** Sets the gauges to `values` and returns the Prometheus text format. */
    async scrape({
      pacing: upstreams,
      objectives,
      ...values
    }: GaugeValues & { pacing: readonly UpstreamPacing[]; objectives: readonly ObjectiveStatus[] }) {
      collectProcess();
      // Synchronous, so that concurrent scrapes do not mix their values.
      setGauges(values);
      setPacingGauges(upstreams);
      setObjectiveGauges(objectives);
      return { contentType: registry.contentType, text: withoutEmptyLag(await registry.metrics()) };
    },
    /** Returns every metric family. */
    describe() {
      collectProcess();
      return registry.getMetricsAsArray().map((metric) => {
        const { name, help, type, labelNames } = metric as typeof metric & { labelNames?: readonly string[] };
        return { name, help, type: String(type), labels: labelNames ?? [] };
      });
    },
  };
}

const LAG = 'nodejs_eventloop_lag_(?:min|max|mean|stddev|p50|p90|p99)_seconds';
const EMPTY_LAG = /^nodejs_eventloop_lag_mean_seconds NaN$/im;
const LAG_SAMPLES = new RegExp(`^${LAG} .*\n`, 'gm');

/** Removes statistics of no delays: at the first scrape and right after another one, nothing was measured yet. */
function withoutEmptyLag(text: string): string {
  return EMPTY_LAG.test(text) ? text.replace(LAG_SAMPLES, '') : text;
}

import { collectDefaultMetrics, Registry } from 'prom-client';
import { createPacingGauges } from '../../polling/pacing-gauges.ts';
import type { UpstreamPacing } from '../../polling/watcher.ts';
import type { ObjectiveStatus } from '../../submissions/objective.ts';
import { createCounters } from './counters.ts';
import { createGauges, type GaugeValues } from './gauges.ts';
import { createObjectiveGauges } from './objective-gauges.ts';

/**
 * Gauges of Node named like counters, which Prometheus warns about. The families without `_total`
 * have the same data.
 */
const MISNAMED = [
  'nodejs_active_handles_total',
  'nodejs_active_requests_total',
  'nodejs_active_resources_total',
];

export type Metrics = ReturnType<typeof createMetrics>;

/** The values of the gauges of a ledger. */
export type Scraped = GaugeValues & {
  pacing: readonly UpstreamPacing[];
  objectives: readonly ObjectiveStatus[];
};

/** Creates the metrics of one server. A process can have several servers. */
export function createMetrics({ version }: { version: string }) {
  const registry = new Registry();
  const counters = createCounters(registry);
  const setGauges = createGauges(registry, version);
  const setPacingGauges = createPacingGauges(registry);
  const setObjectiveGauges = createObjectiveGauges(registry);
  let isCollecting = false;
  /** Starts at the first scrape, because the metrics of the process cost timers and observers. */
  const collectProcess = () => {
    if (isCollecting) return;
    isCollecting = true;
    collectDefaultMetrics({ register: registry });
    for (const name of MISNAMED) registry.removeSingleMetric(name);
  };
  return {
    counters,
    /** Sets the gauges. Synchronous, so that concurrent scrapes do not mix their values. */
    set({ pacing: upstreams, objectives, ...values }: Scraped) {
      setGauges(values);
      setPacingGauges(upstreams);
      setObjectiveGauges(objectives);
    },
    /** Returns the Prometheus text format. */
    async text() {
      collectProcess();
      return { contentType: registry.contentType, text: withoutEmptyLag(await registry.metrics()) };
    },
    /** Returns every metric family. */
    async describe() {
      collectProcess();
      return registry.getMetricsAsArray().map((metric) => {
        const { name, help, type, labelNames } = metric as typeof metric & {
          labelNames?: readonly string[];
        };
        return { name, help, type: String(type), labels: labelNames ?? [] };
      });
    },
  };
}

const EMPTY_LAG = /^nodejs_eventloop_lag_mean_seconds NaN$/im;
const LAG_SAMPLES = /^nodejs_eventloop_lag_(?:min|max|mean|stddev|p50|p90|p99)_seconds .*\n/gm;

/**
 * Removes the event loop delays if none was measured, as at the first scrape and directly after
 * another one.
 */
function withoutEmptyLag(text: string): string {
  return EMPTY_LAG.test(text) ? text.replace(LAG_SAMPLES, '') : text;
}

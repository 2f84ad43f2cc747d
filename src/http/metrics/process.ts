import { collectDefaultMetrics, type Registry } from 'prom-client';

/** Gauges whose names are those of counters, which Prometheus warns of; the same is in the ones without `_total`, by type. */
const MISNAMED = ['nodejs_active_handles_total', 'nodejs_active_requests_total', 'nodejs_active_resources_total'];

/** What every Node process tells of itself. It begins to watch the event loop and the garbage collector. */
export function collectProcessMetrics(registry: Registry): void {
  collectDefaultMetrics({ register: registry });
  for (const name of MISNAMED) registry.removeSingleMetric(name);
}

import { Gauge, type Registry } from 'prom-client';
import { type PacingBody, toPacingBody } from './pacing-route.ts';
import type { UpstreamPacing } from './watcher.ts';

/** Returns the value of a gauge; anything but a number means no sample. */
type Reading = (pacing: PacingBody) => number | null | undefined;

/** The help text and the reading of each gauge. Each has one label, the upstream. */
const PACING: Record<string, readonly [help: string, of: Reading]> = {
  upstream_up: [
    '1: the upstream responds; 0: it is down or refuses the key',
    ({ state }) => Number(state === 'up'),
  ],
  tracked_submissions: ['Submissions being polled', ({ tracked }) => tracked],
  slots_known: [
    '1: submissions become final with the slots of a chain; 0: no period is known, so each is polled by its age',
    ({ mode }) => Number(mode !== 'age'),
  ],
  slot_period_seconds: [
    'Length of a slot; no sample if not known',
    ({ slot }) => slot && seconds(slot.period_ms),
  ],
  slot_empty_ratio: [
    'Share of slots in which nothing becomes final, 0 to 1; no sample if not known',
    ({ slot }) => slot?.empty_share,
  ],
  next_event_timestamp_seconds: [
    'Predicted time at which the next group becomes final (median), in seconds since 1970; no sample if not known',
    ({ slot }) => (slot?.next_event_at ? timestamp(slot.next_event_at) : null),
  ],
  serial_senders: [
    'Estimated number of serial senders of the upstream; no sample if it sends everything at once',
    ({ senders }) => senders,
  ],
  observed_submissions: [
    'Recently finalized submissions the distribution of finality time was learned from; 0 for the initial assumption',
    ({ observed }) => observed,
  ],
  lag_price_requests: [
    'Requests that one second of lag is worth, as configured',
    ({ lag_price }) => lag_price,
  ],
  requests_per_submission: [
    'Requests per submission, over the newest finalized ones; no sample before the first',
    ({ cost }) => cost.current?.requests,
  ],
  lag_seconds: [
    'Mean time between finality and the poll that finds it, over the newest finalized submissions; no sample before the first',
    ({ cost }) => cost.current?.lag_s,
  ],
  lower_bound_requests_per_submission: [
    'Requests per submission at the lowest possible cost with the learned distribution, for a single submission',
    ({ cost }) => cost.lower_bound?.requests,
  ],
  lower_bound_lag_seconds: ['Mean lag at that cost', ({ cost }) => cost.lower_bound?.lag_s],
  every_five_seconds_requests_per_submission: [
    'Requests per submission with a poll every 5 s and the learned distribution',
    ({ cost }) => cost.every_five_seconds?.requests,
  ],
  every_five_seconds_lag_seconds: [
    'Mean lag with a poll every 5 s',
    ({ cost }) => cost.every_five_seconds?.lag_s,
  ],
  budget_requests: ['Requests per window of the request budget', ({ budget }) => budget.requests],
  budget_window_seconds: [
    'Length of the window of the request budget',
    ({ budget }) => seconds(budget.per_ms),
  ],
  budget_used_requests: [
    'Requests used in the current window of the request budget',
    ({ budget }) => budget.used,
  ],
  concurrent_requests_limit: ['Limit of requests in flight', ({ budget }) => budget.concurrency],
  in_flight_requests: ['Requests in flight', ({ budget }) => budget.in_flight],
  next_request_timestamp_seconds: [
    'Time of the next poll, in seconds since 1970; no sample if none is scheduled or it waits for a request in flight',
    ({ next }) => (next === null || next.at === null ? null : timestamp(next.at)),
  ],
  next_request_delayed: [
    '1: the next poll is delayed by the request budget or a pause of the upstream; 0: it is not',
    ({ next }) => Number(next !== null && next.held_by !== null),
  ],
};

/** Creates the gauges and returns the function that sets them. */
export function createPacingGauges(
  registry: Registry,
): (upstreams: readonly UpstreamPacing[]) => void {
  const gauges = Object.entries(PACING).map(([name, [help, of]]) => ({
    of,
    gauge: new Gauge({
      name: `dawatch_pacing_${name}`,
      help,
      labelNames: ['upstream'],
      registers: [registry],
    }),
  }));
  return (upstreams) => {
    const bodies = upstreams.map(toPacingBody);
    for (const { gauge, of } of gauges) {
      gauge.reset();
      for (const body of bodies) {
        const value = of(body);
        if (typeof value === 'number') gauge.set({ upstream: body.upstream }, value);
      }
    }
  };
}

function seconds(ms: number): number {
  return ms / 1_000;
}

function timestamp(time: string): number {
  return Date.parse(time) / 1_000;
}

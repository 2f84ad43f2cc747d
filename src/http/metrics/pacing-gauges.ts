import { Gauge, type Registry } from 'prom-client';
import type { UpstreamPacing } from '../../watch/watcher.ts';
import { type PacingBody, toPacingBody } from '../routes/pacing.ts';

type PacingGauge = {
  name: string;
  help: string;
  /** Anything but a number means no sample. */
  of: (pacing: PacingBody) => number | null | undefined;
};

/** Each gauge has one label, the upstream. */
const PACING: readonly PacingGauge[] = [
  {
    name: 'upstream_up',
    help: '1: the upstream responds; 0: it is down or refuses the key',
    of: ({ state }) => Number(state === 'closed'),
  },
  { name: 'tracked_submissions', help: 'Submissions being polled', of: ({ tracked }) => tracked },
  {
    name: 'slots_known',
    help: '1: submissions become final with the slots of a chain; 0: no period is known, so each is polled by its age',
    of: ({ mode }) => Number(mode === 'slots'),
  },
  {
    name: 'slot_period_seconds',
    help: 'Length of a slot; no sample if not known',
    of: ({ slot }) => slot && seconds(slot.period_ms),
  },
  {
    name: 'slot_empty_ratio',
    help: 'Share of slots in which nothing becomes final, 0 to 1; no sample if not known',
    of: ({ slot }) => slot?.empty_share,
  },
  {
    name: 'next_event_timestamp_seconds',
    help: 'Predicted time at which the next group becomes final (median), in seconds since 1970; no sample if not known',
    of: ({ slot }) => (slot?.next_event_at ? timestamp(slot.next_event_at) : null),
  },
  {
    name: 'serial_senders',
    help: 'Estimated number of serial senders of the upstream; no sample if it sends everything at once',
    of: ({ senders }) => senders,
  },
  {
    name: 'observed_submissions',
    help: 'Recently finalized submissions the distribution of finality time was learned from; 0 for the initial assumption',
    of: ({ observed }) => observed,
  },
  {
    name: 'lag_price_requests',
    help: 'Requests that one second of lag is worth, as configured',
    of: ({ lag_price }) => lag_price,
  },
  {
    name: 'requests_per_submission',
    help: 'Requests per submission, over the newest finalized ones; no sample before the first',
    of: ({ cost }) => cost.current?.requests,
  },
  {
    name: 'lag_seconds',
    help: 'Mean time between finality and the poll that finds it, over the newest finalized submissions; no sample before the first',
    of: ({ cost }) => cost.current?.lag_s,
  },
  {
    name: 'lower_bound_requests_per_submission',
    help: 'Requests per submission at the lowest possible cost with the learned distribution, for a single submission',
    of: ({ cost }) => cost.lower_bound?.requests,
  },
  { name: 'lower_bound_lag_seconds', help: 'Mean lag at that cost', of: ({ cost }) => cost.lower_bound?.lag_s },
  {
    name: 'every_five_seconds_requests_per_submission',
    help: 'Requests per submission with a poll every 5 s and the learned distribution',
    of: ({ cost }) => cost.every_five_seconds?.requests,
  },
  {
    name: 'every_five_seconds_lag_seconds',
    help: 'Mean lag with a poll every 5 s',
    of: ({ cost }) => cost.every_five_seconds?.lag_s,
  },
  {
    name: 'budget_requests',
    help: 'Requests per window of the request budget',
    of: ({ budget }) => budget.requests,
  },
  {
    name: 'budget_window_seconds',
    help: 'Length of the window of the request budget',
    of: ({ budget }) => seconds(budget.per_ms),
  },
  {
    name: 'budget_used_requests',
    help: 'Requests used in the current window of the request budget',
    of: ({ budget }) => budget.used,
  },
  {
    name: 'concurrent_requests_limit',
    help: 'Limit of requests in flight',
    of: ({ budget }) => budget.concurrency,
  },
  { name: 'in_flight_requests', help: 'Requests in flight', of: ({ budget }) => budget.in_flight },
  {
    name: 'next_request_timestamp_seconds',
    help: 'Time of the next poll, in seconds since 1970; no sample if none is scheduled or it waits for a request in flight',
    of: ({ next }) => (next === null || next.at === null ? null : timestamp(next.at)),
  },
  {
    name: 'next_request_delayed',
    help: '1: the next poll is delayed by the request budget or a pause of the upstream; 0: it is not',
    of: ({ next }) => Number(next !== null && next.held_by !== null),
  },
];

/** Creates the gauges and returns the function that sets them. */
export function createPacingGauges(registry: Registry): (upstreams: readonly UpstreamPacing[]) => void {
  const gauges = PACING.map(({ name, help, of }) => ({
    of,
    gauge: new Gauge({ name: `dawatch_pacing_${name}`, help, labelNames: ['upstream'], registers: [registry] }),
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

import { Gauge, type Registry } from 'prom-client';
import type { UpstreamPacing } from '../../watch/watcher.ts';
import { type PacingBody, toPacingBody } from '../routes/pacing.ts';

type Measure = {
  name: string;
  help: string;
  /** No number: not known, so there is no sample. */
  of: (pacing: PacingBody) => number | null | undefined;
};

/** What pacing learned and does. Each has one label, the upstream. */
const PACING: readonly Measure[] = [
  {
    name: 'upstream_up',
    help: '1: the upstream answers; 0: it is out, or refuses the key',
    of: ({ state }) => Number(state === 'closed'),
  },
  {
    name: 'tracked_submissions',
    help: 'Submissions that are being asked about',
    of: ({ tracked }) => tracked,
  },
  {
    name: 'slots_known',
    help: '1: submissions become final with the slots of a chain; 0: nothing periodic is known, so each is polled by its age',
    of: ({ mode }) => Number(mode === 'slots'),
  },
  {
    name: 'slot_period_seconds',
    help: 'How long a slot lasts; none: not known',
    of: ({ slot }) => slot && seconds(slot.period_ms),
  },
  {
    name: 'slot_empty_ratio',
    help: 'Share of the slots in which nothing becomes final, 0 to 1; none: not known',
    of: ({ slot }) => slot?.empty_share,
  },
  {
    name: 'next_event_timestamp_seconds',
    help: 'When the next group becomes final (median), in seconds since 1970; none: not known',
    of: ({ slot }) => (slot?.next_event_at ? timestamp(slot.next_event_at) : null),
  },
  {
    name: 'serial_senders',
    help: 'Serial senders of the upstream, as far as can be told; none: it sends all at once',
    of: ({ senders }) => senders,
  },
  {
    name: 'observed_submissions',
    help: 'Finalized submissions from which the distribution of finality time was learned lately; 0: it is the initial belief',
    of: ({ observed }) => observed,
  },
  {
    name: 'lag_price_requests',
    help: 'Requests that one second of lag is worth, as set',
    of: ({ lag_price }) => lag_price,
  },
  {
    name: 'requests_per_submission',
    help: 'Requests per submission, over the newest finalized ones; none: there is none yet',
    of: ({ cost }) => cost.current?.requests,
  },
  {
    name: 'lag_seconds',
    help: 'Mean time between finality and the poll that finds it, over the newest finalized submissions; none: there is none yet',
    of: ({ cost }) => cost.current?.lag_s,
  },
  {
    name: 'lower_bound_requests_per_submission',
    help: 'Requests per submission at the lowest cost that is possible with the learned distribution for one by itself',
    of: ({ cost }) => cost.lower_bound?.requests,
  },
  {
    name: 'lower_bound_lag_seconds',
    help: 'Mean lag at that cost',
    of: ({ cost }) => cost.lower_bound?.lag_s,
  },
  {
    name: 'every_five_seconds_requests_per_submission',
    help: 'Requests per submission if each were polled every 5 s, with the learned distribution',
    of: ({ cost }) => cost.every_five_seconds?.requests,
  },
  {
    name: 'every_five_seconds_lag_seconds',
    help: 'Mean lag if each were polled every 5 s',
    of: ({ cost }) => cost.every_five_seconds?.lag_s,
  },
  {
    name: 'budget_requests',
    help: 'So many requests are granted in one window of the budget',
    of: ({ budget }) => budget.requests,
  },
  {
    name: 'budget_window_seconds',
    help: 'How long the window of the budget is',
    of: ({ budget }) => seconds(budget.per_ms),
  },
  {
    name: 'budget_used_requests',
    help: 'Requests of the budget that are taken now',
    of: ({ budget }) => budget.used,
  },
  {
    name: 'concurrent_requests_limit',
    help: 'So many requests may be under way at once',
    of: ({ budget }) => budget.concurrency,
  },
  {
    name: 'in_flight_requests',
    help: 'Requests that are under way now',
    of: ({ budget }) => budget.in_flight,
  },
  {
    name: 'next_request_timestamp_seconds',
    help: 'When the next request is due, in seconds since 1970; none: nothing waits for one, or it waits for an answer',
    of: ({ next }) => (next === null || next.at === null ? null : timestamp(next.at)),
  },
  {
    name: 'next_request_delayed',
    help: '1: the next request is later than it should be, because of the budget or a pause of the upstream; 0: it is not',
    of: ({ next }) => Number(next !== null && next.held_by !== null),
  },
];

/** Gives back what brings them up to date. */
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

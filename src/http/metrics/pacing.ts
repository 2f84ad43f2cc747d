import { Gauge, type Registry } from 'prom-client';
import type { UpstreamPacing } from '../../monitor/monitor.ts';
import { type PacingBody, pacingBodyOf } from '../pacing.ts';

type Measure = {
  name: string;
  help: string;
  /** null: not known, so there is no sample. */
  of: (pacing: PacingBody) => number | null;
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
    name: 'clock_used',
    help: '1: it is known when blocks become final, and asked then; 0: each is asked by its age',
    of: ({ mode }) => Number(mode !== 'by_age'),
  },
  {
    name: 'cohorts_used',
    help: '1: few are asked, and the others when one of those is final; 0: each is asked by itself',
    of: ({ mode }) => Number(mode === 'cohorts'),
  },
  {
    name: 'clock_period_seconds',
    help: 'How often a block becomes final; none: not known',
    of: ({ clock }) => clock && seconds(clock.period_ms),
  },
  {
    name: 'next_block_from_timestamp_seconds',
    help: 'The next block becomes final not before this, in seconds since 1970; none: not known',
    of: ({ clock }) => clock && timestamp(clock.next_from),
  },
  {
    name: 'next_block_until_timestamp_seconds',
    help: 'The next block becomes final by then, in seconds since 1970; none: not known',
    of: ({ clock }) => clock && timestamp(clock.next_until),
  },
  {
    name: 'least_age_seconds',
    help: 'The time to finality: none of the last became final younger than this; none: not known',
    of: ({ least_age_ms }) => least_age_ms && seconds(least_age_ms),
  },
  {
    name: 'group_size_submissions',
    help: 'How many become final at once, on average; 0: not known',
    of: ({ group_size }) => group_size,
  },
  {
    name: 'in_line_submissions',
    help: 'Open ones that are expected to become final in the order of tracking',
    of: ({ in_line }) => in_line,
  },
  {
    name: 'scout_submissions',
    help: 'How many at the head of the line are asked at every block',
    of: ({ scouts }) => scouts,
  },
  {
    name: 'disorder_ratio',
    help: 'How often one in line is overtaken rather than final in turn, 0 to 1',
    of: ({ disorder }) => disorder,
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
    name: 'next_request_held',
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
    const bodies = upstreams.map(pacingBodyOf);
    for (const { gauge, of } of gauges) {
      gauge.reset();
      for (const body of bodies) {
        const value = of(body);
        if (value !== null) gauge.set({ upstream: body.upstream }, value);
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

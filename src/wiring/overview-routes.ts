import { z } from 'zod';
import { operations } from '../http/problems.ts';
import { type TypedServer, timeSchema } from '../http/typed-server.ts';
import { type Clock, iso, isoOrNull } from '../lib/clock.ts';
import type { DurationHistogram } from '../lib/duration-histogram.ts';
import { requestsPerSubmissionSchema, upstreamStateSchema } from '../polling/pacing-route.ts';
import type { Watcher } from '../polling/watcher.ts';
import {
  FinalitySum,
  type FinalitySums,
  type LedgerStats,
  SUM_UNITS,
  type SumUnit,
  startOf,
} from '../submissions/ledger-stats.ts';
import { STATUSES, type Status } from '../submissions/submission.ts';
import type { Readiness } from './health-routes.ts';

const RANGES = {
  '15m': { unit: 'minute', steps: 15 },
  '1h': { unit: 'minute', steps: 60 },
  '24h': { unit: 'hour', steps: 24 },
  '7d': { unit: 'hour', steps: 7 * 24 },
  '30d': { unit: 'day', steps: 30 },
  '90d': { unit: 'day', steps: 90 },
} as const satisfies Record<string, { unit: SumUnit; steps: number }>;
type Range = keyof typeof RANGES;

const rangeSchema = z
  .enum(Object.keys(RANGES) as Range[])
  .describe('Time up to now, in steps of minutes, hours or days (UTC)')
  .meta({ id: 'OverviewRange' });

const seconds = z.number().describe('Seconds');
const count = z.int();
const statusCountsSchema = z
  .object(
    Object.fromEntries(STATUSES.map((status) => [status, count])) as Record<Status, typeof count>,
  )
  .describe('Number of submissions by status')
  .meta({ id: 'StatusCounts' });
const spread = z
  .object({ p50: seconds, p90: seconds, p99: seconds })
  .describe('Seconds, exact to 5 %')
  .meta({ id: 'Spread' });
const lagSpread = spread
  .extend({
    count: count.describe('Number of submissions for which it is known'),
    from_chain: count.describe(
      'Those of them whose time of finality a node of the chain announced; the others are estimates',
    ),
  })
  .describe('Seconds, exact to 5 %')
  .meta({ id: 'OverviewDetectionLag' });

const sums = {
  finalized: count.describe('Submissions found final'),
  time_to_finality_s: spread
    .nullable()
    .describe('From tracking until found final; null if none was'),
  detection_lag_s: lagSpread
    .nullable()
    .describe(
      'Time from finality to its detection. null while nothing is learned: without a known slot, the first ten submissions have no estimate',
    ),
  requests_per_submission: requestsPerSubmissionSchema,
};
const stepSchema = z
  .object({ at: timeSchema.describe('Start of the step'), ...sums })
  .describe('A minute, an hour or a day')
  .meta({ id: 'OverviewStep' });
const totalSchema = z.object(sums).describe('Of the whole range').meta({ id: 'OverviewTotal' });

const SUMS_EXAMPLE = {
  finalized: 7_201,
  time_to_finality_s: { p50: 52.4, p90: 62.2, p99: 71.6 },
  detection_lag_s: { count: 7_201, from_chain: 7_180, p50: 0.31, p90: 0.68, p99: 1.12 },
  requests_per_submission: 1.5,
};

const overviewSchema = z
  .object({
    at: timeSchema.describe('Current time of the server'),
    submissions: statusCountsSchema,
    range: rangeSchema,
    steps: z
      .array(stepSchema)
      .describe('The steps of the range, oldest first; the newest is incomplete'),
    total: totalSchema,
    upstreams: z.array(
      z.object({
        name: z.string(),
        state: upstreamStateSchema,
      }),
    ),
    deliveries: z.object({
      waiting: count.describe('Not delivered yet'),
      failing: count.describe('Of these, those that wait for a retry after a failed attempt'),
      dead: count.describe('Dead letters, which can be replayed'),
      oldest_waiting_at: timeSchema
        .nullable()
        .describe('Time since which the oldest one has waited; null if none waits'),
    }),
    workers: count.nullable().describe('Live workers; null without Redis'),
  })
  .describe('The current state, and what became final in a range of time')
  .meta({
    id: 'Overview',
    examples: [
      {
        at: '2026-01-02T03:04:35.123Z',
        submissions: {
          tracking: 12,
          pending: 138,
          failing: 1,
          finalized: 48_211,
          failed: 3,
          unknown: 2,
          rejected: 0,
          expired: 0,
          cancelled: 4,
        },
        range: '1h',
        steps: [{ at: '2026-01-02T03:04:00.000Z', ...SUMS_EXAMPLE }],
        total: SUMS_EXAMPLE,
        upstreams: [
          {
            name: 'default',
            state: 'up',
          },
        ],
        deliveries: {
          waiting: 3,
          failing: 1,
          dead: 0,
          oldest_waiting_at: '2026-01-02T03:04:04.500Z',
        },
        workers: null,
      },
    ],
  });

const OPERATIONS = operations('operations', {
  getOverview: {
    summary: 'Get the current state, and what became final in a range of time',
    querystring: z.strictObject({
      range: rangeSchema.default('1h').describe('What `steps` and `total` are about'),
    }),
    response: { 200: overviewSchema },
  },
});

export function registerOverview(
  app: TypedServer,
  deps: {
    ledger: { stats: LedgerStats; sums: FinalitySums };
    watcher: Watcher;
    clock: Clock;
    health: () => Readiness;
  },
): void {
  const { ledger, watcher, clock, health } = deps;
  app.get(
    '/v1/overview',
    { config: { roles: ['service', 'operator'] }, schema: OPERATIONS.getOverview },
    async (request) => {
      const { range } = request.query;
      const now = clock.now();
      const { submissions, deliveries } = ledger.stats.counts();
      return {
        at: iso(now),
        submissions,
        range,
        ...stepsOf(ledger.sums, range, now),
        upstreams: watcher.pacing().map(({ upstream: name, state }) => ({ name, state })),
        deliveries: {
          waiting: deliveries.waiting,
          failing: deliveries.failing,
          dead: deliveries.dead,
          oldest_waiting_at: isoOrNull(deliveries.oldestWaitingAt),
        },
        workers: health().redis?.workers.length ?? null,
      };
    },
  );
}

function stepsOf(sums: FinalitySums, range: Range, now: number) {
  const { unit, steps } = RANGES[range];
  const stepMs = SUM_UNITS[unit];
  const until = startOf(unit, now) + stepMs;
  const from = until - steps * stepMs;
  const byStart = sums.read(unit, { from, until });
  const starts = Array.from({ length: steps }, (_, index) => from + index * stepMs);
  return {
    steps: starts.map((start) => ({
      at: iso(start),
      ...toBody(byStart.get(start) ?? new FinalitySum()),
    })),
    total: toBody(FinalitySum.of(byStart.values())),
  };
}

function toBody(sum: FinalitySum) {
  const { finalized, timeToFinality, lag, lagsByChain } = sum;
  const lags = toSpread(lag);
  return {
    finalized,
    time_to_finality_s: toSpread(timeToFinality),
    detection_lag_s: lags && { count: lag.count, from_chain: lagsByChain, ...lags },
    requests_per_submission: sum.requestsPerSubmission,
  };
}

/** Rounds to digits that are significant at a precision of 5 %. */
function toSpread(histogram: DurationHistogram) {
  const at = (share: number) => Number(((histogram.percentile(share) ?? 0) / 1_000).toPrecision(3));
  return histogram.count === 0 ? null : { p50: at(0.5), p90: at(0.9), p99: at(0.99) };
}

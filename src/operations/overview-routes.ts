import { z } from 'zod';
import { operations } from '../http/problems.ts';
import { timeSchema } from '../http/query.ts';
import type { TypedServer } from '../http/typed-server.ts';
import type { Clock } from '../lib/clock.ts';
import { iso } from '../lib/timestamps.ts';
import { upstreamStateSchema } from '../polling/pacing-route.ts';
import type { Watcher } from '../polling/watcher.ts';
import { STATUSES, type Status } from '../submissions/submission.ts';
import { statusSchema } from '../submissions/submission-body.ts';
import type { Readiness } from './health-routes.ts';
import type { LedgerStats } from './ledger-stats.ts';
import { HOUR_MS, type RollingHour } from './metrics/rolling-hour.ts';

const OLDEST_OPEN = 10;

const seconds = z.number().describe('Seconds');
const count = z.int();
const statusCountsSchema = z
  .object(
    Object.fromEntries(STATUSES.map((status) => [status, count])) as Record<Status, typeof count>,
  )
  .describe('Number of submissions by status')
  .meta({ id: 'StatusCounts' });
const spread = z
  .object({ mean: seconds, p50: seconds, p90: seconds, p99: seconds })
  .describe('Seconds, exact to 1 %')
  .meta({ id: 'Spread' });
const lagSpread = spread
  .extend({
    count: count.describe('Number of submissions for which it is known'),
    from_chain: count.describe(
      'Those of them whose time of finality a node of the chain announced; the others are estimates',
    ),
  })
  .describe('Seconds, exact to 1 %')
  .meta({ id: 'OverviewDetectionLag' });

const minuteSchema = z
  .object({
    at: timeSchema.describe('Start of the minute'),
    finalized: count.describe('Submissions found final'),
    time_to_finality_p50_s: seconds
      .nullable()
      .describe('From tracking until found final; null if none was'),
    time_to_finality_p99_s: seconds.nullable(),
    detection_lag_p50_s: seconds.nullable().describe('See last_hour; null if not known'),
    detection_lag_p99_s: seconds.nullable(),
    polls: count
      .nullable()
      .describe('Responses of the upstreams; null if this server was not running'),
  })
  .describe('One of the last 60 minutes')
  .meta({ id: 'OverviewMinute' });

const hourSchema = z
  .object({
    finalized: count,
    time_to_finality_s: spread.nullable(),
    detection_lag_s: lagSpread
      .nullable()
      .describe(
        'Time from finality to its detection. null while nothing is learned: without a known slot, the first ten submissions have no estimate',
      ),
    polls_per_submission: z
      .number()
      .nullable()
      .describe('Mean number of requests per submission found final'),
    fixed_5s_polls_per_submission: z.number().nullable().describe('The same with a poll every 5 s'),
  })
  .describe('Totals of an hour')
  .meta({ id: 'OverviewHour' });

const overviewSchema = z
  .object({
    at: timeSchema.describe('Current time of the server'),
    submissions: statusCountsSchema,
    per_minute: z
      .array(minuteSchema)
      .describe('The last 60 minutes, oldest first; the newest is incomplete'),
    last_hour: hourSchema.describe('Totals of the same 60 minutes'),
    hour_before: hourSchema.describe('Totals of the 60 minutes before'),
    upstreams: z.array(
      z.object({
        name: z.string(),
        state: upstreamStateSchema,
        tracked: count.describe('Submissions being polled'),
        in_flight: count.describe('Requests in flight'),
        budget: z.object({
          limit: count.describe('Requests per window'),
          window_ms: z.number().describe('Length of the window'),
          used: count.describe('Requests used in the current window'),
        }),
      }),
    ),
    oldest_open: z
      .array(
        z.object({
          submission_id: z.string(),
          upstream: z.string(),
          status: statusSchema,
          tracked_at: timeSchema,
          age_s: seconds,
        }),
      )
      .describe('Oldest open submissions, at most 10, oldest first'),
    deliveries: z.object({
      waiting: count.describe('Not delivered yet'),
      failing: count.describe('Of these, those that wait for a retry after a failed attempt'),
      dead: count.describe('Dead letters, which can be replayed'),
      oldest_waiting_at: timeSchema
        .nullable()
        .describe('Time since which the oldest one has waited; null if none waits'),
    }),
    readers: count.describe('Readers of the live feed'),
    workers: count.nullable().describe('Live workers; null without Redis'),
  })
  .describe('The current state and the last hour')
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
        per_minute: [
          {
            at: '2026-01-02T03:04:00.000Z',
            finalized: 120,
            time_to_finality_p50_s: 52.4,
            time_to_finality_p99_s: 71.6,
            detection_lag_p50_s: 0.31,
            detection_lag_p99_s: 1.12,
            polls: 181,
          },
        ],
        last_hour: {
          finalized: 7_201,
          time_to_finality_s: { mean: 53.1, p50: 52.4, p90: 62.2, p99: 71.6 },
          detection_lag_s: {
            count: 7_201,
            from_chain: 7_180,
            ...{ mean: 0.37, p50: 0.31, p90: 0.68, p99: 1.12 },
          },
          polls_per_submission: 1.5,
          fixed_5s_polls_per_submission: 11.1,
        },
        hour_before: {
          finalized: 6_984,
          time_to_finality_s: { mean: 52.8, p50: 52.1, p90: 61.9, p99: 70.4 },
          detection_lag_s: {
            count: 6_984,
            from_chain: 6_970,
            ...{ mean: 0.38, p50: 0.32, p90: 0.7, p99: 1.2 },
          },
          polls_per_submission: 1.5,
          fixed_5s_polls_per_submission: 11,
        },
        upstreams: [
          {
            name: 'default',
            state: 'up',
            tracked: 151,
            in_flight: 2,
            budget: { limit: 100, window_ms: 10_000, used: 12 },
          },
        ],
        oldest_open: [
          {
            submission_id: '6df2c1ce-b11a-4828-b2a6-62bf5b7cb325',
            upstream: 'default',
            status: 'failing',
            tracked_at: '2026-01-02T02:50:35.123Z',
            age_s: 840,
          },
        ],
        deliveries: {
          waiting: 3,
          failing: 1,
          dead: 0,
          oldest_waiting_at: '2026-01-02T03:04:34.900Z',
        },
        readers: 2,
        workers: null,
      },
    ],
  });

const OPERATIONS = operations('operations', {
  getOverview: {
    summary: 'Get the current state and statistics of the last hour',
    querystring: z.strictObject({}),
    response: { 200: overviewSchema },
  },
});

export function registerOverview(
  app: TypedServer,
  deps: {
    ledger: { stats: LedgerStats };
    watcher: Watcher;
    hour: RollingHour;
    clock: Clock;
    health: () => Readiness;
    readers: () => number;
  },
): void {
  const { ledger, watcher, hour, clock, health, readers } = deps;
  app.get(
    '/v1/overview',
    { config: { scopes: ['submissions:read'] }, schema: OPERATIONS.getOverview },
    async () => {
      const now = clock.now();
      const { submissions, oldestOpen, deliveries } = ledger.stats.counts(OLDEST_OPEN);
      return {
        at: iso(now),
        submissions,
        per_minute: hour.minutes(now),
        last_hour: hour.hour(now),
        hour_before: hour.hour(now - HOUR_MS),
        upstreams: watcher.pacing().map(({ upstream, state, tracked, inFlight, budget }) => ({
          name: upstream,
          state,
          tracked,
          in_flight: inFlight,
          budget: { limit: budget.requests, window_ms: budget.perMs, used: budget.used },
        })),
        oldest_open: oldestOpen.map(({ submissionId, upstream, status, trackedAt }) => ({
          submission_id: submissionId,
          upstream,
          status,
          tracked_at: iso(trackedAt),
          age_s: Math.max(0, now - trackedAt) / 1_000,
        })),
        deliveries: {
          waiting: deliveries.waiting,
          failing: deliveries.failing,
          dead: deliveries.dead,
          oldest_waiting_at:
            deliveries.oldestWaitingAt === null ? null : iso(deliveries.oldestWaitingAt),
        },
        readers: readers(),
        workers: health().redis?.workers.length ?? null,
      };
    },
  );
}

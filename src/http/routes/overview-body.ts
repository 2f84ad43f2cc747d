import { z } from 'zod';
import { STATUSES, type Status } from '../../domain/submission.ts';
import { timeSchema } from '../../domain/submission-body.ts';
import { iso } from '../../domain/timestamps.ts';
import type { DurationSummary, HourStats, MinuteStats } from '../../stats/rolling-hour.ts';
import type { Overview } from '../ports.ts';

const seconds = z.number().describe('Seconds');
const count = z.int();
const spread = z
  .object({ mean: seconds, p50: seconds, p90: seconds, p99: seconds })
  .describe('Seconds; p50, p90 and p99 are exact to 4 %');

const minuteSchema = z.object({
  at: timeSchema.describe('When the minute begins'),
  finalized: count.describe('So many were found final'),
  time_to_finality_p50_s: seconds.nullable().describe('From tracking until it was found final; null: none was'),
  time_to_finality_p99_s: seconds.nullable(),
  detection_lag_p50_s: seconds.nullable().describe('See last_hour; null: not known'),
  detection_lag_p99_s: seconds.nullable(),
  polls: count.nullable().describe('Answers of the upstreams; null: this server was not running'),
});

export const overviewSchema = z
  .object({
    at: timeSchema.describe('Now, by the clock of the server'),
    submissions: z
      .object(Object.fromEntries(STATUSES.map((status) => [status, count])) as Record<Status, typeof count>)
      .describe('How many there are of each status'),
    per_minute: z.array(minuteSchema).describe('The last 60 minutes, the oldest first; the newest is not over'),
    last_hour: z
      .object({
        finalized: count,
        time_to_finality_s: spread.nullable(),
        detection_lag_s: spread
          .nullable()
          .describe(
            'From finality until it was noticed, at most: since a poll found it, or another submission of its block, open. ' +
              'Known of what was found final since the server started',
          ),
        polls_per_submission: z.number().nullable().describe('Requests made for each that was found final'),
        fixed_5s_polls_per_submission: z
          .number()
          .nullable()
          .describe('Requests for the same ones if each were asked about every 5 s'),
      })
      .describe('The same minutes, all together'),
    upstreams: z.array(
      z.object({
        name: z.string(),
        state: z.enum(['closed', 'down', 'unauthorized']).describe('closed: it answers'),
        tracked: count.describe('Submissions that are being asked about'),
        in_flight: count.describe('Requests under way'),
        budget: z.object({
          limit: count.describe('So many requests are granted'),
          window_ms: z.number().describe('in this time'),
          used: count.describe('Of those, taken now'),
        }),
      }),
    ),
    oldest_open: z
      .array(
        z.object({
          submission_id: z.string(),
          upstream: z.string(),
          status: z.enum(STATUSES),
          tracked_at: timeSchema,
          age_s: seconds,
        }),
      )
      .describe('Those that have been open for longest, at most 10, the oldest first'),
    deliveries: z.object({
      waiting: count.describe('Not delivered yet'),
      dead: count.describe('Given up; they can be replayed'),
      oldest_waiting_at: timeSchema
        .nullable()
        .describe('Since when the oldest of those that wait does; null: none waits'),
    }),
    readers: count.describe('Readers of the live feed'),
    workers: count.nullable().describe('Workers that are alive; null: there is no Redis'),
  })
  .describe('What is going on, and how the last hour was')
  .meta({
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
          detection_lag_s: { mean: 0.37, p50: 0.31, p90: 0.68, p99: 1.12 },
          polls_per_submission: 1.5,
          fixed_5s_polls_per_submission: 11.1,
        },
        upstreams: [
          {
            name: 'default',
            state: 'closed',
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
        deliveries: { waiting: 3, dead: 0, oldest_waiting_at: '2026-01-02T03:04:34.900Z' },
        readers: 2,
        workers: null,
      },
    ],
  });

export function toOverviewBody(
  { submissions, minutes, hour, upstreams, oldestOpen, deliveries, workers }: Overview,
  { now, readers }: { now: number; readers: number },
): z.output<typeof overviewSchema> {
  return {
    at: iso(now),
    submissions,
    per_minute: minutes.map(minuteBodyOf),
    last_hour: hourBodyOf(hour),
    upstreams: upstreams.map(({ upstream, state, tracked, inFlight, budget }) => ({
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
      age_s: inSeconds(Math.max(0, now - trackedAt)),
    })),
    deliveries: {
      waiting: deliveries.waiting,
      dead: deliveries.dead,
      oldest_waiting_at: deliveries.oldestWaitingAt === null ? null : iso(deliveries.oldestWaitingAt),
    },
    readers,
    workers,
  };
}

function minuteBodyOf({ at, finalized, timeToFinality, detectionLag, polls }: MinuteStats) {
  return {
    at: iso(at),
    finalized,
    time_to_finality_p50_s: timeToFinality && inSeconds(timeToFinality.p50Ms),
    time_to_finality_p99_s: timeToFinality && inSeconds(timeToFinality.p99Ms),
    detection_lag_p50_s: detectionLag && inSeconds(detectionLag.p50Ms),
    detection_lag_p99_s: detectionLag && inSeconds(detectionLag.p99Ms),
    polls,
  };
}

function hourBodyOf({ finalized, timeToFinality, detectionLag, pollsEach, fixedPollsEach }: HourStats) {
  return {
    finalized,
    time_to_finality_s: timeToFinality && spreadBodyOf(timeToFinality),
    detection_lag_s: detectionLag && spreadBodyOf(detectionLag),
    polls_per_submission: pollsEach && rounded(pollsEach),
    fixed_5s_polls_per_submission: fixedPollsEach && rounded(fixedPollsEach),
  };
}

function spreadBodyOf({ meanMs, p50Ms, p90Ms, p99Ms }: DurationSummary) {
  return { mean: inSeconds(meanMs), p50: inSeconds(p50Ms), p90: inSeconds(p90Ms), p99: inSeconds(p99Ms) };
}

function inSeconds(ms: number): number {
  return Math.round(ms) / 1_000;
}

function rounded(value: number): number {
  return Math.round(value * 100) / 100;
}

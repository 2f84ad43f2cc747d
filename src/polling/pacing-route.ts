import { z } from 'zod';
import { operations } from '../http/problems.ts';
import { type TypedServer, timeSchema } from '../http/typed-server.ts';
import { type Clock, iso } from '../lib/clock.ts';
import { type FinalitySums, LEAST_FINALIZED } from '../submissions/ledger-stats.ts';
import { UPSTREAM_STATES } from '../submissions/upstream.ts';
import { chainSchema, toChainBody } from './chain/chain-body.ts';
import type { ChainStatus } from './chain/port.ts';
import { MAX_RECENT_POLLS, type UpstreamPacing, type Watcher } from './watcher.ts';

export const upstreamStateSchema = z
  .enum(UPSTREAM_STATES)
  .describe(
    'up: it responds; down: it does not; unauthorized: it refuses the key; paused: it asked for no requests for more than 30 s, with 429 or Retry-After',
  )
  .meta({ id: 'UpstreamState' });

export const upstreamReasonSchema = z
  .string()
  .nullable()
  .describe('The newest response of an outage or a pause; null if there is none');

export const pausedUntilSchema = timeSchema
  .nullable()
  .describe('While the state is paused: until when no request is sent; otherwise null');

export const requestsPerSubmissionSchema = z
  .number()
  .nullable()
  .describe(
    `Polls sent for submissions until they became final, divided by their number; null for fewer than ${LEAST_FINALIZED} submissions`,
  );

const modeSchema = z
  .enum(['heads', 'slots', 'age'])
  .describe(
    'heads: a node of the chain announces each final block, and polls follow it; slots: submissions become final in groups, with the slots of a chain, so that a poll of one is evidence about the others; age: no period is known, so each submission is polled by its age',
  )
  .meta({ id: 'PacingMode' });

/** For how long polls are shown. */
const RECENT_MS = 120_000;

const recentPollSchema = z
  .object({
    at: timeSchema.describe('When the response arrived'),
    duration_ms: z.number(),
    result: z
      .enum([
        ...['pending', 'finalized', 'error', 'not_found'],
        ...['rejected', 'unauthorized', 'throttled', 'unavailable'],
      ] as const)
      .describe(
        'pending, finalized, error: the state that the upstream reports; not_found, rejected: it does not know or accept the id; unauthorized: it refuses the key; throttled: it requests a pause; unavailable: no usable response',
      )
      .meta({ id: 'PollResult' }),
  })
  .describe('A poll since the start of the server')
  .meta({ id: 'RecentPoll' });

const upstreamSchema = z
  .object({
    upstream: z.string(),
    state: upstreamStateSchema,
    reason: upstreamReasonSchema,
    paused_until: pausedUntilSchema,
    tracked: z.int().describe('Submissions being polled'),
    lag_price: z.number().describe('Requests that one second of lag is worth, as configured'),
    mode: modeSchema,
    slot: z
      .object({
        period_ms: z.number().describe('Length of a slot'),
        next_event_at: timeSchema.describe(
          'Median of the predicted time at which the next group becomes final',
        ),
        empty_share: z.number().describe('Share of slots in which nothing becomes final, 0 to 1'),
      })
      .nullable()
      .describe('null if no slots are known'),
    chain: chainSchema.nullable().describe('null if no chain is configured'),
    observed: z
      .int()
      .describe(
        'Recently finalized submissions this was learned from; 0 for the initial assumption',
      ),
    curve: z
      .array(
        z.object({
          after_ms: z.number().describe('Time since tracking'),
          probability: z
            .number()
            .describe('Probability that the submission is final by then, 0 to 1'),
        }),
      )
      .describe(
        'Learned distribution of finality time for a submission tracked now; empty if there is none yet',
      ),
    polls_ms: z
      .array(z.number())
      .describe(
        'Poll times of that submission in ms since tracking, without evidence from other submissions',
      ),
    last_hour: z
      .object({
        finalized: z.int().describe('Submissions found final'),
        requests_per_submission: requestsPerSubmissionSchema,
        mean_lag_s: z
          .number()
          .nullable()
          .describe(
            `Mean time from finality to its detection, exact to 5 %; null if it is known of fewer than ${LEAST_FINALIZED} submissions`,
          ),
      })
      .describe('What became final in this minute and the 59 before it, as in the overview'),
    budget: z.object({
      requests: z.int().describe('Requests per window'),
      per_ms: z.number().describe('Length of the window in ms'),
      used: z.int().describe('Requests used in the current window'),
      concurrency: z.int().describe('Limit of requests in flight'),
      in_flight: z.int().describe('Requests in flight'),
    }),
    recent_polls: z
      .array(recentPollSchema)
      .describe(
        `Polls of the last ${RECENT_MS / 60_000} minutes, oldest first; those since the start of the server, the newest ${MAX_RECENT_POLLS.toLocaleString('en')} at most`,
      ),
  })
  .describe('The pacing of one upstream')
  .meta({ id: 'UpstreamPacing' });

type PacingBody = Omit<z.output<typeof upstreamSchema>, 'chain' | 'last_hour' | 'recent_polls'>;

const pacingSchema = z
  .object({
    at: timeSchema.describe('Current time of the server'),
    upstreams: z.array(upstreamSchema),
  })
  .describe('The pacing of all upstreams')
  .meta({ id: 'Pacing' });

const OPERATIONS = operations('operations', {
  getPacing: {
    summary:
      'Get the learned distribution of finality time, the poll schedule and the requests per submission of each upstream',
    querystring: z.strictObject({}),
    response: { 200: pacingSchema },
  },
});

export function registerPacing(
  app: TypedServer,
  {
    watcher,
    ledger,
    chainOf,
    clock,
  }: {
    watcher: Watcher;
    ledger: { sums: FinalitySums };
    chainOf: (upstream: string) => ChainStatus | null;
    clock: Clock;
  },
): void {
  app.get(
    '/v1/pacing',
    { config: { roles: ['service', 'operator'] }, schema: OPERATIONS.getPacing },
    async () => {
      const now = clock.now();
      return {
        at: iso(now),
        upstreams: watcher.pacing().map((pacing) => {
          const chain = chainOf(pacing.upstream);
          const lastHour = ledger.sums.lastHour(pacing.upstream, now);
          return {
            ...toPacingBody(pacing),
            chain: chain && toChainBody(chain),
            last_hour: {
              finalized: lastHour.finalized,
              requests_per_submission: lastHour.requestsPerSubmission,
              mean_lag_s: lastHour.meanLagS,
            },
            recent_polls: watcher
              .pollsSince(pacing.upstream, now - RECENT_MS)
              .map(({ at, durationMs, result }) => {
                return { at: iso(at), duration_ms: Math.round(durationMs), result };
              }),
          };
        }),
      };
    },
  );
}

function toPacingBody({ description, budget, ...health }: UpstreamPacing): PacingBody {
  const { mode, slot, observed, lagPrice, curve, pollsMs } = description;
  return {
    upstream: health.upstream,
    state: health.state,
    reason: health.reason,
    paused_until: health.pause && iso(health.pause.until),
    tracked: health.tracked,
    lag_price: lagPrice,
    mode,
    slot: slot && {
      period_ms: Math.round(slot.periodMs),
      next_event_at: iso(slot.nextEventAt),
      empty_share: rounded(slot.emptyShare),
    },
    observed,
    curve: curve.map(({ afterMs, probability }) => ({
      after_ms: Math.round(afterMs),
      probability: rounded(probability, 4),
    })),
    polls_ms: pollsMs.map(Math.round),
    budget: {
      requests: budget.requests,
      per_ms: budget.perMs,
      used: budget.used,
      concurrency: budget.concurrency,
      in_flight: health.inFlight,
    },
  };
}

function rounded(value: number, digits = 3): number {
  return Math.round(value * 10 ** digits) / 10 ** digits;
}

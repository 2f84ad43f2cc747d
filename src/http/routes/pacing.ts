import type { FastifyInstance } from 'fastify';
import type { ZodTypeProvider } from 'fastify-type-provider-zod';
import { z } from 'zod';
import type { Clock } from '../../domain/clock.ts';
import { timeSchema } from '../../domain/submission-body.ts';
import { iso } from '../../domain/timestamps.ts';
import type { PollingCost } from '../../pacing/policy.ts';
import type { UpstreamPacing } from '../../watch/watcher.ts';
import { problemResponse } from '../problems.ts';

const cost = z.object({
  requests: z.number().describe('Per submission'),
  lag_s: z.number().describe('Mean seconds between finality and the poll that finds it'),
});

const upstreamSchema = z.object({
  upstream: z.string(),
  state: z.enum(['closed', 'down', 'unauthorized']).describe('closed: it answers'),
  tracked: z.int().describe('Submissions that are being asked about'),
  lag_price: z.number().describe('Requests that one second of lag is worth, as set'),
  mode: z
    .enum(['slots', 'age'])
    .describe(
      'slots: submissions become final with the slots of a chain, in groups, so one that is polled tells about the others; age: nothing periodic is known, so each is polled by its age',
    ),
  slot: z
    .object({
      period_ms: z.number().describe('How long a slot lasts'),
      next_event_at: timeSchema.nullable().describe('Median of when the next group becomes final; null: not known'),
      empty_share: z.number().describe('Share of the slots in which nothing becomes final, 0 to 1'),
    })
    .nullable()
    .describe('null: no slots are known'),
  senders: z
    .int()
    .nullable()
    .describe('Serial senders of the upstream, as far as can be told; null: it sends all at once'),
  observed: z.int().describe('Finalized submissions from which this was learned lately; 0: it is the initial belief'),
  curve: z
    .array(
      z.object({
        after_ms: z.number().describe('Time since tracking'),
        probability: z.number().describe('that the submission is final by then, 0 to 1'),
      }),
    )
    .describe('The learned distribution of finality time, of a submission tracked now; empty: there is none yet'),
  polls_ms: z
    .array(z.number())
    .describe('When that submission would be polled, in ms since tracking, if no other one told anything meanwhile'),
  cost: z
    .object({
      current: cost.nullable().describe('Measured over the newest finalized submissions; null: there is none yet'),
      lower_bound: cost
        .nullable()
        .describe('The least that is possible with this distribution for a submission by itself; null: not known'),
      every_five_seconds: cost.nullable().describe('Polling every 5 s with this distribution; null: not known'),
    })
    .describe('What polling costs per submission'),
  budget: z.object({
    requests: z.int().describe('So many requests are granted'),
    per_ms: z.number().describe('in this time'),
    used: z.int().describe('Of those, taken now'),
    concurrency: z.int().describe('So many may be under way at once'),
    in_flight: z.int().describe('Of those, under way now'),
  }),
  next: z
    .object({
      submission_id: z.string(),
      at: timeSchema.nullable().describe('null: as soon as a request in flight is answered'),
      reason: z
        .enum(['slot', 'scout', 'age', 'net', 'recheck', 'probe'])
        .describe(
          'slot: it is likely to become final in this slot; scout: it is polled first, on behalf of all that are likely to become final with it; age: no slots are known, so its age decides; net: it was left unpolled for the longest time allowed; recheck: it is final, and polled once more; probe: the upstream is out, and this finds out whether it is back',
        ),
      held_by: z
        .enum(['budget', 'pause'])
        .nullable()
        .describe(
          'Why it is later than it should be. budget: no place is free; pause: the upstream wants no requests until then',
        ),
    })
    .nullable()
    .describe('The next poll, as far as is known now; null: nothing waits for one'),
});

export type PacingBody = z.output<typeof upstreamSchema>;

const pacingSchema = z
  .object({ at: timeSchema.describe('Now, by the clock of the server'), upstreams: z.array(upstreamSchema) })
  .meta({
    examples: [
      {
        at: '2026-01-02T03:04:05.123Z',
        upstreams: [
          {
            upstream: 'default',
            state: 'closed',
            tracked: 150,
            lag_price: 1,
            mode: 'slots',
            slot: { period_ms: 20_000, next_event_at: '2026-01-02T03:04:12.400Z', empty_share: 0.03 },
            senders: null,
            observed: 200,
            curve: [
              { after_ms: 21_000, probability: 0.02 },
              { after_ms: 32_000, probability: 0.48 },
              { after_ms: 42_000, probability: 0.96 },
              { after_ms: 62_000, probability: 0.99 },
            ],
            polls_ms: [24_000, 43_500, 64_000],
            cost: {
              current: { requests: 1.6, lag_s: 0.9 },
              lower_bound: { requests: 1.58, lag_s: 0.72 },
              every_five_seconds: { requests: 7.1, lag_s: 2.5 },
            },
            budget: { requests: 100, per_ms: 10_000, used: 12, concurrency: 16, in_flight: 2 },
            next: {
              submission_id: '6df2c1ce-b11a-4828-b2a6-62bf5b7cb325',
              at: '2026-01-02T03:04:10.500Z',
              reason: 'scout',
              held_by: null,
            },
          },
        ],
      },
    ],
  });

export function registerPacing(
  instance: FastifyInstance,
  { pacing, clock }: { pacing: () => UpstreamPacing[]; clock: Clock },
): void {
  const app = instance.withTypeProvider<ZodTypeProvider>();
  app.get(
    '/v1/pacing',
    {
      schema: {
        operationId: 'getPacing',
        summary: 'The learned distribution of finality time of each upstream, its polls, and what they cost',
        tags: ['operations'],
        querystring: z.strictObject({}),
        response: { 200: pacingSchema, 400: problemResponse, 401: problemResponse, 403: problemResponse },
      },
    },
    async () => ({ at: iso(clock.now()), upstreams: pacing().map(toPacingBody) }),
  );
}

export function toPacingBody({ description, budget, next, ...health }: UpstreamPacing): PacingBody {
  const { mode, slot, senders, observed, lagPrice, curve, pollsMs } = description;
  return {
    upstream: health.upstream,
    state: health.state,
    tracked: health.tracked,
    lag_price: lagPrice,
    mode,
    slot: slot && {
      period_ms: Math.round(finite(slot.periodMs)),
      next_event_at: isTime(slot.nextEventAt) ? iso(slot.nextEventAt) : null,
      empty_share: rounded(share(slot.emptyShare)),
    },
    senders,
    observed,
    curve: curve
      .filter(({ afterMs, probability }) => Number.isFinite(afterMs) && Number.isFinite(probability))
      .map(({ afterMs, probability }) => ({
        after_ms: Math.round(afterMs),
        probability: rounded(share(probability), 4),
      })),
    polls_ms: pollsMs.filter(Number.isFinite).map(Math.round),
    cost: {
      current: costOf(description.current),
      lower_bound: costOf(description.lowerBound),
      every_five_seconds: costOf(description.everyFiveSeconds),
    },
    budget: {
      requests: budget.requests,
      per_ms: budget.perMs,
      used: budget.used,
      concurrency: budget.concurrency,
      in_flight: health.inFlight,
    },
    next: next && {
      submission_id: next.submissionId,
      at: next.at === null ? null : iso(next.at),
      reason: next.reason,
      held_by: next.heldBy,
    },
  };
}

/** 9999-12-31T23:59:59.999Z */
const LAST_MS = 253_402_300_799_999;

/** JSON has no infinity: a cost without a bound is not known. */
function costOf(cost: PollingCost | null): { requests: number; lag_s: number } | null {
  if (!cost || !Number.isFinite(cost.requests) || !Number.isFinite(cost.lagS)) return null;
  return { requests: rounded(cost.requests), lag_s: rounded(cost.lagS) };
}

/** Whether ISO 8601 can tell it in the usual form. */
function isTime(value: number): boolean {
  return value >= 0 && value < LAST_MS;
}

function finite(value: number): number {
  return Number.isFinite(value) ? value : 0;
}

function share(value: number): number {
  return Math.min(1, Math.max(0, finite(value)));
}

function rounded(value: number, digits = 3): number {
  return Math.round(value * 10 ** digits) / 10 ** digits;
}

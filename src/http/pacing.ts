import type { FastifyInstance } from 'fastify';
import type { ZodTypeProvider } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { iso } from '../monitor/iso.ts';
import type { UpstreamPacing } from '../monitor/monitor.ts';
import type { Clock } from '../monitor/ports.ts';
import { time } from '../monitor/submission-body.ts';
import { problemAnswer } from './problems.ts';

const upstreamSchema = z.object({
  upstream: z.string(),
  state: z.enum(['closed', 'down', 'unauthorized']).describe('closed: it answers'),
  tracked: z.int().describe('Submissions that are being asked about'),
  mode: z
    .enum(['cohorts', 'clock_only', 'by_age'])
    .describe(
      'cohorts: few are asked when a block becomes final, and the others when one of those is; clock_only: each is asked by itself, at blocks, because the order of tracking tells nothing; by_age: each is asked by its age, because the clock is not known',
    ),
  clock: z
    .object({
      period_ms: z.number().describe('How often a block becomes final'),
      next_from: time.describe('The next block becomes final between this'),
      next_until: time.describe('and this'),
    })
    .nullable()
    .describe('null: not known'),
  least_age_ms: z
    .number()
    .nullable()
    .describe('The time to finality: none of the last became final younger than this; null: not known'),
  group_size: z.number().describe('How many become final at once, on average; 0: not known'),
  in_line: z.int().describe('Open ones that are expected to become final in the order of tracking'),
  scouts: z.int().describe('How many at the head of that line are asked at every block'),
  disorder: z.number().describe('How often one in line is overtaken rather than final in turn, 0 to 1'),
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
      at: time.nullable().describe('null: as soon as a request that is under way has its answer'),
      reason: z
        .enum(['scout', 'sweep', 'alone', 'doubt', 'net', 'age', 'recheck', 'probe'])
        .describe(
          'scout: among the first in line, asked at the next block; sweep: its neighbour was found final; alone: the order tells nothing about it, so it is asked by itself at blocks; doubt: asked between two blocks, to see whether it is they that make final; net: it was left alone for the longest time allowed; age: by its age, because the clock is not known; recheck: it is final, and looked at once more; probe: the upstream is out, and this finds out whether it is back',
        ),
      held_by: z
        .enum(['budget', 'pause'])
        .nullable()
        .describe(
          'Why it is later than it should be. budget: no place is free; pause: the upstream wants no requests until then',
        ),
    })
    .nullable()
    .describe('The next question, as far as is known now; null: nothing waits for one'),
});

export type PacingBody = z.output<typeof upstreamSchema>;

const pacingSchema = z
  .object({ at: time.describe('Now, by the clock of the server'), upstreams: z.array(upstreamSchema) })
  .meta({
    examples: [
      {
        at: '2026-01-02T03:04:05.123Z',
        upstreams: [
          {
            upstream: 'default',
            state: 'closed',
            tracked: 150,
            mode: 'cohorts',
            clock: { period_ms: 20_000, next_from: '2026-01-02T03:04:10.200Z', next_until: '2026-01-02T03:04:10.500Z' },
            least_age_ms: 39_500,
            group_size: 40.2,
            in_line: 148,
            scouts: 2,
            disorder: 0.01,
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
        summary: 'What is learned about each upstream, and why the next request goes where it goes',
        tags: ['operations'],
        querystring: z.strictObject({}),
        response: { 200: pacingSchema, 400: problemAnswer, 401: problemAnswer, 403: problemAnswer },
      },
    },
    async () => ({ at: iso(clock.now()), upstreams: pacing().map(pacingBodyOf) }),
  );
}

export function pacingBodyOf({ description, budget, next, ...health }: UpstreamPacing): PacingBody {
  const { mode, periodMs, next: window, leastAgeMs, groupSize, inLine, scouts, disorder } = description;
  const isClockKnown = periodMs !== null && window !== null;
  return {
    upstream: health.upstream,
    state: health.state,
    tracked: health.tracked,
    mode,
    clock: isClockKnown
      ? { period_ms: Math.round(periodMs), next_from: iso(window.from), next_until: iso(window.until) }
      : null,
    least_age_ms: leastAgeMs === 0 ? null : Math.round(leastAgeMs),
    group_size: rounded(groupSize),
    in_line: inLine,
    scouts,
    disorder: rounded(disorder),
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

function rounded(value: number): number {
  return Math.round(value * 1_000) / 1_000;
}

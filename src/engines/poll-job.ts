import { z } from 'zod';
import type { Verdict } from '../monitor/classify.ts';

/** Internal: what travels between one server and its workers, which may be of another version. */
export const POLLS_QUEUE = 'dawatch-polls';
export const MAX_IDS_PER_JOB = 50;

/** A worker asks nothing later than a request's timeout and so much before the job expires: clocks are read, not shared. */
export const START_MARGIN_MS = 250;

/** No secrets: a worker has its own key for the upstream of that name. */
export const pollJobSchema = z.object({
  upstream: z.string().min(1).max(32),
  submission_ids: z.array(z.string().min(1).max(128)).min(1).max(MAX_IDS_PER_JOB),
  /** Of the server's life that handed it out; see RedisLink. */
  epoch: z.string().min(1).max(200),
  /** When its places in the budget are given to others, on the clock of Redis, epoch milliseconds. */
  expires_at: z.int(),
  /** How long the server lets a request take. */
  timeout_ms: z.number().positive(),
});
export type PollJob = z.output<typeof pollJobSchema>;

const short = z.string().max(10_000);
const answer = z.string().max(200_000);
const retryAfterMs = z.number().min(0).nullable();

const seen = { state: short, answer, blockNumber: z.number().nullable() };
const verdictSchema = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('pending'), error: short.nullable(), ...seen }),
  z.object({ kind: z.literal('finalized'), error: short.nullable(), ...seen }),
  z.object({ kind: z.literal('error'), state: short, error: short, answer }),
  z.object({ kind: z.literal('not_found'), error: short, ambiguous: z.boolean() }),
  z.object({ kind: z.literal('rejected'), error: short }),
  z.object({ kind: z.literal('unauthorized'), error: short }),
  z.object({ kind: z.literal('throttled'), error: short, retryAfterMs }),
  z.object({
    kind: z.literal('unavailable'),
    reason: z.enum(['timeout', 'network', 'too_large', 'http_status', 'refused', 'malformed']),
    error: short,
    retryAfterMs,
  }),
]) satisfies z.ZodType<Verdict>;

/** Why a worker surely sent nothing of a job, and nobody did before; `emptied`: Redis was, and with it the epoch is gone. */
const notAskedSchema = z.enum(['drained', 'upstream', 'timeout', 'late', 'redis', 'emptied']);
export type NotAsked = z.output<typeof notAskedSchema>;

const answeredSchema = z.object({ submission_id: z.string(), duration_ms: z.int().min(0), verdict: verdictSchema });
export type Answered = z.output<typeof answeredSchema>;

/** Some answers of a job, while it runs and as its return value. */
export const pollResultSchema = z.object({
  answers: z.array(answeredSchema).max(MAX_IDS_PER_JOB),
  not_asked: notAskedSchema.optional(),
});
export type PollResult = z.output<typeof pollResultSchema>;

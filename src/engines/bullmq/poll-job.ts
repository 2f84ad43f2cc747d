import { z } from 'zod';
import type { UpstreamResponse } from '../../domain/classify.ts';

/**
 * Internal: what one server and its workers exchange, which may be of other versions. The number counts incompatible formats:
 * a server and workers with different numbers share no queue, so that neither takes a job from the other and loses it.
 */
export const POLLS_FORMAT = 2;
export const POLLS_QUEUE = `dawatch-polls-${POLLS_FORMAT}`;
export const MAX_IDS_PER_JOB = 50;

/** A worker asks nothing later than a request's timeout and so much before the job expires: clocks are read, not shared. */
export const START_MARGIN_MS = 250;

/** Base64url of an HMAC; longer ones are not looked at. */
export const signatureSchema = z.string().max(100).optional();

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
  signature: signatureSchema,
});
export type PollJob = z.output<typeof pollJobSchema>;

/** What the signature of a job covers. With the job's id, a copy under another id is invalid. */
export function signedJob(jobId: string, job: PollJob): unknown {
  return [jobId, job.upstream, job.submission_ids, job.epoch, job.expires_at, job.timeout_ms];
}

/** Above what Node accepts as headers of one response. */
const header = z.string().max(65_536).nullable();
/** Twice the longest body that is read from an upstream: redacting a secret may lengthen it. */
const MAX_BODY_CHARS = 2 * 1024 * 1024;
export const MAX_DETAIL_CHARS = 10_000;

/** What one request to the upstream returned, before any classification. */
const responseSchema = z.discriminatedUnion('kind', [
  z.object({
    kind: z.literal('response'),
    httpStatus: z.int().min(100).max(999),
    retryAfter: header,
    date: header,
    body: z.string().max(MAX_BODY_CHARS),
  }),
  z.object({
    kind: z.literal('failure'),
    reason: z.enum(['timeout', 'network', 'too_large']),
    detail: z.string().max(MAX_DETAIL_CHARS),
  }),
]) satisfies z.ZodType<UpstreamResponse>;

/** Why a worker surely sent nothing of a job, and nobody did before; `emptied`: Redis was, and with it the epoch is gone. */
const notAskedSchema = z.enum(['drained', 'upstream', 'timeout', 'late', 'redis', 'emptied']);
export type NotPolled = z.output<typeof notAskedSchema>;

const polledSchema = z.object({
  submission_id: z.string().min(1).max(128),
  /** How long the request took. When it was sent is not reported: the server uses its own clock. */
  duration_ms: z.int().min(0),
  response: responseSchema,
});
export type Polled = z.output<typeof polledSchema>;

/** Responses to some polls of a job, while it runs and as its return value. */
export const pollResultSchema = z.object({
  polled: z.array(polledSchema).max(MAX_IDS_PER_JOB),
  not_asked: notAskedSchema.optional(),
  signature: signatureSchema,
});
export type PollResult = z.output<typeof pollResultSchema>;

/** The longest text of a result that is parsed: a body of the largest size whose characters are all escaped, and the rest. */
export const MAX_RESULT_CHARS = 16 * 1024 * 1024;

/** What the signature of a result covers. With the job's id and epoch, a result replayed for another job is invalid. */
export function signedResult(job: { jobId: string; epoch: string }, { polled, not_asked }: PollResult): unknown {
  const responses = polled.map(({ submission_id, duration_ms, response }) => [
    submission_id,
    duration_ms,
    response.kind === 'response'
      ? [response.httpStatus, response.retryAfter, response.date, response.body]
      : [response.reason, response.detail],
  ]);
  return [job.jobId, job.epoch, responses, not_asked ?? null];
}

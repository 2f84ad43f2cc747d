import { createHmac, timingSafeEqual } from 'node:crypto';
import { z } from 'zod';
import { type Classification, UNAVAILABLE_REASONS } from '../submissions/classify.ts';

/**
 * Version of the format of jobs and results. It is part of the queue name, so that a server and
 * workers with incompatible formats share no queue and lose no jobs.
 */
export const POLLS_FORMAT = 4;
export const POLLS_QUEUE = `dawatch-polls-${POLLS_FORMAT}`;
export const MAX_IDS_PER_JOB = 50;

/**
 * A worker starts no request later than the request timeout plus this margin before the job
 * expires.
 */
export const START_MARGIN_MS = 250;

/** Base64url of an HMAC. */
export const signatureSchema = z.string().max(100).optional();

/** Contains no secrets: a worker has its own API key for the upstream. */
export const pollJobSchema = z.object({
  upstream: z.string().min(1).max(32),
  submission_ids: z.array(z.string().min(1).max(128)).min(1).max(MAX_IDS_PER_JOB),
  /** Of the server process that created the job; see FencingTokenStore. */
  fencing_token: z.string().min(1).max(200),
  /** When its share of the request budget is released (clock of Redis, epoch milliseconds). */
  expires_at: z.int(),
  /** Request timeout of the server. */
  timeout_ms: z.number().positive(),
  signature: signatureSchema,
});
export type PollJob = z.output<typeof pollJobSchema>;

/**
 * The signed content of a job. It includes the job id, so that a copy with another id is invalid.
 */
export function signedJob(jobId: string, job: PollJob): unknown {
  return [
    jobId,
    job.upstream,
    job.submission_ids,
    job.fencing_token,
    job.expires_at,
    job.timeout_ms,
  ];
}

const text = z.string().max(1_000_000);

/** What the upstream answered about one submission. */
const answerSchema = z.discriminatedUnion('kind', [
  z.object({
    kind: z.enum(['pending', 'finalized']),
    state: text,
    error: text.nullable(),
    envelope: text,
    blockNumber: z.number().nullable(),
  }),
  z.object({ kind: z.literal('error'), state: text, error: text, envelope: text }),
  z.object({ kind: z.literal('not_found'), error: text, ambiguous: z.boolean() }),
  z.object({ kind: z.literal('rejected'), error: text }),
  z.object({ kind: z.literal('unauthorized'), error: text }),
  z.object({ kind: z.literal('throttled'), error: text, retryAfterMs: z.number().nullable() }),
  z.object({
    kind: z.literal('unavailable'),
    reason: z.enum(UNAVAILABLE_REASONS),
    error: text,
    retryAfterMs: z.number().nullable(),
  }),
]) satisfies z.ZodType<Classification>;

/**
 * Why no request of a job was sent, by this worker or before. `emptied`: Redis has no fencing
 * token.
 */
const notPolledSchema = z.enum(['drained', 'upstream', 'timeout', 'late', 'redis', 'emptied']);
export type NotPolled = z.output<typeof notPolledSchema>;

const polledSchema = z.object({
  submission_id: z.string().min(1).max(128),
  /** Duration of the request. The server sets the time of the observation by its own clock. */
  duration_ms: z.int().min(0),
  answer: answerSchema,
});
export type Polled = z.output<typeof polledSchema>;

export const workerNameSchema = z.string().regex(/^[\w.-]{1,300}$/);

/**
 * Responses to some polls of a job, with the name of the worker: sent while it runs, and as its
 * return value.
 */
export const pollResultSchema = z.object({
  polled: z.array(polledSchema).max(MAX_IDS_PER_JOB),
  not_polled: notPolledSchema.optional(),
  worker: workerNameSchema.optional(),
  signature: signatureSchema,
});
export type PollResult = z.output<typeof pollResultSchema>;

/** Maximum length of a result as JSON: a body of the maximum size with all characters escaped. */
export const MAX_RESULT_CHARS = 16 * 1024 * 1024;

/**
 * The signed content of a result. It includes the job id and fencing token, so that it is invalid
 * for another job.
 */
export function signedResult(
  job: { jobId: string; fencingToken: string },
  { polled, not_polled, worker }: PollResult,
): unknown {
  const responses = polled.map(({ submission_id, duration_ms, answer }) => [
    submission_id,
    duration_ms,
    Object.entries(answer).toSorted(([one], [other]) => (one < other ? -1 : 1)),
  ]);
  return [job.jobId, job.fencingToken, responses, not_polled ?? null, worker ?? null];
}

/** A signature for one purpose is invalid for every other. */
type Purpose = 'server' | 'worker' | 'job' | 'result';

/**
 * Why a signature is not accepted: it is missing, this side has no secret to verify it with, or the
 * secrets differ.
 */
export type SignatureProblem = 'unsigned' | 'no_secret' | 'other_secret';

/**
 * Signs and verifies what a server and its workers exchange through Redis (HMAC-SHA-256). Without a
 * secret nothing is signed, and only unsigned content is accepted.
 */
export class MessageSigner {
  readonly #secret: string | undefined;

  constructor(secret: string | undefined) {
    this.#secret = secret;
  }

  /**
   * Undefined without a secret. `content` is any JSON value with a fixed order of its members: best
   * a list.
   */
  sign(purpose: Purpose, content: unknown): string | undefined {
    return this.#secret === undefined
      ? undefined
      : hmac(this.#secret, purpose, content).toString('base64url');
  }

  /** Returns why a signature is not accepted; undefined: it is valid. */
  problemOf(
    purpose: Purpose,
    content: unknown,
    signature: string | undefined,
  ): SignatureProblem | undefined {
    if (this.#secret === undefined) return signature === undefined ? undefined : 'no_secret';
    if (signature === undefined) return 'unsigned';
    const given = Buffer.from(signature, 'base64url');
    const expected = hmac(this.#secret, purpose, content);
    const isValid = given.length === expected.length && timingSafeEqual(given, expected);
    return isValid ? undefined : 'other_secret';
  }
}

function hmac(secret: string, purpose: Purpose, content: unknown): Buffer {
  return createHmac('sha256', secret)
    .update(`dawatch:${purpose}:${JSON.stringify(content)}`)
    .digest();
}

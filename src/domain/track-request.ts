import { z } from 'zod';
import { DEEP_METADATA_REASON, isTooDeep } from './json.ts';
import {
  canonicalId,
  REACHABLE_ID_PATTERN,
  SUBMISSION_ID_PATTERN,
  type TrackRequest,
  UNREACHABLE_ID_REASON,
} from './submission.ts';

export const MAX_IDS_PER_REQUEST = 10_000;
const MAX_METADATA_BYTES = 4_096;
/** Every submission keeps its own copy. */
const MAX_METADATA_BYTES_IN_ALL = 4 * 1024 * 1024;
const MAX_CALLBACK_URL_CHARS = 2_048;
const MAX_LIMIT_S = 366 * 86_400;

export const submissionIdSchema = z
  .string()
  .regex(SUBMISSION_ID_PATTERN, 'a submission id is 1 to 128 printable ASCII characters without spaces')
  .describe(
    'The id that the upstream handed out. A UUID is compared and shown in lower case, any other id exactly as it is',
  )
  .meta({ examples: ['6df2c1ce-b11a-4828-b2a6-62bf5b7cb325'] });

/** One that may be tracked from now on. */
const newSubmissionIdSchema = submissionIdSchema.regex(REACHABLE_ID_PATTERN, UNREACHABLE_ID_REASON);

const secondsSchema = z.number().min(0).max(MAX_LIMIT_S);

/** What a client sends to have submissions tracked, over HTTP or a queue. */
export const trackBodySchema = z
  .strictObject({
    submission_id: newSubmissionIdSchema.optional(),
    submission_ids: z
      .array(newSubmissionIdSchema)
      .min(1)
      .max(MAX_IDS_PER_REQUEST)
      .optional()
      .describe(`Up to ${MAX_IDS_PER_REQUEST} ids; taken whole or not at all`),
    upstream: z.string().max(32).optional().describe('Which of the configured upstreams; "default" if absent'),
    deadline: z.iso
      .datetime({ offset: true })
      .optional()
      .describe('Until when it may become final, ISO 8601; then it ends as failed or expired'),
    unknown_grace_s: secondsSchema
      .optional()
      .describe(
        'Seconds for which "not found" only means "not yet", counting time in which the id was polled; at least 120 count',
      ),
    stuck_after_s: secondsSchema.optional().describe('Seconds after which it is told to be stuck while it is open'),
    metadata: z
      .record(z.string(), z.unknown())
      .refine((metadata) => !isTooDeep(metadata), { error: DEEP_METADATA_REASON, abort: true })
      .refine(fits, `metadata takes at most ${MAX_METADATA_BYTES} bytes of JSON`)
      .optional()
      .describe('Anything you want back with it; an object'),
    callback_url: z
      .string()
      .max(MAX_CALLBACK_URL_CHARS)
      .optional()
      .describe(
        'Where the events of these submissions are sent, signed with the secret of the webhook `callbacks`. What is tracked already keeps the one it has',
      ),
  })
  .refine((body) => (body.submission_id === undefined) !== (body.submission_ids === undefined), {
    error: 'exactly one of submission_id and submission_ids is needed',
  })
  .refine(fitsForAll, {
    path: ['metadata'],
    error: `metadata for so many ids takes more than ${MAX_METADATA_BYTES_IN_ALL} bytes in all: send less of it, or fewer ids at once`,
  })
  .meta({
    examples: [
      { submission_id: '6df2c1ce-b11a-4828-b2a6-62bf5b7cb325' },
      {
        submission_ids: ['6df2c1ce-b11a-4828-b2a6-62bf5b7cb325', '0c9e2d7a-1111-4222-8333-444455556666'],
        deadline: '2100-01-01T00:00:00Z',
        metadata: { order: 4711 },
      },
    ],
  });
export type TrackBody = z.output<typeof trackBodySchema>;

export type TrackDefaults = { deadlineMs: number; unknownGraceMs: number; stuckAfterMs: number };

export type TrackRequests =
  | { kind: 'requests'; requests: TrackRequest[] }
  /** `field`: the one that is wrong. */
  | { kind: 'invalid'; field: 'deadline' | 'upstream' | 'callback_url'; reason: string };

/** Turns a valid body into complete requests, each id once, in its canonical form. */
export function toTrackRequests(
  body: TrackBody,
  context: {
    now: number;
    defaults: TrackDefaults;
    hasUpstream: (name: string) => boolean;
    /** Why nothing is ever sent to that address; undefined: it may be. */
    refusalOf: (url: string) => string | undefined;
  },
): TrackRequests {
  const { now, defaults } = context;
  const upstream = body.upstream ?? 'default';
  if (!context.hasUpstream(upstream))
    return { kind: 'invalid', field: 'upstream', reason: `no upstream is named ${JSON.stringify(upstream)}` };
  const deadlineAt = body.deadline === undefined ? now + defaults.deadlineMs : Date.parse(body.deadline);
  if (deadlineAt > now + MAX_LIMIT_S * 1_000)
    return { kind: 'invalid', field: 'deadline', reason: 'the deadline is more than 366 days away' };
  const refusal = body.callback_url === undefined ? undefined : context.refusalOf(body.callback_url);
  if (refusal !== undefined) return { kind: 'invalid', field: 'callback_url', reason: refusal };
  const shared = {
    upstream,
    deadlineAt,
    graceEndsAt: now + milliseconds(body.unknown_grace_s, defaults.unknownGraceMs),
    stuckAt: now + milliseconds(body.stuck_after_s, defaults.stuckAfterMs),
    metadata: body.metadata ?? null,
    callbackUrl: body.callback_url ?? null,
  };
  const asked = body.submission_ids ?? (body.submission_id === undefined ? [] : [body.submission_id]);
  const ids = new Set(asked.map(canonicalId));
  return { kind: 'requests', requests: [...ids].map((submissionId) => ({ submissionId, ...shared })) };
}

function milliseconds(seconds: number | undefined, fallbackMs: number): number {
  return seconds === undefined ? fallbackMs : Math.round(seconds * 1_000);
}

function fitsForAll(body: { submission_ids?: unknown[] | undefined; metadata?: unknown }): boolean {
  const count = body.submission_ids?.length ?? 1;
  return body.metadata === undefined || bytesOf(body.metadata) * count <= MAX_METADATA_BYTES_IN_ALL;
}

function fits(metadata: unknown): boolean {
  return bytesOf(metadata) <= MAX_METADATA_BYTES;
}

function bytesOf(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value));
}

import { z } from 'zod';
import { DEEP_METADATA_REASON, isTooDeep } from './json.ts';
import {
  canonicalId,
  REACHABLE_ID_PATTERN,
  SUBMISSION_ID_PATTERN,
  TRACK_OPTIONS,
  type TrackRequest,
  UNREACHABLE_ID_REASON,
} from './submission.ts';

export const MAX_IDS_PER_REQUEST = 10_000;
const MAX_METADATA_BYTES = 4_096;
/** For all ids of a request together: every submission stores its own copy. */
const MAX_TOTAL_METADATA_BYTES = 4 * 1024 * 1024;
const MAX_CALLBACK_URL_CHARS = 2_048;
const MAX_LIMIT_S = 366 * 86_400;

export const submissionIdSchema = z
  .string()
  .regex(SUBMISSION_ID_PATTERN, 'a submission id is 1 to 128 printable ASCII characters without spaces')
  .describe('The id that the upstream returned. A UUID is compared and shown in lower case, any other id unchanged')
  .meta({ examples: ['6df2c1ce-b11a-4828-b2a6-62bf5b7cb325'] });

const newSubmissionIdSchema = submissionIdSchema.regex(REACHABLE_ID_PATTERN, UNREACHABLE_ID_REASON);

const secondsSchema = z.number().min(0).max(MAX_LIMIT_S);

/** The options of a submission, which a request may name. */
const optionFields = {
  deadline: z.iso
    .datetime({ offset: true })
    .describe('Deadline for finality, ISO 8601; after it the submission ends as failed or expired'),
  unknown_grace_s: secondsSchema.describe(
    'Seconds for which "not found" means "not yet"; only time in which the id was polled counts. At least 120 s apply',
  ),
  stuck_after_s: secondsSchema.describe('Seconds after which an open submission is reported as stuck'),
  metadata: z
    .record(z.string(), z.unknown())
    .refine((metadata) => !isTooDeep(metadata), { error: DEEP_METADATA_REASON, abort: true })
    .refine(fits, `metadata takes at most ${MAX_METADATA_BYTES} bytes of JSON`)
    .describe('Any object; returned with the submission and in its events'),
  callback_url: z
    .string()
    .max(MAX_CALLBACK_URL_CHARS)
    .describe('Receives the events of the submission, signed with the secret of the webhook `callbacks`'),
};

/** A request to track submissions, over HTTP or a queue. Submissions that are tracked already keep their options. */
export const trackBodySchema = z
  .strictObject({
    submission_id: newSubmissionIdSchema.optional(),
    submission_ids: z
      .array(newSubmissionIdSchema)
      .min(1)
      .max(MAX_IDS_PER_REQUEST)
      .optional()
      .describe(`Up to ${MAX_IDS_PER_REQUEST} ids; all are tracked or none`),
    upstream: z.string().max(32).optional().describe('Name of a configured upstream; "default" if absent'),
    ...z.object(optionFields).partial().shape,
    retrack: z
      .boolean()
      .optional()
      .describe(
        'True: ids that ended as failed, unknown, rejected, expired or cancelled are tracked again, with the time limits of this ' +
          'request; `metadata` and `callback_url` replace the earlier ones if present. Finalized ids stay as they are',
      ),
  })
  .refine((body) => (body.submission_id === undefined) !== (body.submission_ids === undefined), {
    error: 'exactly one of submission_id and submission_ids is required',
  })
  .refine(fitsForAll, {
    path: ['metadata'],
    error: `metadata of all ids together takes more than ${MAX_TOTAL_METADATA_BYTES} bytes: send less metadata, or fewer ids per request`,
  })
  .meta({
    id: 'TrackRequest',
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
  /** `field`: the invalid one. */
  | { kind: 'invalid'; field: 'deadline' | 'upstream' | 'callback_url'; reason: string };

/** Converts a valid body to complete requests, one per distinct canonical id. */
export function toTrackRequests(
  body: TrackBody,
  context: {
    now: number;
    defaults: TrackDefaults;
    hasUpstream: (name: string) => boolean;
    /** Returns why a callback URL is not allowed; undefined: it is allowed. */
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
    requestedAt: now,
    retrack: body.retrack ?? false,
    named: TRACK_OPTIONS.filter((option) => body[option] !== undefined),
  };
  const given = body.submission_ids ?? (body.submission_id === undefined ? [] : [body.submission_id]);
  const ids = new Set(given.map(canonicalId));
  return { kind: 'requests', requests: [...ids].map((submissionId) => ({ submissionId, ...shared })) };
}

function milliseconds(seconds: number | undefined, fallbackMs: number): number {
  return seconds === undefined ? fallbackMs : Math.round(seconds * 1_000);
}

function fitsForAll(body: { submission_ids?: unknown[] | undefined; metadata?: unknown }): boolean {
  const count = body.submission_ids?.length ?? 1;
  return body.metadata === undefined || bytesOf(body.metadata) * count <= MAX_TOTAL_METADATA_BYTES;
}

function fits(metadata: unknown): boolean {
  return bytesOf(metadata) <= MAX_METADATA_BYTES;
}

function bytesOf(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value));
}

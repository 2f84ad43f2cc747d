import { z } from 'zod';
import { durationMs } from '../lib/clock.ts';
import { typeReason } from '../lib/explain-issue.ts';
import {
  DEEP_METADATA_REASON,
  hasFiniteNumbers,
  hasPrototypeName,
  isObject,
  isSameJson,
  isTooDeep,
} from '../lib/json.ts';
import type { OptionsPatch } from './option-changes.ts';
import {
  byKey,
  byName,
  canonicalId,
  NEW_ID_PATTERN,
  SUBMISSION_ID_PATTERN,
  TRACK_OPTIONS,
  type TrackRequest,
  textsWith,
} from './submission.ts';

/** Of a request, which is one commit: each id takes 20 to 50 µs, in which nothing else runs. */
export const MAX_IDS_PER_REQUEST = 1_000;
/** Of a request or a job: a thousand submissions with their options, and metadata. */
export const BODY_LIMIT_BYTES = 8 * 1024 * 1024;
const MAX_METADATA_BYTES = 4_096;
const MAX_CALLBACK_URL_CHARS = 2_048;
const MAX_LIMIT_S = 366 * 86_400;
const DAY_MS = 86_400_000;
/** Earliest `tracked_at`: ten years ago. */
const MAX_TRACKED_DAYS = 3_660;
/** Less than this in the future counts as now: clocks differ. */
const MAX_AHEAD_MS = 60_000;

export const submissionIdSchema = z
  .string()
  .regex(SUBMISSION_ID_PATTERN, {
    error: 'a submission id is 1 to 128 printable ASCII characters without spaces',
    abort: true,
  })
  .describe(
    'The id that the upstream returned. A UUID is compared and shown in lower case, any other id unchanged',
  )
  .meta({ examples: ['6df2c1ce-b11a-4828-b2a6-62bf5b7cb325'] });

export const newSubmissionIdSchema = submissionIdSchema.regex(
  NEW_ID_PATTERN,
  'a submission id has no quotes, braces, brackets and commas, and is none of ., .., null, undefined, true and false',
);

const timeSchema = z.iso.datetime({ offset: true });
const secondsSchema = z.number().min(0).max(MAX_LIMIT_S);

const optionFields = {
  deadline: z
    .string()
    .max(64)
    .refine(
      (text) => timeSchema.safeParse(text).success || durationMs(text) !== undefined,
      'must be a time with its zone, like 2026-01-02T03:04:05Z, or a duration, like 10m or PT10M',
    )
    .describe(
      'Deadline for finality, ISO 8601, or the duration until then: 90s, 10m, 24h, 7d or PT10M. After it the submission ends as failed or expired',
    ),
  unknown_grace_s: secondsSchema.describe(
    'Seconds for which "not found" means "not yet", from the first such answer on. At least 120 s apply',
  ),
  stuck_after_s: secondsSchema.describe(
    'Seconds after which an open submission is reported as stuck',
  ),
  // z.record() would drop the name __proto__.
  metadata: (z.unknown() as z.ZodType<Record<string, unknown>>)
    .superRefine((given, context) => {
      const message = metadataRefusal(given);
      if (message !== undefined) context.addIssue({ code: 'custom', message, continue: false });
    })
    .describe('Any object; returned with the submission and in its events')
    .meta({ type: 'object', additionalProperties: {} }),
  callback_url: z
    .string()
    .max(MAX_CALLBACK_URL_CHARS)
    .describe(
      'Receives the events of the submission, signed with the secret of the webhook `callbacks`',
    ),
  ...byName(({ schema }) => schema),
};

const trackFields = {
  upstream: z
    .string()
    .max(32)
    .optional()
    .describe('Name of a configured upstream; "default" if absent'),
  ...z.object(optionFields).partial().shape,
  tracked_at: timeSchema
    .optional()
    .describe(
      `For an import: since when another system has tracked it, ISO 8601; not in the future, and at most ${MAX_TRACKED_DAYS} days ago. ` +
        'stuck_after_s counts from then, a default deadline from now. A deadline that has passed since then is accepted: the submission is polled before it ends',
    ),
  retrack: z
    .boolean()
    .optional()
    .describe(
      'True: ids that ended as failed, unknown, rejected, expired or cancelled are tracked again, with the time limits of this ' +
        'request; `metadata` and `callback_url` replace the earlier ones if present. Finalized ids stay as they are',
    ),
};

export const trackItemSchema = z
  .strictObject({ submission_id: newSubmissionIdSchema, ...trackFields })
  .describe('A submission with its own options')
  .meta({ id: 'TrackItem' });
export type TrackItem = z.output<typeof trackItemSchema>;

/** Over HTTP or a queue. Submissions that are tracked already keep their options. */
export const trackBodySchema = z
  .strictObject({
    submission_id: newSubmissionIdSchema.optional(),
    submission_ids: z
      .array(newSubmissionIdSchema)
      .min(1)
      .max(MAX_IDS_PER_REQUEST)
      .optional()
      .describe(`Up to ${MAX_IDS_PER_REQUEST} ids; all are tracked or none`),
    submissions: z
      .array(trackItemSchema)
      .min(1)
      .max(MAX_IDS_PER_REQUEST)
      .optional()
      .describe(
        `Up to ${MAX_IDS_PER_REQUEST} submissions, each with its own options; all are tracked or none. The options beside this list apply to each submission that has no such option of its own`,
      ),
    ...trackFields,
  })
  .refine(hasOneForm, {
    error: 'exactly one of submission_id, submission_ids and submissions is required',
  })
  .meta({
    id: 'TrackRequest',
    examples: [{ submission_id: '6df2c1ce-b11a-4828-b2a6-62bf5b7cb325' }],
  });
export type TrackBody = z.output<typeof trackBodySchema>;

type TrackDefaults = { deadlineMs: number; unknownGraceMs: number; stuckAfterMs: number };

export type TrackContext = {
  now: number;
  defaults: TrackDefaults;
  hasUpstream: (name: string) => boolean;
  /** Returns why a callback URL is not allowed; undefined: it is allowed. */
  refusalOf: (url: string) => string | undefined;
};

/** `field`: the invalid field, as a JSON pointer into the body without its first slash. */
type Invalid = { kind: 'invalid'; field: string; reason: string };

export type TrackRequests =
  | {
      kind: 'requests';
      requests: TrackRequest[];
      /** Returns a JSON pointer into the body without its first slash. */
      fieldOf: (index: number, option: keyof TrackItem) => string;
    }
  | Invalid;

type Options = Omit<TrackItem, 'submission_id'>;

/** Converts a valid body to complete requests, one per distinct canonical id. */
export function toTrackRequests(body: TrackBody, context: TrackContext): TrackRequests {
  const { submission_id, submission_ids, submissions, ...shared } = body;
  if (submissions) return toItemRequests(submissions, shared, context);
  const options = toRequestOptions(shared, context);
  if ('kind' in options) return options;
  const ids = (submission_ids ?? (submission_id === undefined ? [] : [submission_id])).map(
    canonicalId,
  );
  const requests = [...new Set(ids)].map((submissionId) => ({ submissionId, ...options }));
  const fieldOf = (index: number, option: keyof TrackItem) =>
    option === 'submission_id' && submission_ids
      ? `submission_ids/${ids.indexOf(requests[index]?.submissionId ?? '')}`
      : option;
  return { kind: 'requests', requests, fieldOf };
}

function toItemRequests(
  items: readonly TrackItem[],
  shared: Options,
  context: TrackContext,
): TrackRequests {
  const requests: TrackRequest[] = [];
  /** For each request, the position of its item in the body. */
  const positions: number[] = [];
  const positionOf = new Map<string, number>();
  const fieldAt = (position: number, option: string) =>
    Object.hasOwn(items[position] ?? {}, option) ? `submissions/${position}/${option}` : option;
  for (const [position, item] of items.entries()) {
    const submissionId = canonicalId(item.submission_id);
    const first = positionOf.get(submissionId);
    if (first !== undefined) {
      if (hasSameOptions(items[first], item)) continue;
      const reason = `is the same id as submissions/${first}/submission_id, with other options`;
      return { kind: 'invalid', field: `submissions/${position}/submission_id`, reason };
    }
    const options = toRequestOptions({ ...shared, ...item }, context);
    if ('kind' in options) return { ...options, field: fieldAt(position, options.field) };
    positionOf.set(submissionId, position);
    positions.push(position);
    requests.push({ submissionId, ...options });
  }
  return {
    kind: 'requests',
    requests,
    fieldOf: (index, option) => fieldAt(positions[index] ?? 0, option),
  };
}

/** Returns whether two items with one id have the same options, so that they may be merged. */
export function hasSameOptions(one: TrackItem | undefined, other: TrackItem): boolean {
  return isSameJson({ ...one, submission_id: '' }, { ...other, submission_id: '' });
}

function toRequestOptions(
  options: Options,
  context: TrackContext,
): Omit<TrackRequest, 'submissionId'> | Invalid {
  const { now, defaults } = context;
  const invalid = (field: string, reason: string): Invalid => ({ kind: 'invalid', field, reason });
  const { upstream = 'default', callback_url } = options;
  if (!context.hasUpstream(upstream))
    return invalid('upstream', `no upstream is named ${JSON.stringify(upstream)}`);
  const wrongTime = findWrongTime(options, now);
  if (wrongTime) return invalid(wrongTime.field, wrongTime.reason);
  const refusal = callback_url === undefined ? undefined : context.refusalOf(callback_url);
  if (refusal !== undefined) return invalid('callback_url', refusal);
  const begin = options.tracked_at === undefined ? now : Date.parse(options.tracked_at);
  // The ledger sets the time of the commit, which may be seconds later than `now`.
  const trackedAt = begin < now ? begin : undefined;
  const from = trackedAt ?? now;
  return {
    upstream,
    deadlineAt:
      options.deadline === undefined
        ? now + defaults.deadlineMs
        : deadlineFrom(options.deadline, now),
    graceEndsAt: from + milliseconds(options.unknown_grace_s, defaults.unknownGraceMs),
    stuckAt: from + milliseconds(options.stuck_after_s, defaults.stuckAfterMs),
    metadata: options.metadata ?? null,
    callbackUrl: callback_url ?? null,
    ...byKey(({ name }) => options[name] ?? null),
    retrack: options.retrack ?? false,
    named: TRACK_OPTIONS.filter((option) => options[option] !== undefined),
    requestedAt: now,
    ...(trackedAt !== undefined && { trackedAt }),
  };
}

/** Returns the first option whose time is not allowed at `now`; undefined: none. */
export function findWrongTime(
  { deadline, tracked_at }: Options,
  now: number,
): { field: 'deadline' | 'tracked_at'; reason: string } | undefined {
  const trackedAt = tracked_at === undefined ? now : Date.parse(tracked_at);
  if (trackedAt > now + MAX_AHEAD_MS) return { field: 'tracked_at', reason: 'is in the future' };
  if (trackedAt < now - MAX_TRACKED_DAYS * DAY_MS)
    return { field: 'tracked_at', reason: `is more than ${MAX_TRACKED_DAYS} days ago` };
  const deadlineAt = deadline === undefined ? undefined : deadlineFrom(deadline, now);
  if (deadlineAt !== undefined && deadlineAt > now + MAX_LIMIT_S * 1_000)
    return { field: 'deadline', reason: 'the deadline is more than 366 days away' };
  if (tracked_at !== undefined && deadlineAt !== undefined && deadlineAt <= trackedAt)
    return { field: 'deadline', reason: 'the deadline is not after tracked_at' };
  return undefined;
}

/** Returns the time of a deadline, or of the end of a duration that begins at `now`. */
function deadlineFrom(deadline: string, now: number): number {
  const ms = durationMs(deadline);
  return ms === undefined ? Date.parse(deadline) : Math.round(now + ms);
}

function milliseconds(seconds: number | undefined, fallbackMs: number): number {
  return seconds === undefined ? fallbackMs : Math.round(seconds * 1_000);
}

function hasOneForm({
  submission_id,
  submission_ids,
  submissions,
}: Record<string, unknown>): boolean {
  return (
    [submission_id, submission_ids, submissions].filter((form) => form !== undefined).length === 1
  );
}

function metadataRefusal(given: unknown): string | undefined {
  if (!isObject(given)) return typeReason('object', given);
  if (isTooDeep(given)) return DEEP_METADATA_REASON;
  if (hasPrototypeName(given)) return 'metadata must not have the name __proto__';
  if (!hasFiniteNumbers(given)) return 'metadata has a number that is too large';
  if (bytesOf(given) > MAX_METADATA_BYTES)
    return `metadata takes at most ${MAX_METADATA_BYTES} bytes of JSON`;
  return undefined;
}

function bytesOf(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value));
}

export const updateBodySchema = z
  .strictObject({
    ...optionFields,
    metadata: optionFields.metadata
      .nullable()
      .describe('Replaces the whole object; null removes it'),
    callback_url: optionFields.callback_url
      .nullable()
      .describe(
        'Receives the events from now on, and those that were not delivered to the earlier URL; null: no further events are sent',
      ),
    ...byName(({ schema, patch }) => schema.nullable().describe(patch)),
  })
  .partial()
  .refine((body) => Object.keys(body).length > 0, 'must have at least one field')
  .describe('Absent fields are unchanged')
  .meta({
    id: 'SubmissionPatch',
    examples: [{ metadata: { order: 4711 }, callback_url: null }],
  });
export type UpdateBody = z.output<typeof updateBodySchema>;

/** `refusalOf` returns why a callback URL is not allowed; undefined: it is allowed. */
export function toOptionsPatch(
  body: UpdateBody,
  { now, refusalOf }: { now: number; refusalOf: (url: string) => string | undefined },
): { kind: 'patch'; patch: OptionsPatch } | Invalid {
  const { deadline, unknown_grace_s, stuck_after_s, metadata, callback_url } = body;
  const wrongTime = findWrongTime({ deadline }, now);
  if (wrongTime) return { kind: 'invalid', ...wrongTime };
  const refusal =
    callback_url === undefined || callback_url === null ? undefined : refusalOf(callback_url);
  if (refusal !== undefined) return { kind: 'invalid', field: 'callback_url', reason: refusal };
  const patch: OptionsPatch = {
    ...(deadline !== undefined && { deadlineAt: deadlineFrom(deadline, now) }),
    ...(unknown_grace_s !== undefined && { unknownGraceMs: Math.round(unknown_grace_s * 1_000) }),
    ...(stuck_after_s !== undefined && { stuckAfterMs: Math.round(stuck_after_s * 1_000) }),
    ...(metadata !== undefined && { metadata }),
    ...(callback_url !== undefined && { callbackUrl: callback_url }),
    ...textsWith(({ name }) => body[name]),
  };
  return { kind: 'patch', patch };
}

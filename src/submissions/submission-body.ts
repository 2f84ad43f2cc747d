import { z } from 'zod';
import { nextCursorSchema, timeSchema } from '../http/typed-server.ts';
import { iso, isoOrNull } from '../lib/clock.ts';
import { nearestTime } from '../lib/json.ts';
import { storedData } from './classify.ts';
import { durationsOf } from './option-changes.ts';
import {
  byName,
  CHAIN_VERDICTS,
  FINALITY_SOURCES,
  type HistoryEntry,
  type OptionChanges,
  STATUSES,
  type Submission,
  TRACK_OPTIONS,
} from './submission.ts';

export const statusSchema = z
  .enum(STATUSES)
  .describe('Every status but tracking, pending and failing is final')
  .meta({ id: 'SubmissionStatus' });

export const upstreamDataSchema = z
  .record(z.string(), z.unknown())
  .nullable()
  .describe(
    "The upstream's unchanged `data`; integers beyond 2^53, such as a block_number, are strings",
  );

const chainFields = {
  chain: z
    .enum(CHAIN_VERDICTS)
    .nullable()
    .describe(
      'What a node of the chain, or the expected hash, says about `data`. confirmed: the block is final on the chain, and with `verify_data` its data root contains the data; contradicted: the chain has another block or transaction, or the hash of the data is another one; unavailable: the node could not tell; null: it was not verified',
    )
    .meta({ id: 'ChainVerdict' }),
  chain_reason: z.string().nullable().describe('Why the chain does not confirm the block'),
};

export const submissionFields = {
  submission_id: z.string(),
  upstream: z.string(),
  status: statusSchema,
  upstream_state: z.string().nullable().describe("The upstream's unchanged `state`"),
  data: upstreamDataSchema,
  error: z.string().nullable(),
  ...chainFields,
  tracked_at: timeSchema,
  finalized_at: timeSchema.nullable().describe('When dawatch first observed it as final'),
  finality_at: timeSchema
    .nullable()
    .describe(
      'When it became final; `finalized_at` minus this is the detection lag. null: it is not final, or too little was known for an estimate',
    ),
  finality_source: z
    .enum(FINALITY_SOURCES)
    .nullable()
    .describe(
      'How `finality_at` is known. chain: a node of the chain announced the block as final; estimate: it is the expected time, given the polls',
    )
    .meta({ id: 'FinalitySource' }),
  metadata: z.record(z.string(), z.unknown()).nullable(),
};
const fieldsSchema = z.object(submissionFields);

export type ShownSubmission = Pick<
  Submission,
  | 'submissionId'
  | 'upstream'
  | 'status'
  | 'upstreamState'
  | 'envelope'
  | 'error'
  | 'chain'
  | 'chainReason'
  | 'trackedAt'
  | 'finalizedAt'
  | 'finalityAt'
  | 'finalitySource'
  | 'metadata'
>;

export function toSubmissionFields(submission: ShownSubmission): z.output<typeof fieldsSchema> {
  return {
    submission_id: submission.submissionId,
    upstream: submission.upstream,
    status: submission.status,
    upstream_state: submission.upstreamState,
    data: storedData(submission.envelope, `the history of ${submission.submissionId}`),
    error: submission.error,
    chain: submission.chain,
    chain_reason: submission.chainReason,
    tracked_at: iso(submission.trackedAt),
    finalized_at: isoOrNull(submission.finalizedAt),
    finality_at: isoOrNull(submission.finalityAt),
    finality_source: submission.finalitySource,
    metadata: submission.metadata,
  };
}

export const submissionSchema = z
  .object({
    ...submissionFields,
    deadline_at: timeSchema,
    polls: z.int().describe('Requests sent for this submission'),
    last_polled_at: timeSchema
      .nullable()
      .describe(
        'Time of the newest response to a poll, since it is tracked; null: it has not been polled yet',
      ),
    next_poll_at: timeSchema
      .nullable()
      .describe(
        'The next poll is sent at this time at the earliest; null: none is planned, as for a final submission. While a poll is ' +
          'in flight, the end of the time in which its response is awaited',
      ),
    not_found_since: timeSchema
      .nullable()
      .describe(
        'Since when the upstream has responded that it has no such submission; null: it found it, or has not responded',
      ),
    unknown_grace_s: z.number().describe('Seconds for which "not found" means "not yet"'),
    stuck_after_s: z
      .number()
      .describe('Seconds after which the open submission is reported as stuck'),
    callback_url: z
      .string()
      .nullable()
      .describe(
        'Receives the events; only the role admin sees the whole address, others see scheme, host and port, because the rest may be secret',
      ),
    ...byName(({ returned }) => z.string().nullable().describe(returned)),
    data_root: z
      .string()
      .nullable()
      .describe('Data root of the block that contains the data; null: there is no proof of them'),
    explorer_url: z
      .string()
      .optional()
      .describe('Block explorer; absent if none is configured, or `data` have no block'),
  })
  .describe('A tracked submission')
  .meta({ id: 'Submission' });
export type SubmissionBody = z.output<typeof submissionSchema>;

const changed = <T extends z.ZodType>(value: T) => z.object({ from: value, to: value });
const changedTimeSchema = changed(timeSchema)
  .describe('A time before and after a change')
  .meta({ id: 'ChangedTime' });
const changedSecondsSchema = changed(z.number())
  .describe('Seconds before and after a change')
  .meta({ id: 'ChangedSeconds' });
const changedTextSchema = changed(z.string().nullable())
  .describe('A text before and after a change; null: none')
  .meta({ id: 'ChangedText' });
const changesSchema = z
  .object({
    tracked_at: changedTimeSchema,
    deadline_at: changedTimeSchema,
    unknown_grace_s: changedSecondsSchema,
    stuck_after_s: changedSecondsSchema,
    metadata: changed(z.record(z.string(), z.unknown()).nullable()),
    callback_url: changedTextSchema,
    ...byName(() => changedTextSchema),
  })
  .partial()
  .describe(
    'Options that a client changed: values before and after. Of `callback_url` only scheme, host and port',
  )
  .meta({ id: 'OptionChanges' });

const historyEntrySchema = z
  .object({
    seq: z.int().describe('Sequence number across all submissions'),
    at: timeSchema,
    status: statusSchema,
    previous_status: statusSchema.nullable(),
    upstream_state: z.string().nullable(),
    data: upstreamDataSchema,
    error: z.string().nullable(),
    ...chainFields,
    changes: changesSchema.optional(),
  })
  .describe('A change of a submission')
  .meta({ id: 'HistoryEntry' });

export const submissionWithHistorySchema = submissionSchema
  .extend({
    history: z.array(historyEntrySchema).describe('One entry per change, oldest first'),
  })
  .describe('A tracked submission with its history')
  .meta({ id: 'SubmissionWithHistory' });

export const trackedSchema = z
  .object({
    accepted: z.int().describe('Number of newly tracked submissions'),
    already_tracked: z.int().describe('Number of submissions that were open already'),
    already_final: z
      .int()
      .describe(
        'Number of submissions that had ended, which `already_tracked` does not include; `retrack` tracks them again',
      ),
    retracked: z.int().describe('Number of ended submissions that are tracked again'),
    kept_options: z
      .array(
        z
          .enum(TRACK_OPTIONS)
          .describe('An option of a tracked submission')
          .meta({ id: 'TrackOption' }),
      )
      .describe(
        'Options of the request of which known submissions have other values, which they keep; PATCH changes those of an open one',
      ),
    submissions: z
      .array(submissionSchema)
      .describe('In the order of the request, without duplicates'),
  })
  .describe('The submissions are stored on disk')
  .meta({ id: 'TrackedSubmissions' });

export const submissionListSchema = z
  .object({
    submissions: z.array(submissionSchema).describe('In the order of the list'),
    next_cursor: nextCursorSchema,
  })
  .describe('A page of submissions')
  .meta({ id: 'SubmissionPage' });

/** `callbackUrl`: what the reader may see. Without `next_poll_at`, which only the server knows. */
export function toSubmissionBody(
  submission: Submission,
  callbackUrl: string | null,
): Omit<SubmissionBody, 'next_poll_at'> {
  const { polls, polledAt, notFoundSince } = submission;
  const { unknownGraceMs, stuckAfterMs } = durationsOf(submission);
  return {
    ...toSubmissionFields(submission),
    deadline_at: toTime(submission.deadlineAt),
    polls,
    last_polled_at: polledAt === null ? null : toTime(polledAt),
    not_found_since: notFoundSince === null ? null : toTime(notFoundSince),
    unknown_grace_s: toSeconds(unknownGraceMs),
    stuck_after_s: toSeconds(stuckAfterMs),
    callback_url: callbackUrl,
    ...byName(({ key }) => submission[key]),
    data_root: submission.proof?.dataRoot ?? null,
  };
}

export function toHistoryBody(entry: HistoryEntry): z.output<typeof historyEntrySchema> {
  return {
    seq: entry.seq,
    at: iso(entry.at),
    status: entry.status,
    previous_status: entry.previousStatus,
    upstream_state: entry.upstreamState,
    data: storedData(entry.envelope, `the history entry ${entry.seq}`),
    error: entry.error,
    chain: entry.chain,
    chain_reason: entry.chainReason,
    ...(entry.changes && { changes: toChangesBody(entry.changes) }),
  };
}

function toChangesBody(changes: OptionChanges): z.output<typeof changesSchema> {
  const { trackedAt, deadlineAt, unknownGraceMs, stuckAfterMs } = changes;
  const { metadata, callbackOrigin } = changes;
  const texts = byName(({ key }) => changes[key] && fromTo(changes[key], (text) => text));
  return {
    ...(trackedAt && { tracked_at: fromTo(trackedAt, toTime) }),
    ...(deadlineAt && { deadline_at: fromTo(deadlineAt, toTime) }),
    ...(unknownGraceMs && { unknown_grace_s: fromTo(unknownGraceMs, toSeconds) }),
    ...(stuckAfterMs && { stuck_after_s: fromTo(stuckAfterMs, toSeconds) }),
    ...(metadata && { metadata: fromTo(metadata, (value) => value) }),
    ...(callbackOrigin && { callback_url: fromTo(callbackOrigin, (origin) => origin) }),
    ...texts,
  };
}

function fromTo<T, Shown>(
  [from, to]: readonly [T, T],
  show: (value: T) => Shown,
): { from: Shown; to: Shown } {
  return { from: show(from), to: show(to) };
}

export const toTime = (ms: number) => iso(nearestTime(ms));
const toSeconds = (ms: number) => ms / 1_000;

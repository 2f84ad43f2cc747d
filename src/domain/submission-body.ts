import { z } from 'zod';
import { readStoredData } from './stored.ts';
import { STATUSES, type Submission } from './submission.ts';
import { iso } from './timestamps.ts';

export const statusSchema = z
  .enum(STATUSES)
  .describe('Every status but tracking, pending and failing is final')
  .meta({ id: 'SubmissionStatus' });

export const timeSchema = z.iso.datetime().describe('ISO 8601, UTC');

export const upstreamDataSchema = z
  .record(z.string(), z.unknown())
  .nullable()
  .describe("The upstream's unchanged `data`; integers too large for a JSON number are strings");

export const unreadableSchema = z
  .array(z.string())
  .optional()
  .describe('Only if the ledger is damaged: fields that cannot be read, shown as null or as the nearest valid value');

/** The fields of a submission in every response and event. */
export const submissionFields = {
  submission_id: z.string(),
  upstream: z.string(),
  status: statusSchema,
  upstream_state: z.string().nullable().describe("The upstream's unchanged `state`"),
  data: upstreamDataSchema,
  error: z.string().nullable(),
  tracked_at: timeSchema,
  finalized_at: timeSchema.nullable().describe('When dawatch first observed it as final'),
  metadata: z.record(z.string(), z.unknown()).nullable(),
  unreadable: unreadableSchema,
};
const fieldsSchema = z.object(submissionFields);

/** The parts of a submission that `submissionFields` contain. */
export type ShownSubmission = Pick<
  Submission,
  | 'submissionId'
  | 'upstream'
  | 'status'
  | 'upstreamState'
  | 'envelope'
  | 'error'
  | 'trackedAt'
  | 'finalizedAt'
  | 'metadata'
  | 'unreadable'
>;

export function toSubmissionFields(submission: ShownSubmission): z.output<typeof fieldsSchema> {
  const data = readStoredData(submission.envelope);
  const fields: z.output<typeof fieldsSchema> = {
    submission_id: submission.submissionId,
    upstream: submission.upstream,
    status: submission.status,
    upstream_state: submission.upstreamState,
    data: data ?? null,
    error: submission.error,
    tracked_at: iso(submission.trackedAt),
    finalized_at: submission.finalizedAt === null ? null : iso(submission.finalizedAt),
    metadata: submission.metadata,
  };
  const unreadable = withUnreadableData(submission.unreadable, data);
  if (unreadable) fields.unreadable = unreadable;
  return fields;
}

/** Returns the unreadable fields, with `data` if that is undefined. */
export function withUnreadableData(fields: readonly string[] | undefined, data: unknown): string[] | undefined {
  if (data === undefined) return [...(fields ?? []), 'data'];
  return fields && [...fields];
}

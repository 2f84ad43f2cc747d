import { z } from 'zod';
import { readStoredData } from './stored.ts';
import { STATUSES, type Submission } from './submission.ts';
import { iso } from './timestamps.ts';

export const timeSchema = z.iso.datetime().describe('ISO 8601, UTC');

export const upstreamDataSchema = z
  .record(z.string(), z.unknown())
  .nullable()
  .describe("The upstream's own `data`, as it came; integers too large for a JSON number are strings");

export const unreadableSchema = z
  .array(z.string())
  .optional()
  .describe(
    'Only where the ledger is damaged: fields that it holds in a form that cannot be read, shown as null or as the nearest value',
  );

/** What a submission shows of itself everywhere: in answers and in events. */
export const submissionFields = {
  submission_id: z.string(),
  upstream: z.string(),
  status: z.enum(STATUSES),
  upstream_state: z.string().nullable().describe("The upstream's own `state`, as it came"),
  data: upstreamDataSchema,
  error: z.string().nullable(),
  tracked_at: timeSchema,
  finalized_at: timeSchema.nullable().describe('When dawatch first saw it final'),
  metadata: z.record(z.string(), z.unknown()).nullable(),
  unreadable: unreadableSchema,
};
const fieldsSchema = z.object(submissionFields);

/** The parts of a submission that `submissionFields` show. */
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
  const lost = withUnreadableData(submission.unreadable, data);
  if (lost) fields.unreadable = lost;
  return fields;
}

/** The fields that can't be read, with `data` if that is undefined. */
export function withUnreadableData(fields: readonly string[] | undefined, data: unknown): string[] | undefined {
  if (data === undefined) return [...(fields ?? []), 'data'];
  return fields && [...fields];
}

import { z } from 'zod';
import { timeSchema } from '../http/query.ts';
import { storedData } from '../lib/stored.ts';
import { iso } from '../lib/timestamps.ts';
import { STATUSES, type Submission } from './submission.ts';

export const statusSchema = z
  .enum(STATUSES)
  .describe('Every status but tracking, pending and failing is final')
  .meta({ id: 'SubmissionStatus' });

export const upstreamDataSchema = z
  .record(z.string(), z.unknown())
  .nullable()
  .describe("The upstream's unchanged `data`; integers too large for a JSON number are strings");

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
>;

export function toSubmissionFields(submission: ShownSubmission): z.output<typeof fieldsSchema> {
  return {
    submission_id: submission.submissionId,
    upstream: submission.upstream,
    status: submission.status,
    upstream_state: submission.upstreamState,
    data: storedData(submission.envelope, `the history of ${submission.submissionId}`),
    error: submission.error,
    tracked_at: iso(submission.trackedAt),
    finalized_at: submission.finalizedAt === null ? null : iso(submission.finalizedAt),
    metadata: submission.metadata,
  };
}

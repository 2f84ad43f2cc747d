import { z } from 'zod';
import { dataOf } from './envelope.ts';
import { iso } from './iso.ts';
import { STATUSES, type Submission } from './submission.ts';

export const time = z.iso.datetime().describe('ISO 8601, UTC');

export const upstreamData = z
  .record(z.string(), z.unknown())
  .nullable()
  .describe("The upstream's own `data`, as it came; integers too large for a JSON number are strings");

/** What a submission shows of itself everywhere: in answers and in events. */
export const submissionFields = {
  submission_id: z.string(),
  upstream: z.string(),
  status: z.enum(STATUSES),
  upstream_state: z.string().nullable().describe("The upstream's own `state`, as it came"),
  data: upstreamData,
  error: z.string().nullable(),
  tracked_at: time,
  finalized_at: time.nullable().describe('When dawatch first saw it final'),
  metadata: z.record(z.string(), z.unknown()).nullable(),
};
const fieldsSchema = z.object(submissionFields);

/** The parts of a submission that `submissionFields` show. */
export type ShownSubmission = Pick<
  Submission,
  | 'submissionId'
  | 'upstream'
  | 'status'
  | 'upstreamState'
  | 'answer'
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
    data: dataOf(submission.answer),
    error: submission.error,
    tracked_at: iso(submission.trackedAt),
    finalized_at: submission.finalizedAt === null ? null : iso(submission.finalizedAt),
    metadata: submission.metadata,
  };
}

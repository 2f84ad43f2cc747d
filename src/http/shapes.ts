import { z } from 'zod';
import { dataOf } from '../monitor/envelope.ts';
import { type HistoryEntry, STATUSES, type Submission } from '../monitor/submission.ts';

const time = z.iso.datetime().describe('ISO 8601, UTC');
const data = z
  .record(z.string(), z.unknown())
  .nullable()
  .describe("The upstream's own `data`, as it came; integers too large for a JSON number are strings");

export const submissionSchema = z
  .object({
    submission_id: z.string(),
    upstream: z.string(),
    status: z.enum(STATUSES),
    upstream_state: z.string().nullable().describe("The upstream's own `state`, as it came"),
    data,
    error: z.string().nullable(),
    tracked_at: time,
    finalized_at: time.nullable().describe('When dawatch first saw it final'),
    deadline_at: time.describe('Moves by the time that the upstream is out'),
    polls: z.int().describe('Requests that were made for it'),
    metadata: z.record(z.string(), z.unknown()).nullable(),
  })
  .describe('A tracked submission');
export type SubmissionBody = z.output<typeof submissionSchema>;

const historyEntrySchema = z.object({
  seq: z.int().describe('Counts over all submissions'),
  at: time,
  status: z.enum(STATUSES),
  previous_status: z.enum(STATUSES).nullable(),
  upstream_state: z.string().nullable(),
  data,
  error: z.string().nullable(),
});

export const submissionWithHistorySchema = submissionSchema.extend({
  history: z.array(historyEntrySchema).describe('One entry per change, oldest first'),
});

export const trackedSchema = z.object({
  accepted: z.int().describe('How many are tracked newly'),
  already_tracked: z.int(),
  submissions: z.array(submissionSchema).describe('In the order of the request, each once'),
});

export const submissionListSchema = z.object({
  submissions: z.array(submissionSchema).describe('Newest first'),
  next_cursor: z.string().nullable().describe('Send it as `cursor` for the next page; null at the end'),
});

export function toSubmissionBody(submission: Submission, deadlineAt: number): SubmissionBody {
  return {
    submission_id: submission.submissionId,
    upstream: submission.upstream,
    status: submission.status,
    upstream_state: submission.upstreamState,
    data: dataOf(submission.answer),
    error: submission.error,
    tracked_at: iso(submission.trackedAt),
    finalized_at: submission.finalizedAt === null ? null : iso(submission.finalizedAt),
    deadline_at: iso(deadlineAt),
    polls: submission.polls,
    metadata: submission.metadata,
  };
}

export function toHistoryBody(entry: HistoryEntry): z.output<typeof historyEntrySchema> {
  return {
    seq: entry.seq,
    at: iso(entry.at),
    status: entry.status,
    previous_status: entry.previousStatus,
    upstream_state: entry.upstreamState,
    data: dataOf(entry.answer),
    error: entry.error,
  };
}

function iso(ms: number): string {
  return new Date(ms).toISOString();
}

import { z } from 'zod';
import { SubmissionEventType, UpstreamEventType } from './events.ts';
import { STATUSES, type Status } from './submission.ts';
import { iso, type ShownSubmission, submissionFields, time, toSubmissionFields } from './submission-body.ts';

/** An event as it was written, with what it tells of as that was at its moment. Times are epoch milliseconds. */
export type EventRecord = {
  /** Counts over all events; the order in which they were committed. */
  seq: number;
  id: string;
  at: number;
} & (
  | { type: SubmissionEventType; submission: ShownSubmission & { deadlineAt: number }; previousStatus: Status }
  | { type: UpstreamEventType; upstream: string }
);

export const EVENT_TYPES = [...Object.values(SubmissionEventType), ...Object.values(UpstreamEventType)];

const head = {
  id: z.string().describe('Stable: who has seen it may drop the event'),
  timestamp: time,
};

const submissionEventSchema = z.object({
  ...head,
  type: z.enum(SubmissionEventType),
  data: z.object({
    submission: z
      .object({
        ...submissionFields,
        deadline_at: time.describe('As it was set; outages of the upstream move it later'),
      })
      .describe('As it was at the moment of the event'),
    previous_status: z.enum(STATUSES).describe('The status before the event; the same where it did not change'),
  }),
});

const upstreamEventSchema = z.object({
  ...head,
  type: z.enum(UpstreamEventType),
  data: z.object({ upstream: z.string() }),
});

/** What is told to others: the body of a webhook, the data of the live feed. */
export const eventSchema = z.union([submissionEventSchema, upstreamEventSchema]).describe('An event');
export type EventBody = z.output<typeof eventSchema>;

/** The same event always gives the same body: it holds nothing that changes after it was written. */
export function toEventBody(event: EventRecord): EventBody {
  const { id, at } = event;
  const timestamp = iso(at);
  if (!('submission' in event)) return { id, type: event.type, timestamp, data: { upstream: event.upstream } };
  const { type, submission, previousStatus } = event;
  const shown = { ...toSubmissionFields(submission), deadline_at: iso(submission.deadlineAt) };
  return { id, type, timestamp, data: { submission: shown, previous_status: previousStatus } };
}

/** The body as JSON. What the upstream said is left out where it is nested too deeply to be written down. */
export function toEventJson(event: EventRecord): string {
  try {
    return JSON.stringify(toEventBody(event));
  } catch (error) {
    if (!(error instanceof RangeError) || !('submission' in event)) throw error;
    return JSON.stringify(toEventBody({ ...event, submission: { ...event.submission, answer: null } }));
  }
}

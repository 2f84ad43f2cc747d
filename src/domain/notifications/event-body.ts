import { z } from 'zod';
import { type ReportUnreadable, readStoredData, type UnreadableRow } from '../stored.ts';
import { STATUSES, type Status } from '../submission.ts';
import {
  type ShownSubmission,
  submissionFields,
  timeSchema,
  toSubmissionFields,
  unreadableSchema,
  upstreamDataSchema,
} from '../submission-body.ts';
import { iso } from '../timestamps.ts';
import { ALERT_RULES, type Alert } from './alert.ts';
import { AlertEventType, SubmissionEventType, TEST_EVENT_TYPE, UpstreamEventType } from './events.ts';

/** An event as it was written, with what it tells of as that was at its moment. Times are epoch milliseconds. */
export type EventRecord = {
  /** Counts over all events; the order in which they were committed. */
  seq: number;
  id: string;
  at: number;
} & (
  | SubmissionEventRecord
  | { type: UpstreamEventType; upstream: string }
  | { type: AlertEventType; alert: Alert }
  | { type: typeof TEST_EVENT_TYPE; webhookId: string }
);

/** An event whose rows can not be read. It is never sent. */
export type UnreadableEvent = {
  seq: number;
  id: string;
  /** What its row has as the type and the time. */
  type: string;
  at: number;
  /** What is wrong with it. */
  unreadable: string;
};

type SubmissionEventRecord = {
  type: SubmissionEventType;
  submission: ShownSubmission & { deadlineAt: number };
  /** What was known before. */
  previous: { status: Status; upstreamState: string | null; error: string | null; envelope: string | null };
};

/** An event as JSON is below this size: what the upstream said is left out where it would be longer. */
export const MAX_EVENT_BYTES = 20_000;

const head = {
  id: z.string().describe('Stable over every repeat: who has seen it may drop the event'),
  timestamp: timeSchema,
};

const sequence = z
  .int()
  .describe(
    'Counts over all events, in the order of what happened: of two about one submission the larger is the newer',
  );

const submissionEventSchema = z
  .object({
    ...head,
    type: z.enum(SubmissionEventType),
    data: z.object({
      sequence,
      submission: z
        .object({
          ...submissionFields,
          deadline_at: timeSchema.describe('As it was set; outages of the upstream move it later'),
        })
        .describe('As it was at the moment of the event'),
      previous_status: z.enum(STATUSES).describe('The status before the event; the same where it did not change'),
      previous_upstream_state: z.string().nullable(),
      previous_error: z.string().nullable(),
      previous_data: upstreamDataSchema.describe("The upstream's `data` before; the same where it did not change"),
      unreadable: unreadableSchema,
      cut: z
        .boolean()
        .describe(
          `True: the event would be ${MAX_EVENT_BYTES / 1_000} kB or more, so what the upstream said is left out or shortened; it stands at \`href\``,
        ),
      href: z.string().describe('Path of the submission on the dawatch server'),
    }),
  })
  .meta({ id: 'SubmissionEvent', title: 'An event about a submission' });

const upstreamEventSchema = z
  .object({ ...head, type: z.enum(UpstreamEventType), data: z.object({ sequence, upstream: z.string() }) })
  .meta({ id: 'UpstreamEvent', title: 'An event about an upstream' });

const alertEventSchema = z
  .object({
    ...head,
    type: z.enum(AlertEventType),
    data: z.object({
      sequence,
      alert: z.object({
        rule: z.enum(ALERT_RULES),
        subject: z.string().describe('What it is about: an upstream, or where deliveries go'),
        summary: z.string().describe('One sentence for people'),
        count: z.int().nullable().describe('How many submissions or deliveries it is about'),
        since: timeSchema.describe('Since when it has held'),
      }),
    }),
  })
  .meta({ id: 'AlertEvent', title: 'An alert: it begins, still holds, is over' });

const testEventSchema = z
  .object({
    ...head,
    type: z.literal(TEST_EVENT_TYPE),
    data: z.object({ sequence, webhook_id: z.string() }),
  })
  .meta({ id: 'TestEvent', title: 'A test of one webhook' });

/** What is told to others: the body of a webhook, the data of the live feed, the data of a job. */
export const eventSchema = z
  .union([submissionEventSchema, upstreamEventSchema, alertEventSchema, testEventSchema])
  .describe('An event');
export type EventBody = z.output<typeof eventSchema>;

/** The same event always gives the same body: it holds nothing that changes after it was written. */
export function toEventBody(event: EventRecord): EventBody {
  const { id, seq } = event;
  const timestamp = iso(event.at);
  if ('upstream' in event)
    return { id, type: event.type, timestamp, data: { sequence: seq, upstream: event.upstream } };
  if ('webhookId' in event)
    return { id, type: event.type, timestamp, data: { sequence: seq, webhook_id: event.webhookId } };
  if ('alert' in event) {
    const alert = { ...event.alert, since: iso(event.alert.since) };
    return { id, type: event.type, timestamp, data: { sequence: seq, alert } };
  }
  const { type, submission, previous } = event;
  const before = readStoredData(previous.envelope);
  return {
    id,
    type,
    timestamp,
    data: {
      sequence: seq,
      submission: { ...toSubmissionFields(submission), deadline_at: iso(submission.deadlineAt) },
      previous_status: previous.status,
      previous_upstream_state: previous.upstreamState,
      previous_error: previous.error,
      previous_data: before ?? null,
      ...(before === undefined && { unreadable: ['previous_data'] }),
      cut: false,
      href: `/v1/submissions/${encodeURIComponent(submission.submissionId)}`,
    },
  };
}

/** The body as JSON, below MAX_EVENT_BYTES. */
export function toEventJson(event: EventRecord, report?: ReportUnreadable): string {
  const body = toEventBody(event);
  const fields = unreadableIn(body);
  if (report && fields.length > 0) report({ kind: 'event', id: event.id, fields });
  const whole = JSON.stringify(body);
  return Buffer.byteLength(whole) < MAX_EVENT_BYTES ? whole : JSON.stringify(cut(body));
}

/** What is reported of one that is never sent. */
export function toUnreadableRow({ id, unreadable }: UnreadableEvent): UnreadableRow {
  return { kind: 'event', id, fields: [unreadable] };
}

function unreadableIn({ data }: EventBody): readonly string[] {
  return 'submission' in data ? [...(data.unreadable ?? []), ...(data.submission.unreadable ?? [])] : [];
}

/** With errors of this length and no data, an event is below the limit whatever the upstream said: see the test. */
const MAX_CUT_CHARS = 500;

function cut(body: EventBody): EventBody {
  if (!('submission' in body.data)) return body;
  const { data } = body;
  return {
    ...body,
    data: {
      ...data,
      submission: { ...data.submission, data: null, error: shortened(data.submission.error) },
      previous_error: shortened(data.previous_error),
      previous_data: null,
      cut: true,
    },
  } as EventBody;
}

function shortened(text: string | null): string | null {
  return text === null || text.length <= MAX_CUT_CHARS ? text : `${text.slice(0, MAX_CUT_CHARS).toWellFormed()}…`;
}

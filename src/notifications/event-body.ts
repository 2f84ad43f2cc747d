import { z } from 'zod';
import { simplify } from '../http/json-schema.ts';
import { timeSchema } from '../http/typed-server.ts';
import { iso } from '../lib/clock.ts';
import type { DamagedRowError } from '../lib/json.ts';
import { storedData } from '../submissions/classify.ts';
import {
  AlertEventType,
  SubmissionEventType,
  TestEventType,
  UpstreamEventType,
} from '../submissions/event-types.ts';
import type { Status } from '../submissions/submission.ts';
import {
  type ShownSubmission,
  statusSchema,
  submissionFields,
  toSubmissionFields,
  upstreamDataSchema,
} from '../submissions/submission-body.ts';

/** The alert rules, which src/alerts/rules.ts defines, with the severity of their messages. */
export const ALERT_SEVERITIES = {
  stuck: 'warning',
  failures: 'warning',
  contradicted: 'warning',
  upstream_down: 'critical',
  credentials_refused: 'critical',
  upstream_paused: 'warning',
  webhook_failing: 'warning',
  channel_failing: 'warning',
  backlog: 'warning',
  dead_letters: 'warning',
  webhook_disabled: 'warning',
  wal_size: 'warning',
  disk_low: 'warning',
  ledger_not_writable: 'critical',
  redis_down: 'warning',
  no_workers: 'warning',
  chain_node: 'warning',
} as const;
export type AlertRule = keyof typeof ALERT_SEVERITIES;
export const ALERT_RULES = Object.keys(ALERT_SEVERITIES) as AlertRule[];

export type Alert = {
  id: number;
  rule: AlertRule;
  /** An upstream, a destination, "ledger", "redis" or "workers". */
  subject: string;
  summary: string;
  count: number | null;
  since: number;
  /** Address of the dashboard page about it; absent without `server.public_url`. */
  link?: string;
  /** The event is recorded, and sent to no destination. */
  muted?: true;
};

/** With its subject as it was at the event. Times are epoch milliseconds. */
export type EventRecord = {
  /** Counts over all events in the order of their commits. */
  seq: number;
  id: string;
  at: number;
} & (
  | (SubmissionEventRecord & MaybeEnded)
  | ({ type: UpstreamEventType; upstream: string; reason: string } & MaybeEnded)
  | ({ type: AlertEventType; alert: Alert } & MaybeEnded)
  | { type: typeof TestEventType.webhook; webhookId: string }
  | { type: typeof TestEventType.channel; channel: string }
);

/**
 * When the condition ended, or the submission became finalized or was cancelled, if it had: late
 * messages to people are no warnings. Not in the event's body.
 */
type MaybeEnded = { endedAt?: number | null };

export type DamagedEvent = {
  seq: number;
  id: string;
  /** Type and time as stored. */
  type: string;
  at: number;
  damage: DamagedRowError;
};

type SubmissionEventRecord = {
  type: SubmissionEventType;
  submission: ShownSubmission & { deadlineAt: number };
  /** The submission before the event. */
  previous: {
    status: Status;
    upstreamState: string | null;
    error: string | null;
    envelope: string | null;
  };
};

/** Size limit of an event as JSON. Data of the upstream is left out of a larger event. */
export const MAX_EVENT_BYTES = 20_000;

const head = {
  id: z.string().describe('The same in every retry, so that receivers can drop duplicates'),
  timestamp: timeSchema,
};

const sequence = z
  .int()
  .describe(
    'Counts over all events in the order of their commits: of two events of a submission, the larger is the newer one',
  );

const submissionEventType = z.enum(SubmissionEventType).meta({ id: 'SubmissionEventType' });
const upstreamEventType = z.enum(UpstreamEventType).meta({ id: 'UpstreamEventType' });
const alertEventType = z.enum(AlertEventType).meta({ id: 'AlertEventType' });
export const alertRuleSchema = z.enum(ALERT_RULES).meta({ id: 'AlertRule' });

const eventSubmissionSchema = z
  .object({
    ...submissionFields,
    deadline_at: timeSchema.describe('As requested; outages of the upstream extend it'),
  })
  .describe('The submission at the time of the event')
  .meta({ id: 'EventSubmission' });

const submissionEventSchema = z
  .object({
    ...head,
    type: submissionEventType,
    data: z.object({
      sequence,
      submission: eventSubmissionSchema,
      previous_status: statusSchema.describe(
        'The status before the event; equal if it did not change',
      ),
      previous_upstream_state: z.string().nullable(),
      previous_error: z.string().nullable(),
      previous_data: upstreamDataSchema.describe(
        "The upstream's `data` before the event; equal if it did not change",
      ),
      cut: z
        .boolean()
        .describe(
          `True: the event would be ${MAX_EVENT_BYTES / 1_000} kB or more, so data of the upstream is left out or truncated; \`href\` has all of it`,
        ),
      href: z.string().describe('Path of the submission on the dawatch server'),
    }),
  })
  .meta({ id: 'SubmissionEvent', title: 'An event of a submission' });

const upstreamEventSchema = z
  .object({
    ...head,
    type: upstreamEventType,
    data: z.object({
      sequence,
      upstream: z.string(),
      reason: z
        .string()
        .describe(
          'The response that began the outage, such as HTTP 503; also in the event of its end',
        ),
    }),
  })
  .meta({ id: 'UpstreamEvent', title: 'An event of an upstream' });

const alertEventSchema = z
  .object({
    ...head,
    type: alertEventType,
    data: z.object({
      sequence,
      alert: z.object({
        rule: alertRuleSchema,
        subject: z.string().describe('The upstream or destination concerned'),
        summary: z.string().describe('One sentence for operators'),
        count: z.int().nullable().describe('Number of affected submissions or deliveries'),
        since: timeSchema.describe('Since when the condition has held'),
        id: z.int().describe('Identifies this occurrence of the alert'),
        link: z
          .string()
          .optional()
          .describe('Address of the dashboard page about it; absent without `server.public_url`'),
        muted: z
          .literal(true)
          .optional()
          .describe(
            'True: recorded while the alert was muted, and sent to no webhook, channel or queue; only in the live feed',
          ),
      }),
    }),
  })
  .meta({ id: 'AlertEvent', title: 'An alert: raised, resolved' });

const testEventSchema = z
  .object({
    ...head,
    type: z.literal(TestEventType.webhook),
    data: z.object({ sequence, webhook_id: z.string() }),
  })
  .meta({ id: 'TestEvent', title: 'A test of one webhook' });

const channelTestEventSchema = z
  .object({
    ...head,
    type: z.literal(TestEventType.channel),
    data: z.object({ sequence, channel: z.string().describe('Name of the channel') }),
  })
  .meta({ id: 'ChannelTestEvent', title: 'A test of one channel' });

/** The body of a webhook request, the data of the live feed, and the data of a job. */
export const eventSchema = z
  .union([
    submissionEventSchema,
    upstreamEventSchema,
    alertEventSchema,
    testEventSchema,
    channelTestEventSchema,
  ])
  .describe('An event')
  .meta({ id: 'Event' });
export type EventBody = z.output<typeof eventSchema>;

export function toEventBody(event: EventRecord): EventBody {
  const { id, seq } = event;
  const timestamp = iso(event.at);
  if ('upstream' in event) {
    const { type, upstream, reason } = event;
    return { id, type, timestamp, data: { sequence: seq, upstream, reason } };
  }
  if ('webhookId' in event)
    return {
      id,
      type: event.type,
      timestamp,
      data: { sequence: seq, webhook_id: event.webhookId },
    };
  if ('channel' in event)
    return { id, type: event.type, timestamp, data: { sequence: seq, channel: event.channel } };
  if ('alert' in event) {
    const alert = { ...event.alert, since: iso(event.alert.since) };
    return { id, type: event.type, timestamp, data: { sequence: seq, alert } };
  }
  const { type, submission, previous } = event;
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
      previous_data: storedData(previous.envelope, `the history of ${submission.submissionId}`),
      cut: false,
      href: `/v1/submissions/${encodeURIComponent(submission.submissionId)}`,
    },
  };
}

export function toEventJson(event: EventRecord): string {
  const body = toEventBody(event);
  const whole = JSON.stringify(body);
  return Buffer.byteLength(whole) < MAX_EVENT_BYTES ? whole : JSON.stringify(truncateBody(body));
}

/** With errors of this length and without data, every event is below the limit; see the test. */
const MAX_ERROR_CHARS = 500;

function truncateBody(body: EventBody): EventBody {
  if (!('submission' in body.data)) return body;
  const { data } = body;
  return {
    ...body,
    data: {
      ...data,
      submission: { ...data.submission, data: null, error: truncate(data.submission.error) },
      previous_error: truncate(data.previous_error),
      previous_data: null,
      cut: true,
    },
  } as EventBody;
}

function truncate(text: string | null): string | null {
  return text === null || text.length <= MAX_ERROR_CHARS
    ? text
    : `${text.slice(0, MAX_ERROR_CHARS).toWellFormed()}…`;
}

/** Allows additional fields, because a newer server may send more. */
export function eventJsonSchema() {
  const { $schema, ...schema } = z.toJSONSchema(z.union(eventSchema.options), {
    io: 'input',
    override: simplify,
  });
  return {
    $schema,
    title: 'Events of dawatch',
    ...schema,
    description:
      'The body of a webhook, the data of the live feed, the data of a job. Ignore types that are not listed here: ' +
      'a newer server may send more.',
  };
}

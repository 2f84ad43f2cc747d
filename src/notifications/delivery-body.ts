import { z } from 'zod';
import { checkRange, nextCursorSchema, rowId, timeSchema } from '../http/query.ts';
import { DamagedRowError } from '../lib/stored.ts';
import { iso } from '../lib/timestamps.ts';
import { submissionIdSchema } from '../submissions/track-request.ts';
import { DEAD_REASONS, DELIVERY_STATES, type Delivery, type DeliveryAttempt } from './delivery.ts';
import {
  type DamagedEvent,
  type EventBody,
  type EventRecord,
  eventSchema,
  toEventJson,
} from './event-body.ts';
import { eventTypeSchema, MAX_TYPES } from './subscription.ts';

export const deliveryIdSchema = rowId('a delivery', '4711');

export const destinationSchema = z
  .string()
  .max(300)
  .refine(
    isDestination,
    'must be webhook:<id>, channel:<name>, or callback:<origin> like callback:https://example.com',
  )
  .describe('The destination: webhook:<id>, channel:<name> or callback:<origin>')
  .meta({ examples: ['callback:https://example.com'] });

export const eventIdSchema = z
  .string()
  .regex(/^evt_\w{1,64}$/, 'must be the id of an event: evt_…')
  .describe('Only deliveries of this event')
  .meta({ examples: ['evt_0b5ad1c3f1e14f0f9b8f4f6f0d6d7a11'] });

const moment = z.iso.datetime({ offset: true, error: 'must be a time like 2026-01-02T03:04:05Z' });

export const replaySchema = z
  .strictObject({
    destination: destinationSchema,
    since: moment.describe('Only events from this time on'),
    until: moment.optional().describe('Only events before this time'),
    event_types: z
      .array(eventTypeSchema)
      .min(1)
      .max(MAX_TYPES)
      .optional()
      .describe('Only events of these types: exact types, or wildcards like submission.*'),
    submission_id: submissionIdSchema.optional().describe('Only events about this submission'),
    dry_run: z.boolean().default(false).describe('Only count: nothing is sent'),
  })
  .superRefine(({ since, until }, context) =>
    checkRange(context, {
      since: Date.parse(since),
      until: until === undefined ? until : Date.parse(until),
      name: 'until',
    }),
  )
  .meta({
    id: 'ReplayRequest',
    examples: [
      { destination: 'webhook:wh_0b5ad1c3f1e14f0f9b8f4f6f0d6d7a11', since: '2026-01-02T03:04:05Z' },
    ],
  });

export const replayedSchema = z
  .object({
    replayed: z
      .int()
      .describe('Number of deliveries that were scheduled again; with `dry_run`, that would be'),
  })
  .describe('The dead letters and missed events are scheduled again, or counted')
  .meta({ id: 'ReplayedDeliveries', examples: [{ replayed: 12 }] });

const EXAMPLE = {
  id: 4711,
  event_id: 'evt_0b5ad1c3f1e14f0f9b8f4f6f0d6d7a11',
  event_type: 'upstream.down',
  submission_id: null,
  destination: 'webhook:wh_0b5ad1c3f1e14f0f9b8f4f6f0d6d7a11',
  state: 'waiting',
  dead_reason: null,
  attempts_made: 1,
  last_http_status: 503,
  last_error: 'HTTP 503',
  next_at: '2026-01-02T03:04:10.456Z',
  created_at: '2026-01-02T03:04:05.123Z',
  ended_at: null,
} as const;
const ATTEMPT_EXAMPLE = {
  at: '2026-01-02T03:04:05.130Z',
  duration_ms: 12,
  http_status: 503,
  error: 'HTTP 503',
  response: 'busy',
};
const EVENT_EXAMPLE = {
  id: EXAMPLE.event_id,
  type: EXAMPLE.event_type,
  timestamp: EXAMPLE.created_at,
  data: { sequence: 42, upstream: 'default' },
};

const deliveryStateSchema = z
  .enum(DELIVERY_STATES)
  .describe('waiting: for an attempt; dead: a dead letter; discarded: its webhook was deleted')
  .meta({ id: 'DeliveryState' });
const deadReasonSchema = z
  .enum(DEAD_REASONS)
  .describe('Why a delivery became a dead letter')
  .meta({ id: 'DeadReason' });

export const deliverySchema = z
  .object({
    id: z.int(),
    event_id: z.string().describe('The `webhook-id` header, the same for all attempts'),
    event_type: z.string(),
    submission_id: z.string().nullable().describe('null for events that concern no submission'),
    destination: z.string().describe('webhook:<id>, channel:<name>, or callback:<origin>'),
    state: deliveryStateSchema,
    dead_reason: deadReasonSchema.nullable(),
    attempts_made: z.int().describe('Attempts since it was created or last replayed'),
    last_http_status: z
      .int()
      .nullable()
      .describe('Of the newest attempt, also if that was before a replay; null without a response'),
    last_error: z
      .string()
      .nullable()
      .describe('Of the newest attempt; null if it succeeded, or if there was none'),
    next_at: timeSchema.nullable().describe('Time of the next attempt'),
    created_at: timeSchema,
    ended_at: timeSchema.nullable(),
  })
  .describe('The delivery of one event to one destination')
  .meta({ id: 'Delivery', examples: [EXAMPLE] });

const attemptSchema = z
  .object({
    at: timeSchema,
    duration_ms: z.number(),
    http_status: z.int().nullable().describe('null without a response'),
    error: z.string().nullable().describe('null on success'),
    response: z.string().nullable().describe('Beginning of the response body, unchanged'),
  })
  .describe('One request of a delivery')
  .meta({ id: 'DeliveryAttempt' });

export const deliveryDetailsSchema = deliverySchema
  .extend({
    event: eventSchema.describe('The event as sent'),
    attempts: z.array(attemptSchema).describe('All attempts, oldest first'),
  })
  .describe('A delivery with its event and attempts')
  .meta({
    id: 'DeliveryDetails',
    examples: [{ ...EXAMPLE, event: EVENT_EXAMPLE, attempts: [ATTEMPT_EXAMPLE] }],
  });

export const deliveryListSchema = z
  .object({
    deliveries: z.array(deliverySchema).describe('Newest first'),
    next_cursor: nextCursorSchema,
  })
  .describe('A page of deliveries')
  .meta({ id: 'DeliveryPage', examples: [{ deliveries: [EXAMPLE], next_cursor: null }] });

export function toDeliveryBody(delivery: Delivery): z.output<typeof deliverySchema> {
  return {
    id: delivery.id,
    event_id: delivery.eventId,
    event_type: delivery.eventType,
    submission_id: delivery.submissionId,
    destination: delivery.destination,
    state: delivery.state,
    dead_reason: delivery.deadReason,
    attempts_made: delivery.attempts,
    last_http_status: delivery.lastHttpStatus,
    last_error: delivery.lastError,
    next_at: delivery.nextAt === null ? null : iso(delivery.nextAt),
    created_at: iso(delivery.createdAt),
    ended_at: delivery.endedAt === null ? null : iso(delivery.endedAt),
  };
}

/** Throws DamagedRowError. */
export function toDeliveryDetails(found: {
  delivery: Delivery;
  event: EventRecord | DamagedEvent;
  attempts: readonly DeliveryAttempt[];
}): z.output<typeof deliveryDetailsSchema> {
  const { event } = found;
  if ('damage' in event) throw new DamagedRowError(`the event ${event.id}`, 'content');
  return {
    ...toDeliveryBody(found.delivery),
    // As sent, that is shortened if the complete event would be too long.
    event: JSON.parse(toEventJson(event)) as EventBody,
    attempts: found.attempts.map(({ at, durationMs, httpStatus, error, response }) => ({
      at: iso(at),
      duration_ms: durationMs,
      http_status: httpStatus,
      error,
      response,
    })),
  };
}

function isDestination(text: string): boolean {
  const origin = /^callback:(https?:.*)/s.exec(text)?.[1];
  return origin === undefined
    ? /^(?:webhook|channel):[\w-]{1,64}$/.test(text)
    : URL.parse(origin)?.origin === origin;
}

import type { FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { actorOf } from '../access/access.ts';
import type { AuditTrail } from '../access/audit-store.ts';
import { operations, problemResponses, sendProblem } from '../http/problems.ts';
import {
  nextCursor,
  nextCursorSchema,
  pageOf,
  pageParameters,
  rowId,
  type TypedServer,
  timeSchema,
} from '../http/typed-server.ts';
import { type Clock, iso, isoOrNull } from '../lib/clock.ts';
import { submissionIdSchema } from '../submissions/track-request.ts';
import type { Deliveries } from './deliveries-store.ts';
import {
  DEAD_REASONS,
  DELIVERY_FILTERS,
  DELIVERY_STATES,
  type Delivery,
  type DeliveryAttempt,
  parseDestination,
} from './delivery.ts';
import {
  type DamagedEvent,
  type EventBody,
  type EventRecord,
  eventSchema,
  toEventJson,
} from './event-body.ts';
import type { Outbox } from './outbox.ts';
import type { Webhooks } from './webhooks-store.ts';

const deliveryIdSchema = rowId('a delivery', '4711');

const destinationSchema = z
  .string()
  .max(300)
  .refine(
    isDestination,
    'must be webhook:<id>, channel:<name>, or callback:<origin> like callback:https://example.com',
  )
  .describe('The destination: webhook:<id>, channel:<name> or callback:<origin>')
  .meta({ examples: ['callback:https://example.com'] });

const replaySchema = z
  .strictObject({
    destination: destinationSchema,
    error: z
      .string()
      .optional()
      .describe('Only deliveries with this last_error, also those that wait for a retry'),
  })
  .meta({
    id: 'ReplayRequest',
    examples: [{ destination: 'webhook:wh_0b5ad1c3f1e14f0f9b8f4f6f0d6d7a11' }],
  });

const replayedSchema = z
  .object({ replayed: z.int().describe('Number of deliveries that were scheduled again') })
  .describe('They are scheduled again')
  .meta({ id: 'ReplayedDeliveries' });

const deliveryStateSchema = z
  .enum(DELIVERY_STATES)
  .describe('waiting: for an attempt; dead: a dead letter; discarded: its webhook was deleted')
  .meta({ id: 'DeliveryState' });
const deliveryFilterSchema = z
  .enum(DELIVERY_FILTERS)
  .describe('A state; failing: waiting for a retry after a failed attempt')
  .meta({ id: 'DeliveryFilter' });
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
      .describe(
        'Of the newest attempt, also if only some recipients of a mail refused it; null: none',
      ),
    next_at: timeSchema.nullable().describe('Time of the next attempt'),
    created_at: timeSchema,
    ended_at: timeSchema.nullable(),
  })
  .describe('The delivery of one event to one destination')
  .meta({ id: 'Delivery' });

const attemptSchema = z
  .object({
    at: timeSchema,
    duration_ms: z.number(),
    http_status: z
      .int()
      .nullable()
      .describe('null without a response, and for mail and queues, which have none'),
    error: z.string().nullable().describe('null on success with all recipients'),
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
  .meta({ id: 'DeliveryDetails' });

export const deliveryListSchema = z
  .object({
    deliveries: z.array(deliverySchema).describe('Newest first'),
    next_cursor: nextCursorSchema,
  })
  .describe('A page of deliveries')
  .meta({ id: 'DeliveryPage' });

function toDeliveryBody(delivery: Delivery): z.output<typeof deliverySchema> {
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
    next_at: isoOrNull(delivery.nextAt),
    created_at: iso(delivery.createdAt),
    ended_at: isoOrNull(delivery.endedAt),
  };
}

function toDeliveryDetails(found: {
  delivery: Delivery;
  event: EventRecord | DamagedEvent;
  attempts: readonly DeliveryAttempt[];
}): z.output<typeof deliveryDetailsSchema> {
  const { event } = found;
  if ('damage' in event) throw event.damage;
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

/** Sends a test event. undefined: its destination is disabled or not configured. */
export function sendTest(
  ledger: { audit: AuditTrail; outbox: Outbox; deliveries: Deliveries },
  sent: {
    test: Parameters<Outbox['addTestEvent']>[0];
    entry: { action: 'webhooks.test' | 'channels.test'; subject: string };
    request: FastifyRequest;
    now: number;
  },
): z.output<typeof deliverySchema> | undefined {
  const { test, entry, request, now } = sent;
  const add = () => ledger.outbox.addTestEvent(test, now);
  const id = ledger.audit.change(actorOf(request), now, add, (added) => !!added && entry);
  const found = id && ledger.deliveries.get(id);
  return found ? toDeliveryBody(found.delivery) : undefined;
}

function isDestination(text: string): boolean {
  const origin = /^callback:(https?:.*)/s.exec(text)?.[1];
  return origin === undefined
    ? /^(?:webhook|channel):[\w-]{1,64}$/.test(text)
    : URL.parse(origin)?.origin === origin;
}

const READ = { roles: ['operator'] } as const;
const WRITE = { roles: [] } as const;

const params = z.strictObject({ id: deliveryIdSchema });
const replayProblems = problemResponses(404, 409, 507);

const querySchema = z.strictObject({
  destination: destinationSchema
    .optional()
    .describe(
      'Only deliveries to this destination: webhook:<id>, channel:<name> or callback:<origin>',
    ),
  state: deliveryFilterSchema.optional().describe('Only deliveries in this state'),
  submission_id: submissionIdSchema
    .optional()
    .describe('Only deliveries of events about this submission'),
  ...pageParameters,
});

const OPERATIONS = operations('notifications', {
  listDeliveries: {
    summary: 'List deliveries, newest first',
    description:
      'All conditions apply together. A page may have fewer entries than `limit`, even none: continue until `next_cursor` is ' +
      'null. Ended deliveries are kept for 30 days, or as the setting `retention` defines.',
    querystring: querySchema,
    response: { 200: deliveryListSchema },
  },
  getDelivery: {
    summary: 'Get a delivery with its event and attempts',
    params,
    response: { 200: deliveryDetailsSchema, ...problemResponses(404) },
  },
  replayDelivery: {
    summary: 'Replay a delivery',
    description:
      'Sends a delivery of any state again, with a new series of attempts and the same event id.',
    params,
    response: { 202: deliverySchema, ...replayProblems },
  },
  replayDeadLetters: {
    summary: 'Replay the dead letters of a destination',
    description:
      'Those of a webhook, a channel, the callbacks to one origin or, with webhook:callbacks, all callbacks. They include the ' +
      'events while it was disabled.',
    body: replaySchema,
    response: { 202: replayedSchema, ...replayProblems },
  },
});

export function registerDeliveries(
  app: TypedServer,
  deps: { ledger: { audit: AuditTrail; webhooks: Webhooks; deliveries: Deliveries }; clock: Clock },
): void {
  const { clock } = deps;
  const { audit, deliveries, webhooks } = deps.ledger;

  app.get(
    '/v1/deliveries',
    { config: { ...READ, isExpensive: true }, schema: OPERATIONS.listDeliveries },
    async ({ query }) => {
      const { destination, state, submission_id: submissionId } = query;
      const { before, limit } = pageOf(query);
      const after = before === undefined ? undefined : [before];
      const page = deliveries.list({ destination, state, submissionId, limit, after });
      return {
        deliveries: page.deliveries.map(toDeliveryBody),
        next_cursor: nextCursor(page.next === null ? null : Number(page.next[0])),
      };
    },
  );

  app.get(
    '/v1/deliveries/:id',
    { config: READ, schema: OPERATIONS.getDelivery },
    async ({ params: { id } }, reply) => {
      const found = deliveries.get(Number(id));
      return found ? reply.send(toDeliveryDetails(found)) : unknown(reply, id);
    },
  );

  app.post(
    '/v1/deliveries/:id/replay',
    { config: WRITE, schema: OPERATIONS.replayDelivery },
    async (request, reply) => {
      const { id } = request.params;
      const now = clock.now();
      const entry = { action: 'deliveries.replay', subject: id } as const;
      const replay = () => deliveries.replay(Number(id), now);
      const result = audit.change(
        actorOf(request),
        now,
        replay,
        (state) => state === 'waiting' && entry,
      );
      switch (result) {
        case 'unknown':
          return unknown(reply, id);
        case 'disabled':
          return sendProblem(reply, 409, 'its destination is disabled or no longer configured');
        case 'discarded':
          return sendProblem(reply, 409, 'its webhook was deleted');
        case 'waiting': {
          const found = deliveries.get(Number(id));
          return found ? reply.code(202).send(toDeliveryBody(found.delivery)) : unknown(reply, id);
        }
        default:
          return result satisfies never;
      }
    },
  );

  app.post(
    '/v1/deliveries/replay',
    { config: WRITE, schema: OPERATIONS.replayDeadLetters },
    async (request, reply) => {
      const { destination, error } = request.body;
      const now = clock.now();
      const parsed = parseDestination(destination);
      if (parsed.kind === 'webhook' && !webhooks.get(parsed.webhookId, now))
        return sendProblem(reply, 404, `there is no webhook ${parsed.webhookId}`);
      const replay = () => deliveries.replayDead(destination, now, error);
      const entry = { action: 'deliveries.replay', subject: destination } as const;
      const replayed = audit.change(
        actorOf(request),
        now,
        replay,
        (count) => count !== undefined && { ...entry, detail: String(count) },
      );
      if (replayed === undefined)
        return sendProblem(reply, 409, `${destination} is disabled or not configured`);
      return reply.code(202).send({ replayed });
    },
  );
}

function unknown(reply: FastifyReply, id: string): FastifyReply {
  return sendProblem(
    reply,
    404,
    `there is no delivery ${id}; ended deliveries are removed after a while`,
  );
}

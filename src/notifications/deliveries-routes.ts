import type { FastifyReply } from 'fastify';
import { z } from 'zod';
import { actorOf } from '../access/access.ts';
import type { AuditTrail } from '../access/audit-store.ts';
import { operations, problemResponses, sendProblem } from '../http/problems.ts';
import {
  CURSOR_REFUSAL,
  checkRange,
  cursorText,
  fromCursor,
  fromTimeCursor,
  pageLimit,
  SEVERAL,
  severalOf,
  timeParameter,
  toCursor,
  toTimeCursor,
} from '../http/query.ts';
import type { TypedServer } from '../http/typed-server.ts';
import type { Position } from '../ledger/bounded-search.ts';
import type { Clock } from '../lib/clock.ts';
import { submissionIdSchema } from '../submissions/track-request.ts';
import type { Deliveries } from './deliveries-store.ts';
import { DELIVERY_STATES, parseDestination, webhookDestination } from './delivery.ts';
import {
  deliveryDetailsSchema,
  deliveryIdSchema,
  deliveryListSchema,
  deliverySchema,
  destinationSchema,
  eventIdSchema,
  replayedSchema,
  replaySchema,
  toDeliveryBody,
  toDeliveryDetails,
} from './delivery-body.ts';
import { deliveryOrderOf } from './delivery-filter.ts';
import { typesSchema } from './event-filter.ts';
import { typesCovered } from './subscription.ts';
import { webhookIdSchema } from './webhook-body.ts';
import type { Webhooks } from './webhooks-store.ts';

const READ = { scopes: ['operations:read', 'webhooks:write'] } as const;
const WRITE = { scopes: ['webhooks:write'] } as const;

const params = z.strictObject({ id: deliveryIdSchema });
const replayProblems = problemResponses(404, 409, 507);

const querySchema = z
  .strictObject({
    webhook_id: webhookIdSchema
      .optional()
      .describe('Only deliveries to this webhook; short for destination=webhook:<id>'),
    destination: destinationSchema
      .optional()
      .describe(
        'Only deliveries to this destination: webhook:<id>, channel:<name> or callback:<origin>',
      ),
    state: severalOf(DELIVERY_STATES)
      .optional()
      .describe(
        `Only deliveries in these states, separated by commas or repeated: ${DELIVERY_STATES.join(', ')}`,
      )
      .meta({ ...SEVERAL, examples: ['dead'] }),
    submission_id: submissionIdSchema
      .optional()
      .describe('Only deliveries of events about this submission'),
    event_id: eventIdSchema.optional(),
    event_type: typesSchema
      .optional()
      .describe(
        'Only events of these types: exact ones, or wildcards like submission.*; separated by commas or repeated',
      ),
    since: timeParameter.optional().describe('Only events at this time or later'),
    until: timeParameter.optional().describe('Only events before this time'),
    limit: pageLimit,
    cursor: cursorText(64).optional(),
  })
  .refine(({ webhook_id, destination }) => webhook_id === undefined || destination === undefined, {
    path: ['destination'],
    error: 'cannot be combined with webhook_id',
  })
  .superRefine((query, context) => {
    checkRange(context, { since: query.since, until: query.until, name: 'until' });
    if (query.cursor !== undefined && positionOf(query) === undefined)
      context.addIssue({ code: 'custom', path: ['cursor'], message: CURSOR_REFUSAL });
  });

const OPERATIONS = operations('notifications', {
  listDeliveries: {
    summary: 'List deliveries, newest first',
    description:
      'All conditions apply together. The newest is the one that was created last; with `since` or `until` the list is ordered by ' +
      'the time of the event. A page takes a bounded time: it may have fewer entries than `limit`, even none, although more ' +
      'follow. Continue until `next_cursor` is null. Ended deliveries are kept as the settings `deliveries.keep_s` and ' +
      '`retention` define.',
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
      'Replays dead letters of events since a time: those of a webhook, a channel, the callbacks to one origin or, with ' +
      'webhook:callbacks, all callbacks. Includes events that a webhook missed while it was disabled. With `dry_run` it only counts ' +
      'them, and is not audited.',
    body: replaySchema,
    response: { 200: replayedSchema, 202: replayedSchema, ...replayProblems },
  },
});

/** Lists deliveries and replays them. */
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
      const { webhook_id, event_type } = query;
      const { deliveries: page, next } = deliveries.list({
        destination: webhook_id === undefined ? query.destination : webhookDestination(webhook_id),
        states: query.state,
        submissionId: query.submission_id,
        eventId: query.event_id,
        eventTypes: event_type && typesCovered(event_type),
        since: query.since,
        until: query.until,
        limit: Number(query.limit),
        after: positionOf(query),
      });
      return { deliveries: page.map(toDeliveryBody), next_cursor: cursorOf(query, next) };
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
      const result = audit.change(actorOf(request), now, replay, (made) =>
        made === 'waiting' ? entry : undefined,
      );
      switch (result) {
        case 'unknown':
          return unknown(reply, id);
        case 'disabled':
          return conflict(reply, 'its destination is disabled or no longer configured');
        case 'discarded':
          return conflict(reply, 'its webhook was deleted');
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
      const {
        destination,
        dry_run: isDryRun,
        event_types: types,
        submission_id: submissionId,
        ...times
      } = request.body;
      const since = Date.parse(times.since);
      const now = clock.now();
      const parsed = parseDestination(destination);
      if (parsed.kind === 'webhook' && !webhooks.get(parsed.webhookId, now))
        return sendProblem(reply, {
          status: 404,
          detail: `there is no webhook ${parsed.webhookId}`,
        });
      const only = {
        until: times.until === undefined ? undefined : Date.parse(times.until),
        eventTypes: types && typesCovered(types),
        submissionId,
      };
      const conditions = [
        `since ${times.since}`,
        ...(times.until === undefined ? [] : [`until ${times.until}`]),
        ...(types ? [`types ${types.join(' ')}`] : []),
        ...(submissionId === undefined ? [] : [`submission ${submissionId}`]),
      ].join(', ');
      const replay = () => deliveries.replayDead(destination, since, now, only);
      const entryOf = (count: number | undefined) =>
        count === undefined
          ? undefined
          : ({
              action: 'deliveries.replay',
              subject: destination,
              detail: `${count} ${conditions}`,
            } as const);
      const replayed = isDryRun
        ? deliveries.countDead(destination, since, only)
        : audit.change(actorOf(request), now, replay, entryOf);
      if (replayed === undefined)
        return conflict(reply, `${destination} is disabled or not configured`);
      return reply.code(isDryRun ? 200 : 202).send({ replayed });
    },
  );
}

type Times = { since?: number | undefined; until?: number | undefined };

/**
 * Returns the position of the cursor; undefined if there is none, or if it belongs to a list with
 * another order.
 */
function positionOf({
  cursor,
  ...times
}: Times & { cursor?: string | undefined }): Position | undefined {
  if (cursor === undefined) return undefined;
  if (deliveryOrderOf(times) === 'time') return fromTimeCursor('created', cursor);
  const position = fromCursor(cursor);
  return position === undefined ? undefined : [position];
}

function cursorOf(times: Times, next: Position | null): string | null {
  if (next === null) return null;
  const [first, row] = next.map(Number);
  return deliveryOrderOf(times) === 'time'
    ? toTimeCursor('created', [first ?? 0, row ?? 0])
    : toCursor(first ?? 0);
}

function unknown(reply: FastifyReply, id: string): FastifyReply {
  return sendProblem(reply, {
    status: 404,
    detail: `there is no delivery ${id}; ended deliveries are removed after a while`,
  });
}

function conflict(reply: FastifyReply, detail: string): FastifyReply {
  return sendProblem(reply, { status: 409, detail });
}

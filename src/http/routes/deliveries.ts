import type { FastifyInstance, FastifyReply } from 'fastify';
import type { ZodTypeProvider } from 'fastify-type-provider-zod';
import { z } from 'zod';
import {
  DELIVERY_STATES,
  type Delivery,
  parseDestination,
  webhookDestination,
} from '../../domain/notifications/delivery.ts';
import { type ReportUnreadable, unreadableReporter } from '../../domain/stored.ts';
import { submissionIdSchema } from '../../domain/track-request.ts';
import { cursorSchema, fromCursor, toCursor } from '../cursor.ts';
import type { Deliveries, Webhooks } from '../ports.ts';
import { problemResponse, sendProblem } from '../problems.ts';
import { wholeNumber } from '../whole-number.ts';
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
import { webhookIdSchema } from './webhook-body.ts';

const tags = ['notifications'];
const params = z.strictObject({ id: deliveryIdSchema });
const problems = { 400: problemResponse, 401: problemResponse, 403: problemResponse, 503: problemResponse };
const replayProblems = { ...problems, 404: problemResponse, 409: problemResponse, 507: problemResponse };

const querySchema = z
  .strictObject({
    webhook_id: webhookIdSchema.optional().describe('Only to this webhook: short for destination=webhook:<id>'),
    destination: destinationSchema
      .optional()
      .describe('Only to there: webhook:<id>, channel:<name>, callback:<origin>'),
    state: z
      .enum(DELIVERY_STATES)
      .optional()
      .describe('Only those')
      .meta({ examples: ['dead'] }),
    submission_id: submissionIdSchema.optional().describe('Only of events about this submission'),
    event_id: eventIdSchema.optional(),
    limit: wholeNumber({ min: 1, max: 1_000 }).default('100'),
    cursor: cursorSchema.optional(),
  })
  .refine(({ webhook_id, destination }) => webhook_id === undefined || destination === undefined, {
    path: ['destination'],
    error: 'can not be combined with webhook_id',
  });

/** Which event was sent where, what came of it, and sending it again. */
export function registerDeliveries(
  instance: FastifyInstance,
  deps: { deliveries: Deliveries; webhooks: Webhooks; onUnreadable: ReportUnreadable },
): void {
  const { deliveries, webhooks } = deps;
  const reported = unreadableReporter(deps.onUnreadable, 'delivery');
  const shown = (delivery: Delivery) => reported(String(delivery.id), toDeliveryBody(delivery));
  const app = instance.withTypeProvider<ZodTypeProvider>();

  app.get(
    '/v1/deliveries',
    {
      config: { isExpensive: true },
      schema: {
        operationId: 'listDeliveries',
        summary: 'List deliveries, newest first',
        description: 'Kept for a while after they ended: the settings `deliveries.keep_s` and `retention`.',
        tags,
        querystring: querySchema,
        response: { 200: deliveryListSchema, ...problems },
      },
    },
    async ({ query }) => {
      const { webhook_id, state, limit, cursor } = query;
      const page = deliveries.list({
        destination: webhook_id === undefined ? query.destination : webhookDestination(webhook_id),
        state,
        submissionId: query.submission_id,
        eventId: query.event_id,
        limit: Number(limit),
        before: cursor === undefined ? undefined : fromCursor(cursor),
      });
      return {
        deliveries: page.deliveries.map(shown),
        next_cursor: page.nextBefore === null ? null : toCursor(page.nextBefore),
      };
    },
  );

  app.get(
    '/v1/deliveries/:id',
    {
      schema: {
        operationId: 'getDelivery',
        summary: 'One delivery with its event and every attempt',
        tags,
        params,
        response: { 200: deliveryDetailsSchema, ...problems, 404: problemResponse },
      },
    },
    async ({ params: { id } }, reply) => {
      const found = deliveries.get(Number(id));
      return found ? reply.send(toDeliveryDetails(found, deps.onUnreadable)) : unknown(reply, id);
    },
  );

  app.post(
    '/v1/deliveries/:id/replay',
    {
      schema: {
        operationId: 'replayDelivery',
        summary: 'Send one delivery again',
        description: 'Whatever became of it, from its first attempt on, with the same event id.',
        tags,
        params,
        response: { 202: deliverySchema, ...replayProblems },
      },
    },
    async ({ params: { id } }, reply) => {
      const outcome = deliveries.replay(Number(id));
      switch (outcome) {
        case 'unknown':
          return unknown(reply, id);
        case 'disabled':
          return conflict(reply, 'nothing is sent to where it goes: that is disabled, or no longer there');
        case 'discarded':
          return conflict(reply, 'the webhook that it was for was deleted');
        case 'waiting': {
          const found = deliveries.get(Number(id));
          return found ? reply.code(202).send(shown(found.delivery)) : unknown(reply, id);
        }
        default:
          return outcome satisfies never;
      }
    },
  );

  app.post(
    '/v1/deliveries/replay',
    {
      schema: {
        operationId: 'replayDeadLetters',
        summary: 'Send every dead letter of a destination again',
        description:
          'Of a webhook, a channel, the callbacks to one origin or, as webhook:callbacks, all of them; those of events since a time. ' +
          'With what a webhook missed since then while it was disabled.',
        tags,
        body: replaySchema,
        response: { 202: replayedSchema, ...replayProblems },
      },
    },
    async ({ body: { destination, since } }, reply) => {
      const parsed = parseDestination(destination);
      if (parsed.kind === 'webhook' && !webhooks.get(parsed.webhookId))
        return sendProblem(reply, { status: 404, detail: `there is no webhook ${parsed.webhookId}` });
      const replayed = deliveries.replayDead(destination, Date.parse(since));
      if (replayed === undefined)
        return conflict(reply, `nothing is sent to ${destination}: it is disabled, or not configured`);
      return reply.code(202).send({ replayed });
    },
  );
}

function unknown(reply: FastifyReply, id: string): FastifyReply {
  return sendProblem(reply, {
    status: 404,
    detail: `there is no delivery ${id}; ended ones are kept for a while only`,
  });
}

function conflict(reply: FastifyReply, detail: string): FastifyReply {
  return sendProblem(reply, { status: 409, detail });
}

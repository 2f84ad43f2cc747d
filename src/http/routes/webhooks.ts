import type { FastifyInstance, FastifyReply } from 'fastify';
import type { ZodTypeProvider } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { CALLBACKS_ID, type Webhook } from '../../domain/notifications/webhook.ts';
import { type ReportUnreadable, unreadableReporter } from '../../domain/stored.ts';
import { cursorSchema, fromCursor, toCursor } from '../cursor.ts';
import type { Deliveries, Webhooks } from '../ports.ts';
import { problemResponse, sendProblem } from '../problems.ts';
import { wholeNumber } from '../whole-number.ts';
import { deliverySchema, toDeliveryBody } from './delivery-body.ts';
import {
  newWebhookSchema,
  rotationSchema,
  toWebhookBody,
  toWebhookWithSecret,
  webhookIdSchema,
  webhookListSchema,
  webhookPatchSchema,
  webhookSchema,
  webhookWithSecretSchema,
} from './webhook-body.ts';

const tags = ['notifications'];
const params = z.strictObject({ id: webhookIdSchema });
const problems = { 400: problemResponse, 401: problemResponse, 403: problemResponse, 503: problemResponse };
const writeProblems = { ...problems, 507: problemResponse };

/** Whom events are sent to over HTTP. */
export function registerWebhooks(
  instance: FastifyInstance,
  deps: { webhooks: Webhooks; deliveries: Deliveries; onUnreadable: ReportUnreadable },
): void {
  const { webhooks, deliveries } = deps;
  const reported = unreadableReporter(deps.onUnreadable, 'webhook');
  const shown = (webhook: Webhook) => reported(webhook.id, toWebhookBody(webhook));
  const app = instance.withTypeProvider<ZodTypeProvider>();

  app.post(
    '/v1/webhooks',
    {
      schema: {
        operationId: 'createWebhook',
        summary: 'Have events sent to an address',
        description: 'Signed as Standard Webhooks 1.0 has it. The secret is shown this once.',
        tags,
        body: newWebhookSchema,
        response: { 201: webhookWithSecretSchema, ...writeProblems },
      },
    },
    async ({ body: { secret, ...webhook } }, reply) => {
      const refused = refusalOf(webhooks, { url: webhook.url, secret, signature: webhook.signature });
      if (refused) return invalid(reply, refused);
      const made = webhooks.create(webhook, secret);
      return reply.code(201).header('location', `/v1/webhooks/${made.webhook.id}`).send(toWebhookWithSecret(made));
    },
  );

  app.get(
    '/v1/webhooks',
    {
      config: { isExpensive: true },
      schema: {
        operationId: 'listWebhooks',
        summary: 'List webhooks, newest first',
        tags,
        querystring: z.strictObject({
          limit: wholeNumber({ min: 1, max: 1_000 }).default('100'),
          cursor: cursorSchema.optional(),
        }),
        response: { 200: webhookListSchema, ...problems },
      },
    },
    async ({ query }) => {
      const before = query.cursor === undefined ? undefined : fromCursor(query.cursor);
      const page = webhooks.list({ limit: Number(query.limit), before });
      return {
        webhooks: page.webhooks.map(shown),
        next_cursor: page.nextBefore === null ? null : toCursor(page.nextBefore),
      };
    },
  );

  app.get(
    '/v1/webhooks/:id',
    {
      schema: {
        operationId: 'getWebhook',
        summary: 'One webhook',
        tags,
        params,
        response: { 200: webhookSchema, ...problems, 404: problemResponse },
      },
    },
    async ({ params: { id } }, reply) => {
      const webhook = webhooks.get(id);
      return webhook ? reply.send(shown(webhook)) : unknown(reply, id);
    },
  );

  app.patch(
    '/v1/webhooks/:id',
    {
      schema: {
        operationId: 'updateWebhook',
        summary: 'Change a webhook, disable it, enable it again',
        description:
          'To disable it makes dead letters of what waits for it; these, and what it misses, can be replayed once it is enabled.',
        tags,
        params,
        body: webhookPatchSchema,
        response: { 200: webhookSchema, ...writeProblems, 404: problemResponse },
      },
    },
    async ({ params: { id }, body }, reply) => {
      if (id === CALLBACKS_ID && body.url !== undefined)
        return invalid(reply, { field: 'url', reason: 'callbacks have no address of their own' });
      const refused = refusalOf(webhooks, { url: body.url });
      if (refused) return invalid(reply, refused);
      const webhook = webhooks.update(id, given(body));
      return webhook ? reply.send(shown(webhook)) : unknown(reply, id);
    },
  );

  app.delete(
    '/v1/webhooks/:id',
    {
      schema: {
        operationId: 'deleteWebhook',
        summary: 'Delete a webhook',
        description: 'What waits for it, and its dead letters, are discarded.',
        tags,
        params,
        response: {
          204: z.null().describe('It is gone'),
          ...writeProblems,
          404: problemResponse,
          409: problemResponse,
        },
      },
    },
    async ({ params: { id } }, reply) => {
      if (id === CALLBACKS_ID) return conflict(reply, `${CALLBACKS_ID} can't be deleted, only disabled`);
      return webhooks.delete(id) ? reply.code(204).send(null) : unknown(reply, id);
    },
  );

  app.post(
    '/v1/webhooks/:id/rotate',
    {
      schema: {
        operationId: 'rotateWebhookSecret',
        summary: 'Give a webhook another secret',
        description: 'For a while both sign, so that the receiver can change over. The new secret is shown this once.',
        tags,
        params,
        body: rotationSchema,
        response: { 200: webhookWithSecretSchema, ...writeProblems, 404: problemResponse },
      },
    },
    async ({ params: { id }, body: { keep_old_s, secret } }, reply) => {
      const webhook = webhooks.get(id);
      if (!webhook) return unknown(reply, id);
      const refused = refusalOf(webhooks, { secret, signature: webhook.signature });
      if (refused) return invalid(reply, refused);
      const rotated = webhooks.rotate(id, { keepOldMs: keep_old_s * 1_000, secret });
      return rotated ? reply.send(toWebhookWithSecret(rotated)) : unknown(reply, id);
    },
  );

  app.post(
    '/v1/webhooks/:id/test',
    {
      schema: {
        operationId: 'testWebhook',
        summary: 'Send a test event to one webhook alone',
        description: 'Whatever types and metadata it wants. What came of it: `/v1/deliveries/{id}`.',
        tags,
        params,
        response: { 202: deliverySchema, ...writeProblems, 404: problemResponse, 409: problemResponse },
      },
    },
    async ({ params: { id } }, reply) => {
      const webhook = webhooks.get(id);
      if (!webhook) return unknown(reply, id);
      if (webhook.url === null) return conflict(reply, `${id} has no address of its own to send a test to`);
      if (!webhook.enabled) return conflict(reply, `${id} is disabled, and nothing is sent to it`);
      const deliveryId = webhooks.test(id);
      const made = deliveryId === undefined ? undefined : deliveries.get(deliveryId);
      return made ? reply.code(202).send(toDeliveryBody(made.delivery)) : unknown(reply, id);
    },
  );
}

type Refusal = { field: 'url' | 'secret'; reason: string };

function refusalOf(
  webhooks: Webhooks,
  asked: { url?: string | undefined; secret?: string | undefined; signature?: Webhook['signature'] },
): Refusal | undefined {
  const { url, secret, signature = 'v1' } = asked;
  const ofUrl = url === undefined ? undefined : webhooks.refusalOf(url);
  if (ofUrl !== undefined) return { field: 'url', reason: ofUrl };
  const ofSecret = secret === undefined ? undefined : webhooks.refusalOfSecret(secret, signature);
  return ofSecret === undefined ? undefined : { field: 'secret', reason: ofSecret };
}

/** Without the fields that are not there: a patch of undefined would overwrite. */
function given<T extends object>(fields: T) {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]?: Exclude<T[K], undefined>;
  };
}

function invalid(reply: FastifyReply, { field, reason }: Refusal): FastifyReply {
  const errors = [{ pointer: `/${field}`, detail: reason }];
  return sendProblem(reply, { status: 400, detail: `body /${field}: ${reason}`, errors });
}

function unknown(reply: FastifyReply, id: string): FastifyReply {
  return sendProblem(reply, { status: 404, detail: `there is no webhook ${id}` });
}

function conflict(reply: FastifyReply, detail: string): FastifyReply {
  return sendProblem(reply, { status: 409, detail });
}

import type { FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { actorOf } from '../access/access.ts';
import type { AuditTrail } from '../access/audit-store.ts';
import { operations, problemResponses, sendInvalidField, sendProblem } from '../http/problems.ts';
import { nextCursor, pageOf, pageParameters } from '../http/query.ts';
import type { TypedServer } from '../http/typed-server.ts';
import type { Clock } from '../lib/clock.ts';
import { originOf } from '../submissions/option-changes.ts';
import { checkSecret, createSecret } from './channels/signing.ts';
import type { Deliveries } from './deliveries-store.ts';
import { deliverySchema, toDeliveryBody } from './delivery-body.ts';
import { CALLBACKS_ID, type Webhook } from './webhook.ts';
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
import type { Webhooks } from './webhooks-store.ts';

const READ = { scopes: ['operations:read', 'webhooks:write'] } as const;
const WRITE = { scopes: ['webhooks:write'] } as const;

const params = z.strictObject({ id: webhookIdSchema });

const OPERATIONS = operations('notifications', {
  createWebhook: {
    summary: 'Create a webhook',
    description:
      'Events are signed as in Standard Webhooks 1.0. The secret is returned only in this response.',
    body: newWebhookSchema,
    response: { 201: webhookWithSecretSchema, ...problemResponses(507) },
  },
  listWebhooks: {
    summary: 'List webhooks, newest first',
    querystring: z.strictObject(pageParameters),
    response: { 200: webhookListSchema },
  },
  getWebhook: {
    summary: 'Get a webhook',
    params,
    response: { 200: webhookSchema, ...problemResponses(404) },
  },
  updateWebhook: {
    summary: 'Change, disable or enable a webhook',
    description:
      'Disabling a webhook turns its waiting deliveries into dead letters. These, and events missed meanwhile, can be replayed once it is enabled.',
    params,
    body: webhookPatchSchema,
    response: { 200: webhookSchema, ...problemResponses(404, 507) },
  },
  deleteWebhook: {
    summary: 'Delete a webhook',
    description: 'Its waiting deliveries and dead letters are discarded.',
    params,
    response: {
      204: z.null().describe('The webhook is deleted'),
      ...problemResponses(404, 409, 507),
    },
  },
  rotateWebhookSecret: {
    summary: 'Rotate the secret of a webhook',
    description:
      'Both secrets sign for a while, so that the receiver can switch. The new secret is returned only in this response.',
    params,
    body: rotationSchema,
    response: { 200: webhookWithSecretSchema, ...problemResponses(404, 507) },
  },
  testWebhook: {
    summary: 'Send a test event to one webhook',
    description:
      'Ignores the types and metadata filter of the webhook. `/v1/deliveries/{id}` returns the result.',
    params,
    response: { 202: deliverySchema, ...problemResponses(404, 409, 507) },
  },
});

/** Webhook endpoints. */
export function registerWebhooks(
  app: TypedServer,
  deps: {
    ledger: {
      audit: AuditTrail;
      webhooks: Webhooks;
      deliveries: Deliveries;
      test(webhookId: string, now: number): number | undefined;
    };
    clock: Clock;
    refusalOf: (url: string) => string | undefined;
  },
): void {
  const { ledger, clock, refusalOf } = deps;
  const { audit, webhooks } = ledger;
  const now = () => clock.now();
  // The rest of the address may be secret, and is of use only to callers who may change it.
  const shown = ({ url, ...webhook }: Webhook, { caller }: Pick<FastifyRequest, 'caller'>) => {
    const shownUrl = url === null || caller?.scopes.has('webhooks:write') ? url : originOf(url);
    return toWebhookBody({ ...webhook, url: shownUrl });
  };

  app.post(
    '/v1/webhooks',
    { config: WRITE, schema: OPERATIONS.createWebhook },
    async (request, reply) => {
      const { secret, ...webhook } = request.body;
      const refused = invalidField(refusalOf, {
        url: webhook.url,
        secret,
        signature: webhook.signature,
      });
      if (refused) return sendInvalidField(reply, ...refused);
      const created = createSecret(webhook.signature, secret);
      const create = () => webhooks.create(webhook, created, now());
      const made = audit.change(actorOf(request), now(), create, ({ id }) => ({
        action: 'webhooks.create',
        subject: id,
      }));
      return reply
        .code(201)
        .header('location', `/v1/webhooks/${made.id}`)
        .send(toWebhookWithSecret(made, created));
    },
  );

  app.get(
    '/v1/webhooks',
    { config: { ...READ, isExpensive: true }, schema: OPERATIONS.listWebhooks },
    async (request) => {
      const page = webhooks.list({ ...pageOf(request.query), now: now() });
      return {
        webhooks: page.webhooks.map((webhook) => shown(webhook, request)),
        next_cursor: nextCursor(page.nextBefore),
      };
    },
  );

  app.get(
    '/v1/webhooks/:id',
    { config: READ, schema: OPERATIONS.getWebhook },
    async (request, reply) => {
      const { id } = request.params;
      const webhook = webhooks.get(id, now());
      return webhook ? reply.send(shown(webhook, request)) : unknown(reply, id);
    },
  );

  app.patch(
    '/v1/webhooks/:id',
    { config: WRITE, schema: OPERATIONS.updateWebhook },
    async (request, reply) => {
      const { body } = request;
      const { id } = request.params;
      if (id === CALLBACKS_ID && body.url !== undefined)
        return sendInvalidField(reply, 'url', 'callbacks have no address of their own');
      const refused = invalidField(refusalOf, { url: body.url });
      if (refused) return sendInvalidField(reply, ...refused);
      const patch = withoutUndefined(body);
      const entry = {
        action: 'webhooks.update',
        subject: id,
        detail: Object.keys(patch).toSorted().join(', ') || null,
      } as const;
      const update = () => webhooks.update(id, patch, now());
      const webhook = audit.change(actorOf(request), now(), update, (updated) => updated && entry);
      return webhook ? reply.send(shown(webhook, request)) : unknown(reply, id);
    },
  );

  app.delete(
    '/v1/webhooks/:id',
    { config: WRITE, schema: OPERATIONS.deleteWebhook },
    async (request, reply) => {
      const { id } = request.params;
      if (id === CALLBACKS_ID)
        return conflict(reply, `${CALLBACKS_ID} can't be deleted, only disabled`);
      const entry = { action: 'webhooks.delete', subject: id } as const;
      const remove = () => webhooks.delete(id, now());
      const isDeleted = audit.change(actorOf(request), now(), remove, (deleted) =>
        deleted ? entry : undefined,
      );
      return isDeleted ? reply.code(204).send(null) : unknown(reply, id);
    },
  );

  app.post(
    '/v1/webhooks/:id/rotate',
    { config: WRITE, schema: OPERATIONS.rotateWebhookSecret },
    async (request, reply) => {
      const { id } = request.params;
      const { keep_old_s, secret } = request.body;
      const webhook = webhooks.get(id, now());
      if (!webhook) return unknown(reply, id);
      const refused = invalidField(refusalOf, { secret, signature: webhook.signature });
      if (refused) return sendInvalidField(reply, ...refused);
      const created = createSecret(webhook.signature, secret);
      const rotate = () =>
        webhooks.rotate(id, created, { oldUntil: now() + keep_old_s * 1_000, now: now() });
      const entry = {
        action: 'webhooks.rotate',
        subject: id,
        detail: `keep_old_s ${keep_old_s}`,
      } as const;
      const rotated = audit.change(actorOf(request), now(), rotate, (changed) => changed && entry);
      return rotated ? reply.send(toWebhookWithSecret(rotated, created)) : unknown(reply, id);
    },
  );

  app.post(
    '/v1/webhooks/:id/test',
    { config: WRITE, schema: OPERATIONS.testWebhook },
    async (request, reply) => {
      const { id } = request.params;
      const webhook = webhooks.get(id, now());
      if (!webhook) return unknown(reply, id);
      if (webhook.url === null)
        return conflict(
          reply,
          `${id} has no address of its own: test one with POST /v1/callbacks/test`,
        );
      if (!webhook.enabled) return conflict(reply, `${id} is disabled`);
      const entry = { action: 'webhooks.test', subject: id } as const;
      const test = () => ledger.test(id, now());
      const deliveryId = audit.change(actorOf(request), now(), test, (delivery) =>
        delivery === undefined ? undefined : entry,
      );
      const made = deliveryId === undefined ? undefined : ledger.deliveries.get(deliveryId);
      return made ? reply.code(202).send(toDeliveryBody(made.delivery)) : unknown(reply, id);
    },
  );
}

/** Returns the first invalid field with the reason; undefined if both are valid. */
function invalidField(
  refusalOf: (url: string) => string | undefined,
  given: {
    url?: string | undefined;
    secret?: string | undefined;
    signature?: Webhook['signature'];
  },
): [field: string, reason: string] | undefined {
  const { url, secret, signature = 'v1' } = given;
  const urlRefusal = url === undefined ? undefined : refusalOf(url);
  if (urlRefusal !== undefined) return ['url', urlRefusal];
  if (secret === undefined) return undefined;
  const isOther = secret.startsWith(signature === 'v1' ? 'whsk_' : 'whsec_');
  const reason = isOther ? `this is not a secret for ${signature} signatures` : checkSecret(secret);
  return reason === undefined ? undefined : ['secret', reason];
}

/** Removes fields that are undefined, which would overwrite stored values. */
function withoutUndefined<T extends object>(fields: T) {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]?: Exclude<T[K], undefined>;
  };
}

function unknown(reply: FastifyReply, id: string): FastifyReply {
  return sendProblem(reply, { status: 404, detail: `there is no webhook ${id}` });
}

function conflict(reply: FastifyReply, detail: string): FastifyReply {
  return sendProblem(reply, { status: 409, detail });
}

import type { FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { actorOf } from '../access/access.ts';
import type { AuditTrail } from '../access/audit-store.ts';
import { operations, problemResponses, sendInvalidField, sendProblem } from '../http/problems.ts';
import {
  nextCursor,
  nextCursorSchema,
  pageOf,
  pageParameters,
  type TypedServer,
  timeSchema,
} from '../http/typed-server.ts';
import { type Clock, iso, isoOrNull } from '../lib/clock.ts';
import { headerProblem } from '../lib/request-headers.ts';
import { originOf } from '../submissions/option-changes.ts';
import { checkSecret, makeSecret } from './channels/webhook.ts';
import { deliverySchema, sendTest } from './deliveries-routes.ts';
import type { Deliveries } from './deliveries-store.ts';
import {
  CALLBACKS_ID,
  DISABLED_REASONS,
  eventTypeSchema,
  MAX_TYPES,
  metadataFilterSchema,
  WEBHOOK_HEADERS,
  type Webhook,
  type WebhookPatch,
  webhookDestination,
  webhookIdSchema,
} from './delivery.ts';
import type { Outbox } from './outbox.ts';
import { MAX_WEBHOOKS, type Webhooks } from './webhooks-store.ts';

const disabledReasonSchema = z
  .enum(DISABLED_REASONS)
  .describe(
    'operator: by an operator; gone: by a 410 of the receiver; failing: after days without a success',
  )
  .meta({ id: 'WebhookDisabledReason' });

const lastDaySchema = z
  .object({
    attempts: z.int(),
    success_rate: z.number().describe('Share of attempts that were answered with 2xx, 0 to 1'),
    response_p95_ms: z
      .int()
      .nullable()
      .describe('95th percentile of the response time, exact to 5 %; null without a response'),
  })
  .describe(
    'Attempts in the current hour and the 24 hours before it, with retries and tests; a restart does not reset them',
  )
  .meta({ id: 'WebhookDay' });

export const webhookSchema = z
  .object({
    id: z.string(),
    url: z
      .string()
      .nullable()
      .describe(
        'null for callbacks, whose addresses come with the submissions; only the role admin sees the whole address, others see scheme, host and port, because the rest may be secret',
      ),
    types: z.array(z.string()),
    metadata: z.record(z.string(), z.unknown()).nullable(),
    description: z.string(),
    header_names: z.array(z.string()).describe('Names of the further headers of its requests'),
    enabled: z.boolean(),
    disabled_reason: disabledReasonSchema.nullable(),
    failing_since: timeSchema.nullable().describe('Time since which every attempt has failed'),
    last_day: lastDaySchema.nullable().describe('null without attempts in the last 24 hours'),
    created_at: timeSchema,
    updated_at: timeSchema,
  })
  .describe('A webhook, without its secret')
  .meta({ id: 'Webhook' });

const failureSchema = z
  .object({
    error: z.string().nullable().describe('Of the newest attempt; null: none was made'),
    failing: z.int().describe('Number of deliveries that wait for a retry'),
    dead: z.int().describe('Number of dead letters'),
  })
  .meta({ id: 'WebhookFailure' });

export const webhookDetailsSchema = webhookSchema
  .extend({
    failures: z
      .array(failureSchema)
      .describe('Most frequent first. Counts at most 10,000 deliveries of each state'),
  })
  .describe('A webhook with its failures by their error')
  .meta({ id: 'WebhookDetails' });

export const webhookWithSecretSchema = webhookSchema
  .extend({
    secret: z.string().describe('Returned only here'),
  })
  .describe('A webhook with its new secret')
  .meta({ id: 'WebhookWithSecret' });

export const webhookListSchema = z
  .object({
    webhooks: z.array(webhookSchema).describe('Newest first'),
    next_cursor: nextCursorSchema,
  })
  .describe('A page of webhooks')
  .meta({ id: 'WebhookPage' });

/** `webhook.url`: as the caller may see it. */
function toWebhookBody(webhook: Webhook): z.output<typeof webhookSchema> {
  return {
    id: webhook.id,
    url: webhook.url,
    types: [...webhook.types],
    metadata: webhook.metadata,
    description: webhook.description,
    header_names: webhook.headerNames,
    enabled: webhook.enabled,
    disabled_reason: webhook.disabledReason,
    failing_since: isoOrNull(webhook.failingSince),
    last_day: webhook.lastDay && {
      attempts: webhook.lastDay.attempts,
      success_rate: webhook.lastDay.successRate,
      response_p95_ms: webhook.lastDay.responseP95Ms,
    },
    created_at: iso(webhook.createdAt),
    updated_at: iso(webhook.updatedAt),
  };
}

const MAX_URL_CHARS = 2_048;
const MAX_DESCRIPTION_CHARS = 200;
/** Far above 64 bytes in base64. The signing code checks the format of a secret. */
const MAX_SECRET_CHARS = 300;
const DAY_S = 86_400;
const MAX_KEEP_OLD_S = 7 * DAY_S;

const url = z
  .string()
  .max(MAX_URL_CHARS)
  .describe('URL that receives events by POST; must be https:// and no private address');
const types = z
  .array(eventTypeSchema)
  .min(1, 'must have at least one event type, or * for all of them')
  .max(MAX_TYPES)
  .describe('Event types to send: exact types, or wildcards like submission.* and *');
const description = z
  .string()
  .max(MAX_DESCRIPTION_CHARS)
  .refine(
    (text) => /^[^\p{C}\p{Zl}\p{Zp}]*$/u.test(text),
    'must be a single line of printable characters',
  )
  .describe('A free text for operators');
const headers = z
  .record(z.string(), z.string())
  .superRefine((values, context) => {
    const problem = headerProblem(values, WEBHOOK_HEADERS);
    if (problem)
      context.addIssue({ code: 'custom', path: [problem.name], message: problem.reason });
  })
  .describe(
    'Further headers of every request, such as Authorization, for the receiver or a gateway before it. Their values are never returned',
  );
const enabled = z
  .boolean()
  .describe('Nothing is sent to a disabled webhook; its events become dead letters');
const secret = z
  .string()
  .max(MAX_SECRET_CHARS)
  .describe("A secret of the receiver's choice: whsec_ and base64 of 24 to 64 bytes");

const newWebhookSchema = z
  .strictObject({
    url,
    types: types.default(['submission.*']),
    metadata: metadataFilterSchema.nullable().default(null),
    description: description.default(''),
    headers: headers.default({}),
    enabled: enabled.default(true),
    secret: secret.optional(),
  })
  .meta({
    id: 'NewWebhook',
    examples: [
      {
        url: 'https://hooks.example.com/dawatch',
        types: ['submission.*'],
        metadata: { team: 'billing' },
      },
    ],
  });

const webhookPatchSchema = z
  .strictObject({
    url,
    types,
    metadata: metadataFilterSchema.nullable(),
    description,
    headers,
    enabled,
  })
  .partial()
  .refine((patch) => Object.keys(patch).length > 0, 'must have at least one field')
  .describe(
    'Absent fields are unchanged. `metadata: null` removes the filter. `headers` replaces all further headers',
  )
  .meta({
    id: 'WebhookPatch',
    examples: [{ enabled: true }],
  });

const rotationSchema = z
  .strictObject({
    keep_old_s: z
      .int()
      .min(0)
      .max(MAX_KEEP_OLD_S)
      .default(DAY_S)
      .describe('Seconds for which the old secret also signs'),
    secret: secret.optional(),
  })
  .prefault({})
  .meta({ id: 'SecretRotation', examples: [{ keep_old_s: 3_600 }] });

const READ = { roles: ['operator'] } as const;
const WRITE = { roles: [] } as const;

const params = z.strictObject({ id: webhookIdSchema });

const OPERATIONS = operations('notifications', {
  createWebhook: {
    summary: 'Create a webhook',
    description: `Events are signed as in Standard Webhooks 1.0. The secret is returned only in this response. 409 if there are ${MAX_WEBHOOKS} webhooks.`,
    body: newWebhookSchema,
    response: { 201: webhookWithSecretSchema, ...problemResponses(409, 507) },
  },
  listWebhooks: {
    summary: 'List webhooks, newest first',
    querystring: z.strictObject(pageParameters),
    response: { 200: webhookListSchema },
  },
  getWebhook: {
    summary: 'Get a webhook with its failures',
    params,
    response: { 200: webhookDetailsSchema, ...problemResponses(404) },
  },
  updateWebhook: {
    summary: 'Change, disable or enable a webhook',
    description:
      'Disabling a webhook turns its waiting deliveries and its later events into dead letters, which can be replayed once it is enabled.',
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

export function registerWebhooks(
  app: TypedServer,
  deps: {
    ledger: {
      audit: AuditTrail;
      webhooks: Webhooks;
      deliveries: Deliveries;
      outbox: Outbox;
    };
    clock: Clock;
    refusalOf: (url: string) => string | undefined;
  },
): void {
  const { ledger, clock, refusalOf } = deps;
  const { audit, webhooks } = ledger;
  const now = () => clock.now();
  // The rest of the address may be secret, and is of use only to callers who may change it.
  const bodyFor = ({ url, ...webhook }: Webhook, { caller }: FastifyRequest) => {
    const shownUrl = url === null || caller?.role === 'admin' ? url : originOf(url);
    return toWebhookBody({ ...webhook, url: shownUrl });
  };

  app.post(
    '/v1/webhooks',
    { config: WRITE, schema: OPERATIONS.createWebhook },
    async (request, reply) => {
      const { secret = makeSecret(), ...webhook } = request.body;
      const refused = invalidField(refusalOf, { url: webhook.url, secret });
      if (refused) return sendInvalidField(reply, ...refused);
      if (webhooks.isFull())
        return sendProblem(
          reply,
          409,
          `there are ${MAX_WEBHOOKS} webhooks: delete some of them first`,
        );
      const create = () => webhooks.create(webhook, secret, now());
      const created = audit.change(actorOf(request), now(), create, ({ id }) => ({
        action: 'webhooks.create',
        subject: id,
      }));
      return reply
        .code(201)
        .header('location', `webhooks/${created.id}`)
        .send({ ...toWebhookBody(created), secret });
    },
  );

  app.get(
    '/v1/webhooks',
    { config: { ...READ, isExpensive: true }, schema: OPERATIONS.listWebhooks },
    async (request) => {
      const page = webhooks.list({ ...pageOf(request.query), now: now() });
      return {
        webhooks: page.webhooks.map((webhook) => bodyFor(webhook, request)),
        next_cursor: nextCursor(page.nextBefore),
      };
    },
  );

  app.get(
    '/v1/webhooks/:id',
    { config: { ...READ, isExpensive: true }, schema: OPERATIONS.getWebhook },
    async (request, reply) => {
      const { id } = request.params;
      const webhook = webhooks.get(id, now());
      if (!webhook) return unknown(reply, id);
      const failures = ledger.deliveries.failures(webhookDestination(id));
      return reply.send({ ...bodyFor(webhook, request), failures });
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
      if (id === CALLBACKS_ID && body.headers !== undefined)
        return sendInvalidField(
          reply,
          'headers',
          'callbacks have none: clients set their addresses',
        );
      const refused = invalidField(refusalOf, { url: body.url });
      if (refused) return sendInvalidField(reply, ...refused);
      // JSON has no undefined.
      const patch = body as WebhookPatch;
      const entry = {
        action: 'webhooks.update',
        subject: id,
        detail: Object.keys(patch).toSorted().join(', ') || null,
      } as const;
      const update = () => webhooks.update(id, patch, now());
      const webhook = audit.change(actorOf(request), now(), update, (updated) => updated && entry);
      return webhook ? reply.send(bodyFor(webhook, request)) : unknown(reply, id);
    },
  );

  app.delete(
    '/v1/webhooks/:id',
    { config: WRITE, schema: OPERATIONS.deleteWebhook },
    async (request, reply) => {
      const { id } = request.params;
      if (id === CALLBACKS_ID)
        return sendProblem(reply, 409, `${CALLBACKS_ID} can't be deleted, only disabled`);
      const entry = { action: 'webhooks.delete', subject: id } as const;
      const remove = () => webhooks.delete(id, now());
      const isDeleted = audit.change(
        actorOf(request),
        now(),
        remove,
        (deleted) => deleted && entry,
      );
      return isDeleted ? reply.code(204).send(null) : unknown(reply, id);
    },
  );

  app.post(
    '/v1/webhooks/:id/rotate',
    { config: WRITE, schema: OPERATIONS.rotateWebhookSecret },
    async (request, reply) => {
      const { id } = request.params;
      const { keep_old_s, secret = makeSecret() } = request.body;
      const refused = invalidField(refusalOf, { secret });
      if (refused) return sendInvalidField(reply, ...refused);
      const rotate = () =>
        webhooks.rotate(id, secret, { oldUntil: now() + keep_old_s * 1_000, now: now() });
      const entry = {
        action: 'webhooks.rotate',
        subject: id,
        detail: `keep_old_s ${keep_old_s}`,
      } as const;
      const rotated = audit.change(actorOf(request), now(), rotate, (changed) => changed && entry);
      return rotated ? reply.send({ ...toWebhookBody(rotated), secret }) : unknown(reply, id);
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
        return sendProblem(
          reply,
          409,
          `${id} has no address of its own: test one with POST /v1/callbacks/test`,
        );
      if (!webhook.enabled) return sendProblem(reply, 409, `${id} is disabled`);
      const entry = { action: 'webhooks.test', subject: id } as const;
      const test = { webhookId: id };
      const delivery = sendTest(ledger, { test, entry, request, now: now() });
      return delivery ? reply.code(202).send(delivery) : unknown(reply, id);
    },
  );
}

/** Returns the first invalid field with the reason; undefined if both are valid. */
function invalidField(
  refusalOf: (url: string) => string | undefined,
  { url, secret }: { url?: string | undefined; secret?: string | undefined },
): [field: string, reason: string] | undefined {
  const urlRefusal = url === undefined ? undefined : refusalOf(url);
  if (urlRefusal !== undefined) return ['url', urlRefusal];
  const reason = secret === undefined ? undefined : checkSecret(secret);
  return reason === undefined ? undefined : ['secret', reason];
}

function unknown(reply: FastifyReply, id: string): FastifyReply {
  return sendProblem(reply, 404, `there is no webhook ${id}`);
}

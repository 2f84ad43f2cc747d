import { z } from 'zod';
import type { AuditTrail } from '../access/audit-store.ts';
import { operations, problemResponses, sendInvalidField, sendProblem } from '../http/problems.ts';
import { type TypedServer, timeSchema } from '../http/typed-server.ts';
import { type Clock, isoOrNull } from '../lib/clock.ts';
import { TYPE_NAMES } from './channels/index.ts';
import { deliverySchema, sendTest } from './deliveries-routes.ts';
import type { Deliveries } from './deliveries-store.ts';
import { CALLBACKS_ID, channelDestination, type Subscription } from './delivery.ts';
import type { Outbox } from './outbox.ts';
import type { Receivers } from './receivers-store.ts';

/** `routes`: the subscriptions whose events it receives. */
export type ChannelDescription = {
  name: string;
  type: string;
  address: string;
  routes: Subscription[];
};

const channelSchema = z
  .object({
    name: z.string(),
    type: z.string().describe(`${TYPE_NAMES}, or queue`),
    address: z.string().describe('Address of the channel, with its secret parts masked'),
    routes: z
      .array(
        z.object({
          types: z.array(z.string()).describe('Event types; wildcards such as alert.* are allowed'),
          metadata: z.record(z.string(), z.unknown()).nullable(),
        }),
      )
      .describe(
        'Subscriptions: the channel receives the events that match at least one of them; empty: no events',
      ),
    last_success_at: timeSchema.nullable().describe('When an attempt last succeeded; null: never'),
    last_failure_at: timeSchema
      .nullable()
      .describe('When an attempt last failed, if only for some recipients; null: never'),
    last_error: z.string().nullable().describe('Of the newest failure, also of one that is over'),
    failing_since: timeSchema.nullable().describe('Time since which every attempt has failed'),
    deliveries: z.object({
      waiting: z.int().describe('Deliveries that wait for an attempt'),
      dead: z.int().describe('Dead letters, which can be replayed'),
    }),
  })
  .describe('A channel')
  .meta({ id: 'Channel' });

const channelListSchema = z
  .object({ channels: z.array(channelSchema).describe('In the order of the settings') })
  .describe('All channels')
  .meta({ id: 'ChannelList' });

const params = z.strictObject({
  name: z
    .string()
    .regex(/^[a-z0-9][a-z0-9_-]{0,31}$/, 'must be the name of a channel')
    .describe('Name of a channel in the settings, or `queue`')
    .meta({ examples: ['ops'] }),
});

const callbackSchema = z
  .strictObject({
    url: z.string().max(2_048).describe('The address to test, with the rules for a callback_url'),
  })
  .meta({ id: 'CallbackTest', examples: [{ url: 'https://billing.example.com/hooks' }] });

const OPERATIONS = operations('notifications', {
  listChannels: {
    summary: 'List the channels of the settings',
    querystring: z.strictObject({}),
    response: { 200: channelListSchema },
  },
  testChannel: {
    summary: 'Send a test event to one channel',
    description: 'Ignores the routes of the channel. `/v1/deliveries/{id}` returns the result.',
    params,
    response: { 202: deliverySchema, ...problemResponses(404, 507) },
  },
  testCallback: {
    summary: 'Send a test event to a callback address',
    description:
      'Sent and signed like the events of submissions with this callback_url: with the secret of the webhook `callbacks`. `/v1/deliveries/{id}` returns the result.',
    body: callbackSchema,
    response: { 202: deliverySchema, ...problemResponses(409, 507) },
  },
});

export function registerChannels(
  app: TypedServer,
  deps: {
    ledger: {
      audit: AuditTrail;
      deliveries: Deliveries;
      receivers: Receivers;
      outbox: Outbox;
    };
    clock: Clock;
    channels: readonly ChannelDescription[];
    refusalOf: (url: string) => string | undefined;
  },
): void {
  const { ledger, clock, channels, refusalOf } = deps;

  app.get(
    '/v1/channels',
    { config: { isExpensive: true, roles: ['operator'] }, schema: OPERATIONS.listChannels },
    async () => {
      const receivers = ledger.receivers.list(clock.now());
      const dead = ledger.receivers.deadByChannel();
      return {
        channels: channels.flatMap(({ routes, ...channel }) => {
          const destination = channelDestination(channel.name);
          const receiver = receivers.find((one) => one.destination === destination);
          if (!receiver) return [];
          return {
            ...channel,
            routes: routes.map(({ types, metadata }) => ({ types: [...types], metadata })),
            last_success_at: isoOrNull(receiver.succeededAt),
            last_failure_at: isoOrNull(receiver.failedAt),
            last_error: receiver.error,
            failing_since: isoOrNull(receiver.failingSince),
            deliveries: { waiting: receiver.waiting, dead: dead.get(destination) ?? 0 },
          };
        }),
      };
    },
  );

  app.post(
    '/v1/channels/:name/test',
    { schema: OPERATIONS.testChannel },
    async (request, reply) => {
      const { name } = request.params;
      const entry = { action: 'channels.test', subject: name } as const;
      const sent = { test: { channel: name }, entry, request, now: clock.now() };
      const delivery = sendTest(ledger, sent);
      if (delivery) return reply.code(202).send(delivery);
      return sendProblem(reply, 404, `there is no channel ${name} in the settings`);
    },
  );

  app.post(
    '/v1/callbacks/test',
    { config: { roles: [] }, schema: OPERATIONS.testCallback },
    async (request, reply) => {
      const { url } = request.body;
      const refused = refusalOf(url);
      if (refused !== undefined) return sendInvalidField(reply, 'url', refused);
      const test = { webhookId: CALLBACKS_ID, callbackUrl: url };
      const entry = { action: 'webhooks.test', subject: CALLBACKS_ID } as const;
      const delivery = sendTest(ledger, { test, entry, request, now: clock.now() });
      if (delivery) return reply.code(202).send(delivery);
      return sendProblem(reply, 409, 'the webhook callbacks is disabled');
    },
  );
}

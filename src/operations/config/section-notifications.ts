import { z } from 'zod';
import { isCidr } from '../../notifications/transport/address-guard.ts';
import { eventTypeSchema, MAX_TYPES, metadataFilterSchema } from '../../notifications/webhook.ts';
import { byName, count, days, httpUrl, seconds, section } from './section-values.ts';

export const webhooksSection = section({
  allow: z
    .array(z.string().refine(isCidr, 'must be a range of addresses like 10.0.0.0/8 or fd00::/8'))
    .default([])
    .describe(
      'Ranges of non-public addresses that receivers may have; empty: receivers must have public addresses',
    ),
  allow_http: z.boolean().default(false).describe('Whether receivers may use http:// as well'),
}).describe('Webhooks and callback_url, whose addresses are set by clients');

export const deliveriesSection = section({
  keep_s: seconds(30 * 86_400, 60).describe(
    'Seconds for which ended deliveries, including dead letters, are kept with all attempts. With `retention`, delivered ones are deleted with their event',
  ),
  concurrency: count(8, 1, 256).describe(
    'Maximum number of attempts in flight to one receiver. The limit rises while attempts succeed; a failing receiver gets one attempt at a time',
  ),
});

export const retentionSection = section({
  submissions_days: days.describe(
    'Days for which final submissions are kept with their history, events and deliveries, and for which events about no submission are kept. Open submissions are always kept; 0: forever',
  ),
  submissions_max: count(0, 0).describe(
    'Maximum number of final submissions kept, the most recently finalized first; 0: no limit',
  ),
}).describe('Deletion of expired data');

export const auditSection = section({
  keep_days: count(400, 0).describe('Days for which entries of the audit are kept; 0: forever'),
}).describe('The audit of changes and user lookups');

const channelSchema = z.discriminatedUnion('type', [
  z.strictObject({
    type: z.literal('slack'),
    url: httpUrl.describe('Incoming webhook address'),
  }),
  z.strictObject({
    type: z.literal('discord'),
    url: httpUrl.describe('Webhook address'),
  }),
  z.strictObject({
    type: z.literal('teams'),
    url: httpUrl.describe('Incoming webhook address'),
  }),
  z.strictObject({
    type: z.literal('apprise'),
    url: httpUrl.describe('Notify address of an Apprise API: http://apprise:8000/notify/<key>'),
    tag: z.string().min(1).optional().describe('Tag that selects services; default: all services'),
  }),
  z.strictObject({
    type: z.literal('email'),
    smtp_url: z
      .url({ protocol: /^smtps?$/, error: 'must be an smtp:// or smtps:// address' })
      .describe('Mail server: smtp://user:password@host:587'),
    from: z.string().min(3).max(320).describe('Sender address'),
    to: z.array(z.email()).min(1).max(50).describe('Recipient addresses'),
  }),
]);

export type ChannelConfig = z.output<typeof channelSchema>;

export const channelsSection = byName(channelSchema)
  .default({})
  .describe('Notification channels by name: slack, discord, teams, apprise, email');

const routeSchema = z.strictObject({
  types: z
    .array(eventTypeSchema)
    .min(1)
    .max(MAX_TYPES)
    .describe('Event types; wildcards such as alert.* are allowed'),
  metadata: metadataFilterSchema.optional(),
  channels: z.array(z.string()).min(1).describe('Names of channels'),
});

export const routesSection = z
  .array(routeSchema)
  .max(100)
  .default([])
  .describe('Routes that select the channels of an event');

export const alertsSection = section({
  failures: z
    .number()
    .int()
    .min(1)
    .default(10)
    .describe(
      'Number of submissions of one upstream that fail without recovering within 10 minutes',
    ),
  backlog: z.number().int().min(1).default(1_000).describe('Number of waiting deliveries'),
}).describe('Alert rules: an alert is raised when one of these numbers is reached');

export const heartbeatSection = section({
  url: httpUrl
    .optional()
    .describe(
      'Address of a service that reports when calls stop, such as Healthchecks or Uptime Kuma. The server calls it with GET while it works',
    ),
  every_s: seconds(60, 1).describe('Seconds between two calls'),
}).describe("Dead man's switch");

import { z } from 'zod';
import { isAddressRange } from '../lib/addresses.ts';
import {
  byName,
  count,
  httpUrl,
  pemFile,
  seconds,
  section,
} from '../operations/config/section-values.ts';
import { isSender } from './channels/sender.ts';
import { eventTypeSchema, MAX_TYPES, metadataFilterSchema } from './webhook.ts';

export const webhooksSection = section({
  allow: z
    .array(
      z
        .string()
        .refine(isAddressRange, 'must be an IP address, or a range like 10.0.0.0/8 or fd00::/8'),
    )
    .default([])
    .describe(
      'Non-public addresses that receivers may have, as addresses or ranges; empty: receivers must have public addresses',
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

const channelSchema = z.discriminatedUnion(
  'type',
  [
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
      tag: z
        .string()
        .min(1)
        .optional()
        .describe('Tag that selects services; default: all services'),
    }),
    z.strictObject({
      type: z.literal('email'),
      smtp_url: z
        .url({ protocol: /^smtps?$/, error: 'must be an smtp:// or smtps:// address' })
        .refine(
          (url) => !/[?#]/.test(url),
          'must be an address without a query; in a password, write %3F for ? and %23 for #',
        )
        .describe('Mail server: smtp://user:password@host:587'),
      tls: z
        .enum(['require', 'opportunistic', 'off'])
        .optional()
        .describe(
          'Whether smtp:// uses STARTTLS: `require` sends nothing without it, `opportunistic` uses it if the server offers it, `off` does not. Default: `require` with a login in `smtp_url`, otherwise `opportunistic`. smtps:// always uses TLS',
        ),
      tls_ca_file: pemFile.describe(
        'PEM file of the certificate authorities that sign the certificate of the mail server; default: those that Node trusts',
      ),
      ehlo_name: z
        .string()
        .regex(/^[\w.-]{1,255}$|^\[[\w.:]+\]$/, 'must be a host name, or an address in brackets')
        .optional()
        .describe('Name of this host in EHLO; default: the name of the machine'),
      from: z
        .string()
        .max(320)
        .refine(
          isSender,
          'must be an e-mail address, or a name with one: dawatch <dawatch@example.com>',
        )
        .describe('Sender address'),
      to: z
        .array(z.email('must be an e-mail address'))
        .min(1)
        .max(50)
        .describe('Recipient addresses'),
    }),
  ],
  'must be one of slack, discord, teams, apprise, email',
);

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

export type NotificationSettings = {
  webhooks: z.output<typeof webhooksSection>;
  channels: z.output<typeof channelsSection>;
};

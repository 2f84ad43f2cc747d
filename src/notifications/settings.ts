import { z } from 'zod';
import { isAddressRange } from '../lib/addresses.ts';
import { recordByName, section } from '../operations/config/section-values.ts';
import { channelSchema, TYPE_NAMES } from './channels/index.ts';
import { eventTypeSchema, MAX_TYPES, metadataFilterSchema } from './delivery.ts';

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

export const channelsSection = recordByName(channelSchema)
  .default({})
  .describe(`Notification channels by name: ${TYPE_NAMES}`);

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

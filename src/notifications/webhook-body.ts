import { z } from 'zod';
import { nextCursorSchema, timeSchema } from '../http/query.ts';
import { iso } from '../lib/timestamps.ts';
import { DISABLED_REASONS, type Webhook } from './webhook.ts';

const disabledReasonSchema = z
  .enum(DISABLED_REASONS)
  .describe(
    'operator: by an operator; gone: by a 410 of the receiver; failing: after days without a success',
  )
  .meta({ id: 'WebhookDisabledReason' });

const EXAMPLE = {
  id: 'wh_0b5ad1c3f1e14f0f9b8f4f6f0d6d7a11',
  url: 'https://hooks.example.com/dawatch',
  types: ['submission.*'],
  metadata: { team: 'billing' },
  description: '',
  header_names: [],
  enabled: true,
  disabled_reason: null,
  failing_since: null,
  last_day: { attempts: 1_204, success_rate: 0.9917, response_p95_ms: 340 },
  created_at: '2026-01-02T03:04:05.123Z',
  updated_at: '2026-01-02T03:04:05.123Z',
} as const;
const SECRET_EXAMPLE = {
  ...EXAMPLE,
  last_day: null,
  secret: 'whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=',
};

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
        'null for callbacks, whose addresses come with the submissions; credentials without the scope webhooks:write see only scheme, host and port, because the rest may be secret',
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
  .meta({ id: 'Webhook', examples: [EXAMPLE] });

export const webhookWithSecretSchema = webhookSchema
  .extend({
    secret: z.string().describe('Returned only here'),
  })
  .describe('A webhook with its new secret')
  .meta({ id: 'WebhookWithSecret', examples: [SECRET_EXAMPLE] });

export const webhookListSchema = z
  .object({
    webhooks: z.array(webhookSchema).describe('Newest first'),
    next_cursor: nextCursorSchema,
  })
  .describe('A page of webhooks')
  .meta({ id: 'WebhookPage', examples: [{ webhooks: [EXAMPLE], next_cursor: null }] });

/** `webhook.url`: as the caller may see it. */
export function toWebhookBody(webhook: Webhook): z.output<typeof webhookSchema> {
  return {
    id: webhook.id,
    url: webhook.url,
    types: [...webhook.types],
    metadata: webhook.metadata,
    description: webhook.description,
    header_names: webhook.headerNames,
    enabled: webhook.enabled,
    disabled_reason: webhook.disabledReason,
    failing_since: webhook.failingSince === null ? null : iso(webhook.failingSince),
    last_day: webhook.lastDay && {
      attempts: webhook.lastDay.attempts,
      success_rate: webhook.lastDay.successRate,
      response_p95_ms: webhook.lastDay.responseP95Ms,
    },
    created_at: iso(webhook.createdAt),
    updated_at: iso(webhook.updatedAt),
  };
}

import { z } from 'zod';
import { nextCursorSchema, timeSchema } from '../http/query.ts';
import { iso } from '../lib/timestamps.ts';
import { eventTypeSchema, MAX_TYPES, metadataFilterSchema } from './subscription.ts';
import { CALLBACKS_ID, DISABLED_REASONS, SIGNATURES, type Webhook } from './webhook.ts';

const MAX_URL_CHARS = 2_048;
const MAX_DESCRIPTION_CHARS = 200;
/** Far above 64 bytes in base64. The signing code checks the format of a secret. */
const MAX_SECRET_CHARS = 300;
const DAY_S = 86_400;
const MAX_KEEP_OLD_S = 7 * DAY_S;

export const webhookIdSchema = z
  .string()
  .regex(/^(?:wh_[0-9a-f]{32}|callbacks)$/, 'must be the id of a webhook: wh_…')
  .describe(
    `Id of a webhook; \`${CALLBACKS_ID}\` is the one that sends to the callback_url of submissions`,
  )
  .meta({ examples: [CALLBACKS_ID] });

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
const enabled = z
  .boolean()
  .describe('Nothing is sent to a disabled webhook; missed events can be replayed');
const secret = z
  .string()
  .max(MAX_SECRET_CHARS)
  .describe(
    "A secret of the receiver's choice: whsec_ and base64 of 24 to 64 bytes, or for v1a whsk_ and base64 of an ed25519 key pair",
  );

const signatureSchema = z
  .enum(SIGNATURES)
  .describe('v1: HMAC-SHA256 with a shared secret. v1a: ed25519, verified with a public key')
  .meta({ id: 'WebhookSignature' });
const disabledReasonSchema = z
  .enum(DISABLED_REASONS)
  .describe(
    'operator: by an operator; gone: by a 410 of the receiver; failing: after days without a success',
  )
  .meta({ id: 'WebhookDisabledReason' });

export const newWebhookSchema = z
  .strictObject({
    url,
    types: types.default(['submission.*']),
    metadata: metadataFilterSchema.nullable().default(null),
    description: description.default(''),
    enabled: enabled.default(true),
    signature: signatureSchema.default('v1'),
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
      {
        url: 'https://ops.example.com/',
        types: ['upstream.*', 'alert.*'],
        description: 'on call',
        signature: 'v1a',
      },
    ],
  });

export const webhookPatchSchema = z
  .strictObject({ url, types, metadata: metadataFilterSchema.nullable(), description, enabled })
  .partial()
  .refine((patch) => Object.keys(patch).length > 0, 'must have at least one field')
  .describe(
    'Absent fields are unchanged. `metadata: null` removes the filter. The kind of signature cannot be changed',
  )
  .meta({
    id: 'WebhookPatch',
    examples: [{ enabled: true }, { types: ['submission.finalized', 'submission.failed'] }],
  });

export const rotationSchema = z
  .strictObject({
    keep_old_s: z
      .int()
      .min(0)
      .max(MAX_KEEP_OLD_S)
      .default(DAY_S)
      .describe('Seconds for which the old secret also signs'),
    secret: secret.optional(),
  })
  .meta({ id: 'SecretRotation', examples: [{ keep_old_s: 3_600 }] });

const EXAMPLE = {
  id: 'wh_0b5ad1c3f1e14f0f9b8f4f6f0d6d7a11',
  url: 'https://hooks.example.com/dawatch',
  types: ['submission.*'],
  metadata: { team: 'billing' },
  description: '',
  signature: 'v1',
  public_keys: [],
  enabled: true,
  disabled_reason: null,
  failing_since: null,
  created_at: '2026-01-02T03:04:05.123Z',
  updated_at: '2026-01-02T03:04:05.123Z',
} as const;
const SECRET_EXAMPLE = { ...EXAMPLE, secret: 'whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=' };

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
    signature: signatureSchema,
    public_keys: z
      .array(z.string())
      .describe('For v1a: the public keys of receivers, whpk_ and base64, newest first'),
    enabled: z.boolean(),
    disabled_reason: disabledReasonSchema.nullable(),
    failing_since: timeSchema.nullable().describe('Time since which every attempt has failed'),
    created_at: timeSchema,
    updated_at: timeSchema,
  })
  .describe('A webhook, without its secret')
  .meta({ id: 'Webhook', examples: [EXAMPLE] });

export const webhookWithSecretSchema = webhookSchema
  .extend({
    secret: z
      .string()
      .nullable()
      .describe('Returned only here; null for v1a, where the receiver needs only the public key'),
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

export function toWebhookBody(webhook: Webhook): z.output<typeof webhookSchema> {
  return {
    id: webhook.id,
    url: webhook.url,
    types: [...webhook.types],
    metadata: webhook.metadata,
    description: webhook.description,
    signature: webhook.signature,
    public_keys: webhook.publicKeys,
    enabled: webhook.enabled,
    disabled_reason: webhook.disabledReason,
    failing_since: webhook.failingSince === null ? null : iso(webhook.failingSince),
    created_at: iso(webhook.createdAt),
    updated_at: iso(webhook.updatedAt),
  };
}

export function toWebhookWithSecret(
  webhook: Webhook,
  { secret }: { secret: string },
): z.output<typeof webhookWithSecretSchema> {
  return { ...toWebhookBody(webhook), secret: webhook.signature === 'v1' ? secret : null };
}

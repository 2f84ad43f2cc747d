import type { Subscription } from './subscription.ts';

/**
 * The schemes of Standard Webhooks. v1: HMAC-SHA256 with a shared secret. v1a: ed25519, verified
 * with a public key.
 */
export const SIGNATURES = ['v1', 'v1a'] as const;
export type Signature = (typeof SIGNATURES)[number];

/** operator: by hand. gone: its receiver responded 410. failing: every attempt failed for days. */
export const DISABLED_REASONS = ['operator', 'gone', 'failing'] as const;
export type DisabledReason = (typeof DISABLED_REASONS)[number];

/**
 * The webhook that signs the events for `callback_url`s: it always exists and has no URL of its
 * own.
 */
export const CALLBACKS_ID = 'callbacks';

/** A webhook endpoint. Times are epoch milliseconds. */
export type Webhook = Subscription & {
  id: string;
  /** null for the callbacks, whose URLs come with the submissions. */
  url: string | null;
  description: string;
  signature: Signature;
  /** The public keys of v1a: whpk_ and base64. */
  publicKeys: string[];
  enabled: boolean;
  disabledReason: DisabledReason | null;
  /** Since when every attempt has failed. */
  failingSince: number | null;
  createdAt: number;
  updatedAt: number;
};

export type NewWebhook = Subscription &
  Pick<Webhook, 'url' | 'description' | 'signature' | 'enabled'>;
export type WebhookPatch = Partial<Omit<NewWebhook, 'signature'>>;

import type { Subscription } from './subscription.ts';

/** v1: HMAC-SHA256 with a shared secret. v1a: ed25519, which receivers verify with a public key. Both of Standard Webhooks. */
export const SIGNATURES = ['v1', 'v1a'] as const;
export type Signature = (typeof SIGNATURES)[number];

/** operator: by hand. gone: its receiver answered 410. failing: it failed for days without one success. */
export const DISABLED_REASONS = ['operator', 'gone', 'failing'] as const;
export type DisabledReason = (typeof DISABLED_REASONS)[number];

/** The endpoint that `callback_url`s of submissions are sent by: always there, without an address of its own. */
export const CALLBACKS_ID = 'callbacks';

/** Whom events are sent to over HTTP. Times are epoch milliseconds. */
export type Webhook = Subscription & {
  id: string;
  /** null: of the callbacks, whose addresses come with the submissions. */
  url: string | null;
  description: string;
  signature: Signature;
  /** Of v1a: what receivers verify with, whpk_ and base64. */
  publicKeys: string[];
  enabled: boolean;
  disabledReason: DisabledReason | null;
  /** Since when every attempt failed. */
  failingSince: number | null;
  createdAt: number;
  updatedAt: number;
  /** Fields that the ledger holds in a form that can't be read: it gets no events until they are set anew. */
  unreadable?: readonly string[];
};

export type NewWebhook = Subscription & Pick<Webhook, 'url' | 'description' | 'signature' | 'enabled'>;
export type WebhookPatch = Partial<Omit<NewWebhook, 'signature'>>;

import type { Delivery } from './deliveries.ts';
import { queryOf, type SendRequest } from './request.ts';
import type { MetadataFilter } from './shapes.ts';

/** A webhook endpoint. Times are ISO 8601 in UTC. */
export type Webhook = {
  /** `callbacks` is the webhook that sends to the `callback_url` of submissions. */
  id: string;
  /** null for `callbacks`. */
  url: string | null;
  /** Exact types, or wildcards like "submission.*" and "*". */
  types: string[];
  metadata: Record<string, unknown> | null;
  description: string;
  signature: 'v1' | 'v1a';
  /** Keys for verifying v1a signatures, newest first. */
  public_keys: string[];
  enabled: boolean;
  /**
   * operator: disabled by an operator; gone: the receiver responded with 410; failing: no success
   * for days.
   */
  disabled_reason: 'operator' | 'gone' | 'failing' | null;
  failing_since: string | null;
  created_at: string;
  updated_at: string;
};

/** `secret`: returned only once; null for v1a, which receivers verify with the public key. */
export type WebhookWithSecret = Webhook & { secret: string | null };

export type WebhookPage = { webhooks: Webhook[]; next_cursor: string | null };

/** `types`: default ["submission.*"]. `secret`: default a generated secret. */
export type NewWebhook = { url: string } & Partial<{
  types: readonly string[];
  metadata: MetadataFilter | null;
  description: string;
  enabled: boolean;
  signature: 'v1' | 'v1a';
  secret: string;
}>;

/** Absent fields are not changed. */
export type WebhookPatch = Partial<Omit<NewWebhook, 'signature' | 'secret'>>;

/**
 * Webhooks of a dawatch server. Needs the role admin. Methods throw ApiError or ConnectionError.
 */
export class WebhookRequests {
  readonly #send: SendRequest;

  constructor(send: SendRequest) {
    this.#send = send;
  }

  create(webhook: NewWebhook): Promise<WebhookWithSecret> {
    return this.#send('POST', '/v1/webhooks', webhook);
  }

  /**
   * Returns a page, newest first. `limit`: 1 to 1,000, default 100. `cursor`: `next_cursor` of the
   * previous page.
   */
  list(query: { limit?: number; cursor?: string } = {}): Promise<WebhookPage> {
    return this.#send('GET', `/v1/webhooks${queryOf(query)}`);
  }

  get(id: string): Promise<Webhook> {
    return this.#send('GET', pathOf(id));
  }

  update(id: string, patch: WebhookPatch): Promise<Webhook> {
    return this.#send('PATCH', pathOf(id), patch);
  }

  /** Replaces the secret. The old secret also signs for `keep_old_s` (default: one day). */
  rotate(
    id: string,
    options: { keep_old_s?: number; secret?: string } = {},
  ): Promise<WebhookWithSecret> {
    return this.#send('POST', `${pathOf(id)}/rotate`, options);
  }

  /**
   * Sends a test event to this webhook. `deliveries.get` returns the result. For `callbacks`:
   * `testCallback`.
   */
  test(id: string): Promise<Delivery> {
    return this.#send('POST', `${pathOf(id)}/test`);
  }

  /**
   * Sends a test event to a callback address, signed with the secret of the webhook `callbacks`.
   */
  testCallback(url: string): Promise<Delivery> {
    return this.#send('POST', '/v1/callbacks/test', { url });
  }

  /** Deletes the webhook and discards its pending deliveries and dead letters. */
  async delete(id: string): Promise<void> {
    await this.#send('DELETE', pathOf(id));
  }
}

function pathOf(id: string): string {
  return `/v1/webhooks/${encodeURIComponent(id)}`;
}

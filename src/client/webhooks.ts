import type { Delivery } from './deliveries.ts';
import { queryOf, type SendRequest } from './request.ts';

/** Each name must have exactly this value in the metadata of a submission. */
export type MetadataFilter = Record<string, string | number | boolean | null>;

/** Whom events are sent to over HTTP. Times are ISO 8601 in UTC. */
export type Webhook = {
  /** `callbacks`: what sends to the `callback_url` of submissions. */
  id: string;
  /** null: of the callbacks. */
  url: string | null;
  /** Exact types, or wildcards like "submission.*" and "*". */
  types: string[];
  metadata: Record<string, unknown> | null;
  description: string;
  signature: 'v1' | 'v1a';
  /** Of v1a: what receivers verify with, the newest first. */
  public_keys: string[];
  enabled: boolean;
  /** operator: by hand; gone: its receiver answered 410; failing: it failed for days without one success. */
  disabled_reason: 'operator' | 'gone' | 'failing' | null;
  failing_since: string | null;
  created_at: string;
  updated_at: string;
  /** Only where the ledger is damaged: fields that can't be read. It gets no events until they are set anew. */
  unreadable?: string[] | undefined;
};

/** `secret`: shown this once; null: of v1a, where the receiver needs the public key and nothing else. */
export type WebhookWithSecret = Webhook & { secret: string | null };

export type WebhookPage = { webhooks: Webhook[]; next_cursor: string | null };

/** `types`: ["submission.*"] if absent. `secret`: the receiver's own; one is made if absent. */
export type NewWebhook = { url: string } & Partial<{
  types: readonly string[];
  metadata: MetadataFilter | null;
  description: string;
  enabled: boolean;
  signature: 'v1' | 'v1a';
  secret: string;
}>;

/** What is left out stays. */
export type WebhookPatch = Partial<Omit<NewWebhook, 'signature' | 'secret'>>;

/** Webhooks of a dawatch server. Needs the role admin. Methods throw ApiError or ConnectionError. */
export class WebhookRequests {
  readonly #ask: SendRequest;

  constructor(ask: SendRequest) {
    this.#ask = ask;
  }

  create(webhook: NewWebhook): Promise<WebhookWithSecret> {
    return this.#ask('POST', '/v1/webhooks', webhook);
  }

  /** Newest first, up to `limit` (1 to 1,000, default 100); `cursor` is the `next_cursor` of the page before. */
  list(query: { limit?: number; cursor?: string } = {}): Promise<WebhookPage> {
    return this.#ask('GET', `/v1/webhooks${queryOf(query)}`);
  }

  get(id: string): Promise<Webhook> {
    return this.#ask('GET', pathOf(id));
  }

  update(id: string, patch: WebhookPatch): Promise<Webhook> {
    return this.#ask('PATCH', pathOf(id), patch);
  }

  /** Until `keep_old_s` (default: a day) are over, the old secret signs too, beside the new one. */
  rotate(id: string, options: { keep_old_s?: number; secret?: string } = {}): Promise<WebhookWithSecret> {
    return this.#ask('POST', `${pathOf(id)}/rotate`, options);
  }

  /** Sends a test event to it alone. What came of it: `deliveries.get`. */
  test(id: string): Promise<Delivery> {
    return this.#ask('POST', `${pathOf(id)}/test`);
  }

  /** What waits for it, and its dead letters, are discarded. */
  async delete(id: string): Promise<void> {
    await this.#ask('DELETE', pathOf(id));
  }
}

function pathOf(id: string): string {
  return `/v1/webhooks/${encodeURIComponent(id)}`;
}

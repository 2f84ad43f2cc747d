import type {
  AlertPage,
  ChannelList,
  Credential,
  CredentialPage,
  CredentialWithSecret,
  Delivery,
  DeliveryDetails,
  DeliveryPage,
  ListAlertsQuery,
  ListCredentialsQuery,
  ListWebhooksQuery,
  Mute,
  MuteList,
  NewCredential,
  NewMute,
  NewWebhook,
  ReplayedDeliveries,
  ReplayRequest,
  SecretRotation,
  Webhook,
  WebhookPage,
  WebhookPatch,
  WebhookWithSecret,
} from './api.ts';
import { type DeliveryQuery, queryOf, type SendRequest } from './request.ts';

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
  list(query: ListWebhooksQuery = {}): Promise<WebhookPage> {
    return this.#send('GET', `/v1/webhooks${queryOf(query)}`);
  }

  get(id: string): Promise<Webhook> {
    return this.#send('GET', webhookPath(id));
  }

  update(id: string, patch: WebhookPatch): Promise<Webhook> {
    return this.#send('PATCH', webhookPath(id), patch);
  }

  /** Replaces the secret. The old secret also signs for `keep_old_s` (default: one day). */
  rotate(id: string, options: SecretRotation = {}): Promise<WebhookWithSecret> {
    return this.#send('POST', `${webhookPath(id)}/rotate`, options);
  }

  /**
   * Sends a test event to this webhook. `deliveries.get` returns the result. For `callbacks`:
   * `testCallback`.
   */
  test(id: string): Promise<Delivery> {
    return this.#send('POST', `${webhookPath(id)}/test`);
  }

  /**
   * Sends a test event to a callback address, signed with the secret of the webhook `callbacks`.
   */
  testCallback(url: string): Promise<Delivery> {
    return this.#send('POST', '/v1/callbacks/test', { url });
  }

  /** Deletes the webhook and discards its pending deliveries and dead letters. */
  async delete(id: string): Promise<void> {
    await this.#send('DELETE', webhookPath(id));
  }
}

function webhookPath(id: string): string {
  return `/v1/webhooks/${encodeURIComponent(id)}`;
}

/**
 * Deliveries of events and their results. Needs the role admin. Methods throw ApiError or
 * ConnectionError.
 */
export class DeliveryRequests {
  readonly #send: SendRequest;

  constructor(send: SendRequest) {
    this.#send = send;
  }

  /**
   * Returns a page, newest first. `cursor`: `next_cursor` of the previous page. A page may have
   * fewer deliveries than requested, even none, although more follow: continue until `next_cursor`
   * is null.
   */
  list(query: DeliveryQuery = {}): Promise<DeliveryPage> {
    return this.#send('GET', `/v1/deliveries${queryOf(query)}`);
  }

  get(id: number): Promise<DeliveryDetails> {
    return this.#send('GET', `/v1/deliveries/${id}`);
  }

  /** Sends the event again with the same event id, whatever the state of the delivery. */
  replay(id: number): Promise<Delivery> {
    return this.#send('POST', `/v1/deliveries/${id}/replay`);
  }

  /** Sends the dead letters of a destination again. */
  replayDead(dead: ReplayRequest): Promise<ReplayedDeliveries> {
    return this.#send('POST', '/v1/deliveries/replay', dead);
  }
}

/** Alerts of a dawatch server. Methods throw ApiError or ConnectionError. */
export class AlertRequests {
  readonly #send: SendRequest;

  constructor(send: SendRequest) {
    this.#send = send;
  }

  /** Returns a page, newest first. */
  list(query: ListAlertsQuery = {}, signal?: AbortSignal): Promise<AlertPage> {
    return this.#send('GET', `/v1/alerts${queryOf(query)}`, undefined, signal);
  }

  /** Mutes alerts until a time. Needs the role admin. */
  mute(mute: NewMute): Promise<Mute> {
    return this.#send('POST', '/v1/mutes', mute);
  }

  /** Returns the mutes that have not ended, newest first. Needs the role admin. */
  mutes(): Promise<MuteList> {
    return this.#send('GET', '/v1/mutes');
  }

  /** Ends a mute. Needs the role admin. */
  async unmute(id: number): Promise<void> {
    await this.#send('DELETE', `/v1/mutes/${id}`);
  }
}

/**
 * Channels of a dawatch server. Needs the role admin. Methods throw ApiError or ConnectionError.
 */
export class ChannelRequests {
  readonly #send: SendRequest;

  constructor(send: SendRequest) {
    this.#send = send;
  }

  list(): Promise<ChannelList> {
    return this.#send('GET', '/v1/channels');
  }

  /** Sends a test event to this channel. `deliveries.get` returns the result. */
  test(name: string): Promise<Delivery> {
    return this.#send('POST', `/v1/channels/${encodeURIComponent(name)}/test`);
  }
}

/**
 * Credentials of a dawatch server. Needs the role admin. Methods throw ApiError or ConnectionError.
 */
export class CredentialRequests {
  readonly #send: SendRequest;

  constructor(send: SendRequest) {
    this.#send = send;
  }

  create(credential: NewCredential): Promise<CredentialWithSecret> {
    return this.#send('POST', '/v1/credentials', credential);
  }

  /**
   * Returns a page, newest first. `limit`: 1 to 1,000, default 100. `cursor`: `next_cursor` of the
   * previous page.
   */
  list(query: ListCredentialsQuery = {}): Promise<CredentialPage> {
    return this.#send('GET', `/v1/credentials${queryOf(query)}`);
  }

  get(id: number): Promise<Credential> {
    return this.#send('GET', `/v1/credentials/${id}`);
  }

  /**
   * Revokes a credential: its requests are then refused. Throws ApiError with status 409 for the
   * last valid one with the role admin.
   */
  async revoke(id: number): Promise<void> {
    await this.#send('DELETE', `/v1/credentials/${id}`);
  }
}

import type {
  AlertPage,
  ChannelList,
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
  WebhookDetails,
  WebhookPage,
  WebhookPatch,
  WebhookWithSecret,
} from './api.ts';
import { type DeliveryQuery, queryOf, type SendRequest } from './request.ts';

/**
 * Returns the requests of operators and admins. Lists are pages, newest first: continue with
 * `cursor` until `next_cursor` is null, also if a page is short.
 */
export function resourcesOf(send: SendRequest) {
  const webhookPath = (id: string) => `/v1/webhooks/${encodeURIComponent(id)}`;
  const webhooks = {
    create: (webhook: NewWebhook): Promise<WebhookWithSecret> =>
      send('POST', '/v1/webhooks', webhook),
    list: (query: ListWebhooksQuery = {}): Promise<WebhookPage> =>
      send('GET', `/v1/webhooks${queryOf(query)}`),
    get: (id: string): Promise<WebhookDetails> => send('GET', webhookPath(id)),
    update: (id: string, patch: WebhookPatch): Promise<Webhook> =>
      send('PATCH', webhookPath(id), patch),
    /** Replaces the secret. The old secret also signs for `keep_old_s` (default: one day). */
    rotate: (id: string, options: SecretRotation = {}): Promise<WebhookWithSecret> =>
      send('POST', `${webhookPath(id)}/rotate`, options),
    /** Sends a test event. `deliveries.get` returns the result. */
    test: (id: string): Promise<Delivery> => send('POST', `${webhookPath(id)}/test`),
    /** Sends a test event to a callback address, signed with the secret of `callbacks`. */
    testCallback: (url: string): Promise<Delivery> => send('POST', '/v1/callbacks/test', { url }),
    /** Deletes the webhook and discards its pending deliveries and dead letters. */
    delete: (id: string): Promise<void> => send('DELETE', webhookPath(id)),
  };
  const deliveries = {
    list: (query: DeliveryQuery = {}): Promise<DeliveryPage> =>
      send('GET', `/v1/deliveries${queryOf(query)}`),
    get: (id: number): Promise<DeliveryDetails> => send('GET', `/v1/deliveries/${id}`),
    /** Sends the event again with the same event id, whatever the state of the delivery. */
    replay: (id: number): Promise<Delivery> => send('POST', `/v1/deliveries/${id}/replay`),
    /** Sends the dead letters of a destination again. */
    replayDead: (dead: ReplayRequest): Promise<ReplayedDeliveries> =>
      send('POST', '/v1/deliveries/replay', dead),
  };
  const alerts = {
    list: (query: ListAlertsQuery = {}, signal?: AbortSignal): Promise<AlertPage> =>
      send('GET', `/v1/alerts${queryOf(query)}`, undefined, signal),
    /** Mutes alerts until a time. */
    mute: (mute: NewMute): Promise<Mute> => send('POST', '/v1/mutes', mute),
    /** Returns the mutes that have not ended. */
    mutes: (): Promise<MuteList> => send('GET', '/v1/mutes'),
    unmute: (id: number): Promise<void> => send('DELETE', `/v1/mutes/${id}`),
  };
  const channels = {
    list: (): Promise<ChannelList> => send('GET', '/v1/channels'),
    /** Sends a test event. `deliveries.get` returns the result. */
    test: (name: string): Promise<Delivery> =>
      send('POST', `/v1/channels/${encodeURIComponent(name)}/test`),
  };
  const credentials = {
    create: (credential: NewCredential): Promise<CredentialWithSecret> =>
      send('POST', '/v1/credentials', credential),
    list: (query: ListCredentialsQuery = {}): Promise<CredentialPage> =>
      send('GET', `/v1/credentials${queryOf(query)}`),
    /** Its requests are then refused. ApiError 409 for the last valid admin. */
    revoke: (id: number): Promise<void> => send('DELETE', `/v1/credentials/${id}`),
  };
  return { webhooks, deliveries, alerts, channels, credentials };
}

export type Resources = ReturnType<typeof resourcesOf>;

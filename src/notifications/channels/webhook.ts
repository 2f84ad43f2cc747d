import { retryDelayMs } from '../retry-schedule.ts';
import { type HttpPost, toSendResult } from '../transport/http-post.ts';
import { type Channel, failed } from './channel.ts';
import { createSigner, type Signer } from './signing.ts';

export type WebhookChannelOptions = {
  /** Shared by all webhooks; closed by its creator. */
  post: HttpPost['post'];
  endpoint: WebhookEndpoint;
  /**
   * Returns why a URL is not allowed; undefined: it is allowed. Settings may have changed since the
   * URL was stored.
   */
  refusalOf: (url: string) => string | undefined;
  /** Epoch milliseconds. */
  now: () => number;
};

export type WebhookEndpoint = {
  /** null for callbacks: each delivery has its own URL. */
  url: string | null;
  /** The newest first; during a rotation also the previous ones. */
  secrets: readonly string[];
};

/**
 * Sends one event per request, signed according to Standard Webhooks 1.0. Created for each pass of
 * the dispatcher, because the URL and the secrets may change.
 */
export function createWebhookChannel({
  post,
  endpoint,
  refusalOf,
  now,
}: WebhookChannelOptions): Channel {
  const sign = signerOf(endpoint.secrets);
  const ownRefusal = endpoint.url === null ? undefined : refusalOf(endpoint.url);
  return {
    maxBatch: 1,
    retryDelayMs,
    async send([outgoing], signal) {
      if (!outgoing) return failed('the batch is empty');
      const url = endpoint.url ?? outgoing.callbackUrl;
      if (url === null) return failed('the delivery has no URL');
      const refusal = endpoint.url === null ? refusalOf(url) : ownRefusal;
      if (refusal !== undefined) return failed(refusal);
      if (!sign) return failed('the webhook has no valid secret to sign with');
      const { event, json: body, traceparent } = outgoing;
      const signed = sign({ id: event.id, timestampS: Math.floor(now() / 1_000), body });
      const headers = traceparent === undefined ? signed : { ...signed, traceparent };
      return toSendResult(
        await post({ url, body, headers, secrets: redactable(endpoint.secrets), signal }),
      );
    },
    async close() {},
  };
}

/** The receiver knows the secret and may return it in an error, with or without its prefix. */
function redactable(secrets: readonly string[]): string[] {
  return secrets.flatMap((secret) => [secret, secret.slice(secret.indexOf('_') + 1)]);
}

/** Undefined if there is no valid secret: nothing is sent unsigned. */
function signerOf(secrets: readonly string[]): Signer | undefined {
  try {
    return createSigner(secrets);
  } catch {
    return undefined;
  }
}

import { retryDelayMs } from '../dispatch/retry-schedule.ts';
import { type HttpPost, toSendResult } from '../transport/http-post.ts';
import type { Channel, SendResult } from './channel.ts';
import { createSigner, type Signer } from './signing.ts';

export type WebhookChannelOptions = {
  /** Shared by all webhooks, and closed by who made it. */
  post: HttpPost['post'];
  endpoint: WebhookEndpoint;
  /** Why nothing is sent to that address; undefined: it may be. What may be can change after an address was kept. */
  refusalOf: (url: string) => string | undefined;
  /** Epoch milliseconds. */
  now: () => number;
};

export type WebhookEndpoint = {
  /** null: of the callbacks, whose addresses come with what is sent. */
  url: string | null;
  /** The newest first; during a rotation those before it too. */
  secrets: readonly string[];
};

/**
 * One event per request, signed as Standard Webhooks 1.0 says. To be made anew for what is sent at one time: by then it may
 * have been moved or its secret rotated.
 */
export function createWebhookChannel({ post, endpoint, refusalOf, now }: WebhookChannelOptions): Channel {
  const sign = signerOf(endpoint.secrets);
  const ownRefusal = endpoint.url === null ? undefined : refusalOf(endpoint.url);
  return {
    maxBatch: 1,
    retryDelayMs,
    async send([outgoing], signal) {
      if (!outgoing) return failed('there is nothing to send');
      const url = endpoint.url ?? outgoing.callbackUrl;
      if (url === null) return failed('there is no address to send to');
      const refusal = endpoint.url === null ? refusalOf(url) : ownRefusal;
      if (refusal !== undefined) return failed(refusal);
      if (!sign) return failed('its secret can not sign');
      const { event, json: body } = outgoing;
      const headers = sign({ id: event.id, timestampS: Math.floor(now() / 1_000), body });
      return toSendResult(await post({ url, body, headers, secrets: quotable(endpoint.secrets), signal }));
    },
    async close() {},
  };
}

/** A receiver has the secret too, and may show it with an error: as it is, or without its prefix. */
function quotable(secrets: readonly string[]): string[] {
  return secrets.flatMap((secret) => [secret, secret.slice(secret.indexOf('_') + 1)]);
}

/** Undefined: there is no secret, or one that is none. Unsigned nothing is sent. */
function signerOf(secrets: readonly string[]): Signer | undefined {
  try {
    return createSigner(secrets);
  } catch {
    return undefined;
  }
}

function failed(error: string): SendResult {
  return { kind: 'failed', httpStatus: null, error, response: null };
}

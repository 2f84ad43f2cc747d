import { createHmac, createSecretKey, randomBytes } from 'node:crypto';
import { serviceAddressError } from '../../lib/addresses.ts';
import { secretsOfHeaders } from '../../lib/request-headers.ts';
import { CALLBACKS_ID } from '../delivery.ts';
import type { AddressGuard } from '../transport/address-guard.ts';
import type { HttpPost } from '../transport/http-post.ts';
import { type Channel, failed, retryDelayMs, toSendResult } from './channel.ts';

const MAX_CHARS = 2_048;
/** Other ports below 1024 are refused: they belong to services such as mail and SSH. */
const [HTTP_PORTS, MIN_OTHER_PORT] = [['443', '80'], 1_024];

type Rules = {
  allowHttp: boolean;
  guard: AddressGuard;
};

/** Returns why a URL is not allowed. No I/O: the guard checks addresses at each connection. */
export function checkWebhookUrl(text: string, { allowHttp, guard }: Rules): string | undefined {
  if (text.length > MAX_CHARS) return `the URL has more than ${MAX_CHARS} characters`;
  const problem = serviceAddressError(text, allowHttp ? ['https', 'http'] : ['https']);
  const isHttp = !allowHttp && /^http:/i.test(text);
  if (problem !== undefined)
    return `the URL ${problem}${isHttp ? '; webhooks.allow_http is not set' : ''}`;
  // The parser reads it as a slash; other parsers would see another host.
  if (text.split('?', 1)[0]?.includes('\\')) return 'the URL must not have a backslash (\\)';
  // Checked in the text, because parsing drops an empty user name.
  if (text.split(/[/?]/)[2]?.includes('@'))
    return 'the URL must not contain a user name or a password';
  const url = new URL(text);
  if (url.port !== '' && !HTTP_PORTS.includes(url.port) && Number(url.port) < MIN_OTHER_PORT)
    return `the port must be ${HTTP_PORTS.join(', ')} or at least ${MIN_OTHER_PORT}`;
  return checkHost(url.hostname, guard);
}

/** `host` as normalized by URL, with IPv6 addresses in brackets. */
function checkHost(host: string, guard: AddressGuard): string | undefined {
  const isAddress = host.startsWith('[') || /^[\d.]+$/.test(host);
  if (isAddress) {
    const reason = guard.check(host);
    return reason && `the URL is not allowed: ${reason}`;
  }
  if (
    /^(?:.*\.)?localhost\.?$/.test(host) &&
    !['127.0.0.1', '::1'].some((address) => !guard.check(address))
  )
    return 'the URL is not allowed: its host is this machine, which is not in webhooks.allow';
  return undefined;
}

export type WebhookChannelOptions = {
  /** Shared by all webhooks; closed by its creator. */
  post: HttpPost['post'];
  endpoint: WebhookEndpoint;
  /** Returns why a URL is not allowed: settings may have changed since it was stored. */
  refusalOf: (url: string) => string | undefined;
  now: () => number;
};

export type WebhookEndpoint = {
  /** null for callbacks: each delivery has its own URL. */
  url: string | null;
  /** Sent with every request; their values are secret. */
  headers?: Record<string, string>;
  /** The newest first; during a rotation also the previous one. */
  secrets: readonly string[];
};

/** Signed by Standard Webhooks 1.0. Created for each pass, because URL and secrets may change. */
export function createWebhookChannel({
  post,
  endpoint,
  refusalOf,
  now,
}: WebhookChannelOptions): Channel {
  const sign = signerOf(endpoint.secrets);
  const secrets = [...redactable(endpoint.secrets), ...secretsOfHeaders(endpoint.headers ?? {})];
  const ownRefusal = endpoint.url === null ? undefined : refusalOf(endpoint.url);
  return {
    address: endpoint.url ?? CALLBACKS_ID,
    maxBatch: 1,
    retryDelayMs,
    async send([outgoing], signal) {
      if (!outgoing) return failed('the batch is empty');
      const url = endpoint.url ?? outgoing.callbackUrl;
      if (url === null) return failed('the delivery has no URL');
      const refusal = endpoint.url === null ? refusalOf(url) : ownRefusal;
      if (refusal !== undefined) return failed(refusal);
      if (!sign) return failed('the webhook has no valid secret to sign with');
      const { event, json: body } = outgoing;
      const signed = sign({ id: event.id, timestampS: Math.floor(now() / 1_000), body });
      const headers = { ...endpoint.headers, ...signed };
      return toSendResult(await post({ url, body, headers, secrets, signal }));
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

const PREFIX = 'whsec_';
const NEW_SECRET_BYTES = 32;
/** Allowed by Standard Webhooks: 192 to 512 bits. */
const [MIN_SECRET_BYTES, MAX_SECRET_BYTES] = [24, 64];

export function makeSecret(): string {
  return `${PREFIX}${randomBytes(NEW_SECRET_BYTES).toString('base64')}`;
}

/** Returns why a supplied secret is invalid. The reason does not contain the secret. */
export function checkSecret(text: string): string | undefined {
  if (!text.startsWith(PREFIX)) return `a secret must begin with ${PREFIX}`;
  const { length } = bytesOf(text);
  // Buffer ignores invalid base64, so a mistyped secret would differ from the receiver's.
  if (`${PREFIX}${bytesOf(text).toString('base64')}` !== text)
    return `after ${PREFIX} a secret must be padded base64 without spaces`;
  return length < MIN_SECRET_BYTES || length > MAX_SECRET_BYTES
    ? `a secret must have ${MIN_SECRET_BYTES} to ${MAX_SECRET_BYTES} bytes`
    : undefined;
}

function bytesOf(secret: string): Buffer {
  return Buffer.from(secret.slice(PREFIX.length), 'base64');
}

type SignedContent = {
  /** The same for all attempts. Without dots: other content could have the same signature. */
  id: string;
  /** Time of the attempt in epoch seconds: receivers refuse old requests. */
  timestampS: number;
  body: string;
};

export type Signer = (content: SignedContent) => Record<string, string>;

/**
 * `secrets`: during a rotation also the old one; each adds a signature, and a receiver accepts any
 * of them. Throws TypeError if there is no secret, or if checkSecret refuses one.
 */
export function createSigner(secrets: readonly string[]): Signer {
  if (secrets.length === 0) throw new TypeError('there is no secret to sign with');
  const signatures = secrets.map(signatureWith);
  return ({ id, timestampS, body }) => {
    if (id.includes('.')) throw new TypeError('the id must not contain a dot');
    const text = `${id}.${timestampS}.${body}`;
    return {
      'webhook-id': id,
      'webhook-timestamp': String(timestampS),
      'webhook-signature': signatures.map((signature) => signature(text)).join(' '),
    };
  };
}

function signatureWith(secret: string): (text: string) => string {
  const reason = checkSecret(secret);
  if (reason) throw new TypeError(reason);
  // Five times as fast as passing bytes to each HMAC (row `webhooks` of `npm run bench`).
  const key = createSecretKey(bytesOf(secret));
  return (text) => `v1,${createHmac('sha256', key).update(text).digest('base64')}`;
}

import {
  createHmac,
  createPrivateKey,
  createPublicKey,
  createSecretKey,
  generateKeyPairSync,
  type KeyObject,
  randomBytes,
  sign,
} from 'node:crypto';
import { secretsOfHeaders } from '../../lib/extra-headers.ts';
import type { AddressGuard } from '../transport/address-guard.ts';
import { type HttpPost, toSendResult } from '../transport/http-post.ts';
import { CALLBACKS_ID, type Signature } from '../webhook.ts';
import { type Channel, failed, retryDelayMs } from './channel.ts';

const MAX_CHARS = 2_048;
/** Other ports below 1024 are refused: they belong to services such as mail and SSH. */
const [HTTP_PORTS, MIN_OTHER_PORT] = [['443', '80'], 1_024];

type Rules = {
  /** Also allows http:// URLs, for receivers inside a network. */
  allowHttp: boolean;
  guard: AddressGuard;
};

/**
 * Returns why a webhook URL is not allowed, or undefined. Performs no I/O: the address guard checks
 * the addresses of a host name at each connection, because they may change.
 */
export function checkWebhookUrl(text: string, { allowHttp, guard }: Rules): string | undefined {
  if (text.length > MAX_CHARS) return `the URL has more than ${MAX_CHARS} characters`;
  // The parser ignores these characters, so the stored URL would differ from the used one.
  if (/[\s\p{Cc}]/u.test(text)) return 'the URL contains spaces or control characters';
  const url = URL.parse(text);
  if (!url) return 'it is not an absolute URL';
  if (url.protocol !== 'https:' && !(allowHttp && url.protocol === 'http:'))
    return allowHttp
      ? 'the URL must begin with https:// or http://'
      : 'the URL must begin with https://, because webhooks.allow_http is not set';
  // The parser also accepts https:b.com and https:\\b.com; other parsers do not.
  if (!/^https?:\/\//i.test(text)) return 'the URL must have // after its protocol';
  // The parser reads it as a slash; other parsers would see another host.
  if (text.split('?', 1)[0]?.includes('\\')) return 'the URL must not have a backslash (\\)';
  // Checked in the text, because parsing drops an empty user name or fragment.
  if (url.username || url.password || authorityOf(text).includes('@'))
    return 'the URL must not contain a user name or a password';
  if (text.includes('#')) return 'the URL must not have a fragment (#)';
  if (url.port !== '' && !HTTP_PORTS.includes(url.port) && Number(url.port) < MIN_OTHER_PORT)
    return `the port must be ${HTTP_PORTS.join(', ')} or at least ${MIN_OTHER_PORT}`;
  return checkHost(url.hostname, guard);
}

function authorityOf(text: string): string {
  return text.replace(/^[^:]*:[/\\]*/, '').split(/[/\\?#]/, 1)[0] ?? '';
}

/** `host` as normalized by URL, with IPv6 addresses in brackets. */
function checkHost(host: string, guard: AddressGuard): string | undefined {
  if (host === '') return 'the URL has no host';
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
  /** Sent with every request; their values are secret. */
  headers?: Record<string, string>;
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

/** The prefix of a secret determines its signature scheme (Standard Webhooks 1.0). */
const PREFIXES = { v1: 'whsec_', v1a: 'whsk_' } as const;
const PUBLIC_PREFIX = 'whpk_';
const NEW_SECRET_BYTES = 32;
/** Allowed by the standard for v1: 192 to 512 bits. */
const [MIN_SECRET_BYTES, MAX_SECRET_BYTES] = [24, 64];
/** Length of an ed25519 seed. In a secret the public key follows it. */
const SEED_BYTES = 32;

/**
 * Returns `whsec_` and base64 of 32 random bytes (v1), or `whsk_` and base64 of an ed25519 seed and
 * its public key (v1a).
 */
export function makeSecret(signature: Signature): string {
  if (signature === 'v1')
    return `${PREFIXES.v1}${randomBytes(NEW_SECRET_BYTES).toString('base64')}`;
  const { d = '', x = '' } = generateKeyPairSync('ed25519').privateKey.export({ format: 'jwk' });
  const bytes = Buffer.concat([Buffer.from(d, 'base64url'), Buffer.from(x, 'base64url')]);
  return `${PREFIXES.v1a}${bytes.toString('base64')}`;
}

/** Returns a new secret, or `own`, with the public key of a v1a secret. */
export function createSecret(
  signature: Signature,
  own?: string,
): { secret: string; publicKey: string | null } {
  const secret = own ?? makeSecret(signature);
  return { secret, publicKey: signature === 'v1a' ? publicKeyOf(secret) : null };
}

/** Returns the public key of a `whsk_` secret: `whpk_` and base64 of 32 bytes. */
export function publicKeyOf(secret: string): string {
  return `${PUBLIC_PREFIX}${publicBytes(privateKey(usable(secret, 'v1a'))).toString('base64')}`;
}

/**
 * Returns why a supplied secret is invalid, or undefined. The reason does not contain the secret.
 */
export function checkSecret(text: string): string | undefined {
  const signature = signatureOf(text);
  if (!signature) return `a secret must begin with ${PREFIXES.v1} or ${PREFIXES.v1a}`;
  const bytes = bytesOf(text, signature);
  // Buffer ignores invalid base64, so a mistyped secret would differ from the receiver's.
  if (`${PREFIXES[signature]}${bytes.toString('base64')}` !== text)
    return `after ${PREFIXES[signature]} a secret must be padded base64 without spaces`;
  if (signature === 'v1')
    return bytes.length < MIN_SECRET_BYTES || bytes.length > MAX_SECRET_BYTES
      ? `a ${PREFIXES.v1} secret must have ${MIN_SECRET_BYTES} to ${MAX_SECRET_BYTES} bytes`
      : undefined;
  const isPair =
    bytes.length === 2 * SEED_BYTES &&
    publicBytes(privateKey(bytes)).equals(bytes.subarray(SEED_BYTES));
  return isPair
    ? undefined
    : `a ${PREFIXES.v1a} secret must have 64 bytes: an ed25519 seed and its public key`;
}

type SignedContent = {
  /**
   * The event id, the same for all attempts. Must not contain dots: other content could then have
   * the same signature.
   */
  id: string;
  /** Time of the attempt in epoch seconds: receivers refuse old requests. */
  timestampS: number;
  /** The exact request body. */
  body: string;
};

/** Returns the three headers of Standard Webhooks. */
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
  const signature = signatureOf(secret) ?? 'v1';
  const bytes = usable(secret, signature);
  if (signature === 'v1a') {
    const key = privateKey(bytes);
    return (text) => `${signature},${sign(null, Buffer.from(text), key).toString('base64')}`;
  }
  // Five times as fast as passing bytes to each HMAC (row `webhooks` of `npm run bench`).
  const key = createSecretKey(bytes);
  return (text) => `${signature},${createHmac('sha256', key).update(text).digest('base64')}`;
}

function signatureOf(secret: string): Signature | undefined {
  return (['v1', 'v1a'] as const).find((signature) => secret.startsWith(PREFIXES[signature]));
}

function bytesOf(secret: string, signature: Signature): Buffer {
  return Buffer.from(secret.slice(PREFIXES[signature].length), 'base64');
}

function usable(secret: string, signature: Signature): Buffer {
  const reason =
    signatureOf(secret) === signature
      ? checkSecret(secret)
      : `a ${signature} secret must begin with ${PREFIXES[signature]}`;
  if (reason) throw new TypeError(reason);
  return bytesOf(secret, signature);
}

function privateKey(bytes: Buffer): KeyObject {
  // The PKCS #8 prefix of every ed25519 key (RFC 8410): node:crypto does not import a bare seed.
  const head = Buffer.from('302e020100300506032b657004220420', 'hex');
  return createPrivateKey({
    key: Buffer.concat([head, bytes.subarray(0, SEED_BYTES)]),
    format: 'der',
    type: 'pkcs8',
  });
}

function publicBytes(key: KeyObject): Buffer {
  return Buffer.from(createPublicKey(key).export({ format: 'jwk' }).x ?? '', 'base64url');
}

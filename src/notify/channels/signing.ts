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
import type { Signature } from '../../domain/notifications/webhook.ts';

/** Standard Webhooks 1.0: what secrets look like says how they sign. */
const PREFIXES = { v1: 'whsec_', v1a: 'whsk_' } as const;
const PUBLIC_PREFIX = 'whpk_';
const NEW_SECRET_BYTES = 32;
/** What the standard allows for v1: 192 to 512 bits. */
const [MIN_SECRET_BYTES, MAX_SECRET_BYTES] = [24, 64];
/** Of a private ed25519 key, which is followed by its public key. */
const SEED_BYTES = 32;

/** v1: `whsec_` and base64 of 32 random bytes. v1a: `whsk_` and base64 of an ed25519 seed and its public key. */
export function makeSecret(signature: Signature): string {
  if (signature === 'v1') return `${PREFIXES.v1}${randomBytes(NEW_SECRET_BYTES).toString('base64')}`;
  const { d = '', x = '' } = generateKeyPairSync('ed25519').privateKey.export({ format: 'jwk' });
  const bytes = Buffer.concat([Buffer.from(d, 'base64url'), Buffer.from(x, 'base64url')]);
  return `${PREFIXES.v1a}${bytes.toString('base64')}`;
}

/** What receivers verify a `whsk_` secret's signatures with: `whpk_` and base64 of 32 bytes. */
export function publicKeyOf(secret: string): string {
  return `${PUBLIC_PREFIX}${publicBytes(privateKey(usable(secret, 'v1a'))).toString('base64')}`;
}

/** Why a secret that somebody brings can't sign; undefined: it can. Never says what it is. */
export function checkSecret(text: string): string | undefined {
  const signature = signatureOf(text);
  if (!signature) return `a secret begins with ${PREFIXES.v1} or ${PREFIXES.v1a}`;
  const bytes = bytesOf(text, signature);
  // Buffer passes over what is no base64: a mistyped secret would be another one than its receiver has.
  if (`${PREFIXES[signature]}${bytes.toString('base64')}` !== text)
    return `after ${PREFIXES[signature]} a secret is base64, padded and without spaces`;
  if (signature === 'v1')
    return bytes.length < MIN_SECRET_BYTES || bytes.length > MAX_SECRET_BYTES
      ? `a ${PREFIXES.v1} secret has ${MIN_SECRET_BYTES} to ${MAX_SECRET_BYTES} bytes`
      : undefined;
  const isPair = bytes.length === 2 * SEED_BYTES && publicBytes(privateKey(bytes)).equals(bytes.subarray(SEED_BYTES));
  return isPair ? undefined : `a ${PREFIXES.v1a} secret has 64 bytes: an ed25519 seed and its public key`;
}

type SignedContent = {
  /** Of the event: the same over all attempts. No dots, which would let other texts have the same signature. */
  id: string;
  /** Of the attempt, epoch seconds: receivers refuse what is old. */
  timestampS: number;
  /** Exactly what is sent. */
  body: string;
};

/** Gives the three headers of Standard Webhooks. */
export type Signer = (attempt: SignedContent) => Record<string, string>;

/**
 * `secrets`: during a rotation the old one too; each gives a signature, and a receiver takes any that it can verify.
 * Throws on a secret that checkSecret refuses, and if there is none.
 */
export function createSigner(secrets: readonly string[]): Signer {
  if (secrets.length === 0) throw new TypeError('there is no secret to sign with');
  const signatures = secrets.map(signatureWith);
  return ({ id, timestampS, body }) => {
    if (id.includes('.')) throw new TypeError('the id of what is signed must not have a dot');
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
  // From bytes, each signature would take five times as long.
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
      : `a ${signature} secret begins with ${PREFIXES[signature]}`;
  if (reason) throw new TypeError(reason);
  return bytesOf(secret, signature);
}

function privateKey(bytes: Buffer): KeyObject {
  // node:crypto reads no bare seeds; this is what every PKCS #8 document of an ed25519 key begins with (RFC 8410).
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

import { createHmac, timingSafeEqual } from 'node:crypto';
import type { DawatchEvent } from './events.ts';

export type WebhookRequest = {
  /** The unparsed request body. */
  payload: string | Uint8Array;
  /** All request headers; their names are case-insensitive. */
  headers: Headers | Record<string, string | readonly string[] | undefined>;
  /** `whsec_…`, or several secrets during a rotation. */
  secret: string | readonly string[];
  /** Maximum difference between the timestamp and now in seconds. Default 300. */
  toleranceS?: number;
  /** Epoch milliseconds. Default: now. */
  now?: number;
};

export type WebhookProblem =
  /** webhook-id, webhook-timestamp or webhook-signature is missing or repeated. */
  | 'missing_header'
  /** webhook-timestamp is not a number of seconds. */
  | 'invalid_timestamp'
  /** Older than the tolerance: delayed, or a replayed recording. */
  | 'too_old'
  /** Further in the future than the tolerance: the clocks differ. */
  | 'too_new'
  /** No signature matches the body, id and timestamp. */
  | 'no_match'
  /** The signature is valid, but the body is not an event. */
  | 'invalid_payload';

/** The request is forged or outdated: respond with 400 and ignore it. */
export class WebhookVerificationError extends Error {
  override readonly name = 'WebhookVerificationError';
  readonly problem: WebhookProblem;
  constructor(problem: WebhookProblem, message: string) {
    super(message);
    this.problem = problem;
  }
}

const TOLERANCE_S = 300;
/** The minimum of Standard Webhooks: 192 bits. */
const MIN_SECRET_BYTES = 24;

/**
 * Verifies a webhook request (Standard Webhooks 1.0, symmetric `v1` signatures) and returns its
 * event. An event id seen before is a repeated delivery. Throws WebhookVerificationError, or
 * TypeError for an invalid secret or a parsed payload.
 */
export function verifyWebhook(request: WebhookRequest): DawatchEvent {
  const { payload, headers, secret, toleranceS = TOLERANCE_S, now = Date.now() } = request;
  const keys = [secret].flat().map(keyOf);
  if (keys.length === 0) throw new TypeError('a secret is required');
  if (typeof payload !== 'string' && !(payload instanceof Uint8Array))
    throw new TypeError(
      'the payload must be the unparsed body, a string or bytes: the signature cannot be verified for parsed JSON',
    );
  const id = headerOf(headers, 'webhook-id');
  const timestamp = headerOf(headers, 'webhook-timestamp');
  const signatures = headerOf(headers, 'webhook-signature').split(' ');
  checkTimestamp(timestamp, { toleranceS, now });
  const body = typeof payload === 'string' ? Buffer.from(payload) : payload;
  const expected = keys.map((key) => sign(key, `${id}.${timestamp}.`, body));
  if (!hasMatch(expected, signatures))
    throw new WebhookVerificationError('no_match', 'no signature of the webhook matches');
  return eventOf(body);
}

function keyOf(secret: string): Buffer {
  const text = secret.replace(/^whsec_/, '');
  const key = Buffer.from(text, 'base64');
  // Buffer ignores invalid base64, so a mistyped secret would become a different one.
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(text) || key.length < MIN_SECRET_BYTES)
    throw new TypeError(
      `a webhook secret is whsec_ followed by base64 of at least ${MIN_SECRET_BYTES} bytes`,
    );
  return key;
}

function headerOf(headers: WebhookRequest['headers'], name: string): string {
  const values =
    headers instanceof Headers
      ? [headers.get(name)]
      : Object.entries(headers).flatMap(([key, value]) =>
          key.toLowerCase() === name ? value : [],
        );
  const [value] = values;
  // A repeated header is ambiguous and therefore refused.
  if (values.length !== 1 || !value)
    throw new WebhookVerificationError('missing_header', `${name} is missing`);
  return value;
}

function checkTimestamp(
  text: string,
  { toleranceS, now }: { toleranceS: number; now: number },
): void {
  if (!/^\d{1,12}$/.test(text))
    throw new WebhookVerificationError(
      'invalid_timestamp',
      'webhook-timestamp is not a number of seconds',
    );
  const ageS = Math.floor(now / 1_000) - Number(text);
  if (ageS > toleranceS)
    throw new WebhookVerificationError('too_old', `the webhook is ${ageS} s old`);
  if (ageS < -toleranceS)
    throw new WebhookVerificationError('too_new', `the webhook is ${-ageS} s in the future`);
}

function sign(key: Buffer, head: string, body: Uint8Array): Buffer {
  return Buffer.from(`v1,${createHmac('sha256', key).update(head).update(body).digest('base64')}`);
}

/** Compares all signatures in constant time. */
function hasMatch(expected: readonly Buffer[], signatures: readonly string[]): boolean {
  let matches = 0;
  for (const signature of signatures) {
    const bytes = Buffer.from(signature);
    for (const one of expected)
      if (bytes.length === one.length && timingSafeEqual(bytes, one)) matches += 1;
  }
  return matches > 0;
}

function eventOf(body: Uint8Array): DawatchEvent {
  try {
    const event: unknown = JSON.parse(Buffer.from(body).toString('utf8'));
    if (typeof event === 'object' && event !== null && 'type' in event && 'data' in event)
      return event as DawatchEvent;
  } catch {}
  throw new WebhookVerificationError(
    'invalid_payload',
    'the signature is valid, but the body is not an event',
  );
}

import { createHmac, timingSafeEqual } from 'node:crypto';
import type { DawatchEvent } from './shapes.ts';

export type WebhookRequest = {
  /** The body exactly as it came, before anything parses it. */
  payload: string | Uint8Array;
  /** All headers of the request; the case of their names doesn't matter. */
  headers: Headers | Record<string, string | readonly string[] | undefined>;
  /** `whsec_…`, or several of them while a secret is rotated. */
  secret: string | readonly string[];
  /** How many seconds the sender's clock may be off, and how late a delivery may come. Default 300. */
  toleranceS?: number;
  /** Epoch milliseconds. Default: now. */
  now?: number;
};

export type WebhookProblem =
  /** webhook-id, webhook-timestamp or webhook-signature is not there. */
  | 'missing_header'
  /** webhook-timestamp is no number of seconds. */
  | 'invalid_timestamp'
  /** Older than the tolerance: late, or somebody sends a recorded one again. */
  | 'too_old'
  /** Further in the future than the tolerance: the clocks differ. */
  | 'too_new'
  /** No signature is one that the secrets make of this body, id and timestamp. */
  | 'no_match'
  /** It was signed, but is no event. */
  | 'invalid_payload';

/** The request is not from dawatch, or not from now: answer it with 400 and do nothing. */
export class WebhookVerificationError extends Error {
  override readonly name = 'WebhookVerificationError';
  readonly problem: WebhookProblem;
  constructor(problem: WebhookProblem, message: string) {
    super(message);
    this.problem = problem;
  }
}

const TOLERANCE_S = 300;
/** The least that Standard Webhooks allows: 192 bits. */
const MIN_SECRET_BYTES = 24;

/**
 * The event of a webhook, if it is genuine (Standard Webhooks 1.0, symmetric `v1` signatures). An id that was seen before
 * is a repeat. Throws WebhookVerificationError; TypeError if the secret or the payload is nothing to verify with.
 */
export function verifyWebhook(request: WebhookRequest): DawatchEvent {
  const { payload, headers, secret, toleranceS = TOLERANCE_S, now = Date.now() } = request;
  const keys = [secret].flat().map(keyOf);
  if (keys.length === 0) throw new TypeError('a secret is needed');
  if (typeof payload !== 'string' && !(payload instanceof Uint8Array))
    throw new TypeError(
      'the payload must be the body as it came, a string or bytes: parsed JSON has lost what was signed',
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
  // Buffer passes over what is no base64: a mistyped secret would be another one.
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(text) || key.length < MIN_SECRET_BYTES)
    throw new TypeError(`a webhook secret is whsec_ and base64 of at least ${MIN_SECRET_BYTES} bytes`);
  return key;
}

function headerOf(headers: WebhookRequest['headers'], name: string): string {
  const values =
    headers instanceof Headers
      ? [headers.get(name)]
      : Object.entries(headers).flatMap(([key, value]) => (key.toLowerCase() === name ? value : []));
  const [value] = values;
  // Twice the same header: nobody knows which one was meant.
  if (values.length !== 1 || !value) throw new WebhookVerificationError('missing_header', `${name} is missing`);
  return value;
}

function checkTimestamp(text: string, { toleranceS, now }: { toleranceS: number; now: number }): void {
  if (!/^\d{1,12}$/.test(text))
    throw new WebhookVerificationError('invalid_timestamp', 'webhook-timestamp is no number of seconds');
  const ageS = Math.floor(now / 1_000) - Number(text);
  if (ageS > toleranceS) throw new WebhookVerificationError('too_old', `the webhook is ${ageS} s old`);
  if (ageS < -toleranceS) throw new WebhookVerificationError('too_new', `the webhook is from ${-ageS} s in the future`);
}

function sign(key: Buffer, head: string, body: Uint8Array): Buffer {
  return Buffer.from(`v1,${createHmac('sha256', key).update(head).update(body).digest('base64')}`);
}

/** Always all of them: the time must not tell which one was close. */
function hasMatch(expected: readonly Buffer[], signatures: readonly string[]): boolean {
  let matches = 0;
  for (const signature of signatures) {
    const given = Buffer.from(signature);
    for (const one of expected) if (given.length === one.length && timingSafeEqual(given, one)) matches += 1;
  }
  return matches > 0;
}

function eventOf(body: Uint8Array): DawatchEvent {
  try {
    const event: unknown = JSON.parse(Buffer.from(body).toString('utf8'));
    if (typeof event === 'object' && event !== null && 'type' in event && 'data' in event) return event as DawatchEvent;
  } catch {}
  throw new WebhookVerificationError('invalid_payload', 'the webhook is signed, but its body is no event');
}

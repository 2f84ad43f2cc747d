import crypto, { createHmac, randomBytes } from 'node:crypto';
import { syncBuiltinESMExports } from 'node:module';
import { describe, expect, it, onTestFinished } from 'vitest';
import { verifyWebhook, type WebhookRequest } from '../../src/client/webhook.ts';

const NOW = Date.parse('2026-01-02T03:04:05.678Z');
const SECONDS = Math.floor(NOW / 1_000);
const secretOf = (key: Buffer) => `whsec_${key.toString('base64')}`;
const [KEY, OLD_KEY] = [randomBytes(32), randomBytes(24)];
const EVENT = {
  id: 'evt_1',
  type: 'upstream.up',
  timestamp: '2026-01-02T03:04:05.000Z',
  data: { upstream: 'größer ✓' },
};
const PAYLOAD = JSON.stringify(EVENT);

/** The signature as the standard defines it: base64 of HMAC-SHA256 over "id.timestamp.body". */
function signed(key: Buffer, fields: { id?: string; at?: number | string; payload?: string } = {}) {
  const { id = 'evt_1', at = SECONDS, payload = PAYLOAD } = fields;
  return `v1,${createHmac('sha256', key).update(`${id}.${at}.${payload}`, 'utf8').digest('base64')}`;
}

function request(
  changes: Partial<WebhookRequest> = {},
  headers: Record<string, string | undefined> = {},
): WebhookRequest {
  return {
    payload: PAYLOAD,
    secret: secretOf(KEY),
    now: NOW,
    headers: {
      'webhook-id': 'evt_1',
      'webhook-timestamp': String(SECONDS),
      'webhook-signature': signed(KEY),
      ...headers,
    },
    ...changes,
  };
}

const at = (seconds: number) => ({
  'webhook-timestamp': String(seconds),
  'webhook-signature': signed(KEY, { at: seconds }),
});

it('verifies the example from the tests of the Standard Webhooks libraries', () => {
  const verify = () =>
    verifyWebhook({
      payload: '{"test": 2432232314}',
      secret: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
      headers: {
        'webhook-id': 'msg_p5jXN8AQM9LWM0D4loKWxJek',
        'webhook-timestamp': '1614265330',
        'webhook-signature': 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
      },
      now: 1_614_265_330_000,
    });
  // Genuine, but not an event of dawatch.
  expect(verify).toThrow(expect.objectContaining({ problem: 'invalid_payload' }));
});

describe('accepts', () => {
  const HEADERS = request().headers as Record<string, string>;
  const upper = Object.entries(HEADERS).map(([name, value]) => [name.toUpperCase(), value]);
  const signature = (text: string) => request({}, { 'webhook-signature': text });
  it.each<[string, WebhookRequest]>([
    ['a text', request()],
    ['bytes', request({ payload: Buffer.from(PAYLOAD) })],
    ['headers in another case', request({ headers: Object.fromEntries(upper) })],
    ['headers of fetch', request({ headers: new Headers(HEADERS) })],
    ['a secret without its prefix', request({ secret: KEY.toString('base64') })],
    ['a sender that signs with both secrets', signature(`${signed(OLD_KEY)} ${signed(KEY)}`)],
    ['a receiver that has both secrets', request({ secret: [secretOf(OLD_KEY), secretOf(KEY)] })],
    ['signatures of other versions', signature(`v1a,abc v2,x ${signed(KEY)}`)],
    ['the oldest tolerated timestamp', request({}, at(SECONDS - 300))],
    ['the newest tolerated timestamp', request({}, at(SECONDS + 300))],
    ['a longer tolerance', request({ toleranceS: 1_000 }, at(SECONDS - 1_000))],
  ])('%s', (_, genuine) => {
    expect(verifyWebhook(genuine)).toEqual(EVENT);
  });
});

describe('refuses', () => {
  const flipped = signed(KEY).replace(
    /^(v1,.)(.)/,
    (_, begin, letter) => `${begin}${letter === 'A' ? 'B' : 'A'}`,
  );
  const signature = (text: string) => request({}, { 'webhook-signature': text });
  const time = (text?: string) => request({}, { 'webhook-timestamp': text });
  const old = { ...at(SECONDS - 301), 'webhook-signature': flipped };
  it.each<[string, string, WebhookRequest]>([
    ['another body', 'no_match', request({ payload: `${PAYLOAD} ` })],
    ['another id', 'no_match', request({}, { 'webhook-id': 'evt_2' })],
    ['another time', 'no_match', time(String(SECONDS - 1))],
    ['another secret', 'no_match', request({ secret: secretOf(OLD_KEY) })],
    ['one changed letter', 'no_match', signature(flipped)],
    ['a truncated signature', 'no_match', signature(signed(KEY).slice(0, -1))],
    ['a signature of another version', 'no_match', signature(signed(KEY).replace('v1', 'v2'))],
    ['garbage', 'no_match', signature('v1,=== v1, v1 ☃ ,')],
    ['one second too old', 'too_old', request({}, at(SECONDS - 301))],
    ['one second too new', 'too_new', request({}, at(SECONDS + 301))],
    ['an old timestamp with an invalid signature', 'too_old', request({}, old)],
    ['a time in words', 'invalid_timestamp', time('now')],
    ['a time with a fraction', 'invalid_timestamp', time(`${SECONDS}.5`)],
    ['no id', 'missing_header', request({}, { 'webhook-id': undefined })],
    ['no time', 'missing_header', time()],
    ['no signature', 'missing_header', signature('')],
    ['no headers', 'missing_header', request({ headers: {} })],
    ['a repeated id header', 'missing_header', request({}, { 'Webhook-Id': 'evt_2' })],
  ])('%s', (_, problem, forged) => {
    expect(() => verifyWebhook(forged)).toThrow(
      expect.objectContaining({ name: 'WebhookVerificationError', problem }),
    );
  });

  it.each(['', 'null', '{"type":"a"}', '{"type":'])('the signed body %j', (payload) => {
    const genuine = request({ payload }, { 'webhook-signature': signed(KEY, { payload }) });
    expect(() => verifyWebhook(genuine)).toThrow(
      expect.objectContaining({ problem: 'invalid_payload' }),
    );
  });

  it.each<[string, Partial<WebhookRequest>]>([
    ['an empty secret', { secret: '' }],
    ['only the prefix of a secret', { secret: 'whsec_' }],
    ['a secret of 23 bytes', { secret: secretOf(randomBytes(23)) }],
    ['a secret that is not base64', { secret: `${secretOf(KEY)}!` }],
    ['no secret', { secret: [] }],
    ['parsed JSON', { payload: EVENT as never }],
  ])('%s as an error of the caller', (_, changes) => {
    expect(() => verifyWebhook(request(changes))).toThrow(TypeError);
  });
});

it('compares signatures in constant time, each with every secret, also after a match', () => {
  const original = crypto.timingSafeEqual;
  let compared = 0;
  onTestFinished(() => {
    crypto.timingSafeEqual = original;
    syncBuiltinESMExports();
  });
  crypto.timingSafeEqual = (one, other) => {
    compared += 1;
    return original(one, other);
  };
  syncBuiltinESMExports();
  const both = `${signed(KEY)} ${signed(OLD_KEY)}`;
  verifyWebhook(
    request({ secret: [secretOf(KEY), secretOf(OLD_KEY)] }, { 'webhook-signature': both }),
  );
  expect(compared).toBe(4);
});

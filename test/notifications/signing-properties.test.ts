import crypto, { createPublicKey, verify } from 'node:crypto';
import { syncBuiltinESMExports } from 'node:module';
import fc from 'fast-check';
import { describe, expect, it, onTestFinished } from 'vitest';
import { verifyWebhook, WebhookVerificationError } from '../../src/client/webhook.ts';
import {
  checkSecret,
  createSigner,
  makeSecret,
  publicKeyOf,
} from '../../src/notifications/channels/webhook.ts';

const NOW_S = 1_767_323_045;
const NOW = NOW_S * 1_000;

const id = fc.stringMatching(/^[A-Za-z0-9_-]{1,40}$/);
const body = fc
  .record({ type: fc.string(), data: fc.jsonValue(), message: fc.string({ unit: 'binary' }) })
  .map((event) => JSON.stringify(event));
const symmetric = fc
  .uint8Array({ minLength: 24, maxLength: 64 })
  .map((key) => `whsec_${Buffer.from(key).toString('base64')}`);
/** Key pairs of ed25519 are generated once, because that is slow. */
const asymmetric = fc.constantFrom(makeSecret('v1a'), makeSecret('v1a'));

type Sent = { payload: Buffer; headers: Record<string, string> };
function sent(id: string, body: string, secrets: readonly string[]): Sent {
  return {
    payload: Buffer.from(body),
    headers: createSigner(secrets)({ id, timestampS: NOW_S, body }),
  };
}

const problemOf = (work: () => unknown): string => {
  try {
    work();
    return 'genuine';
  } catch (error) {
    // Any other error is a defect, and fails the test.
    if (error instanceof WebhookVerificationError) return error.problem;
    throw error;
  }
};

/** Verifies by the standard with node:crypto only, like a receiver with the public key. */
function verifiesAsymmetric({ payload, headers }: Sent, publicKey: string): boolean {
  const x = Buffer.from(publicKey.replace(/^whpk_/, ''), 'base64').toString('base64url');
  const key = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' });
  const signed = Buffer.concat([
    Buffer.from(`${headers['webhook-id']}.${headers['webhook-timestamp']}.`),
    payload,
  ]);
  return (headers['webhook-signature'] ?? '').split(' ').some((one) => {
    const bytes = Buffer.from(one.slice(4), 'base64');
    // base64 has several spellings of the same bytes: only the original one is accepted.
    return (
      one === `v1a,${bytes.toString('base64')}` &&
      bytes.length === 64 &&
      verify(null, signed, key, bytes)
    );
  });
}

const place = fc.tuple(
  fc.constantFrom('payload', 'webhook-id', 'webhook-timestamp', 'webhook-signature'),
  fc.nat(),
  fc.nat(7),
);

/** Returns a copy with one bit inverted. */
function withOneBitChanged(
  { payload, headers }: Sent,
  [where, at, bit]: [string, number, number],
): Sent {
  const turned = (bytes: Buffer) => {
    const copy = Buffer.from(bytes);
    const index = at % copy.length;
    copy[index] = (copy[index] ?? 0) ^ (1 << bit);
    return copy;
  };
  if (where === 'payload') return { payload: turned(payload), headers };
  return {
    payload,
    headers: {
      ...headers,
      [where]: turned(Buffer.from(headers[where] ?? '', 'latin1')).toString('latin1'),
    },
  };
}

describe('a signature', () => {
  it('with a shared secret, is verified by each of the signing secrets', () => {
    fc.assert(
      fc.property(
        id,
        body,
        fc.array(symmetric, { minLength: 1, maxLength: 3 }),
        fc.nat(),
        (id, body, secrets, which) => {
          const secret = secrets[which % secrets.length] ?? '';
          expect(checkSecret(secret)).toBeUndefined();
          expect(verifyWebhook({ ...sent(id, body, secrets), secret, now: NOW })).toEqual(
            JSON.parse(body),
          );
        },
      ),
      { numRuns: 300 },
    );
  });

  it('with a key pair, is verified by the public key', () => {
    fc.assert(
      fc.property(id, body, asymmetric, symmetric, (id, body, secret, beside) => {
        const both = sent(id, body, [beside, secret]);
        expect(verifiesAsymmetric(both, publicKeyOf(secret))).toBe(true);
        expect(problemOf(() => verifyWebhook({ ...both, secret: beside, now: NOW }))).toBe(
          'genuine',
        );
        expect(verifiesAsymmetric(sent(id, body, [beside]), publicKeyOf(secret))).toBe(false);
      }),
      { numRuns: 100 },
    );
  });

  it('is invalid after any single bit was changed', () => {
    fc.assert(
      fc.property(id, body, symmetric, asymmetric, place, (id, body, secret, key, place) => {
        const forged = withOneBitChanged(sent(id, body, [secret]), place);
        expect(problemOf(() => verifyWebhook({ ...forged, secret, now: NOW }))).not.toBe('genuine');
        const forgedToo = withOneBitChanged(sent(id, body, [key]), place);
        expect(verifiesAsymmetric(forgedToo, publicKeyOf(key))).toBe(false);
      }),
      { numRuns: 500 },
    );
  });

  it('is not verified by a secret that differs in one bit', () => {
    fc.assert(
      fc.property(
        id,
        body,
        fc.uint8Array({ minLength: 24, maxLength: 64 }),
        fc.nat(),
        (id, body, key, at) => {
          const other = Buffer.from(key);
          const bit = at % (8 * other.length);
          other[bit >> 3] = (other[bit >> 3] ?? 0) ^ (1 << (bit & 7));
          const [secret, near] = [key, other].map(
            (bytes) => `whsec_${Buffer.from(bytes).toString('base64')}`,
          );
          const request = sent(id, body, [secret ?? '']);
          expect(problemOf(() => verifyWebhook({ ...request, secret: near ?? '', now: NOW }))).toBe(
            'no_match',
          );
        },
      ),
    );
  });
});

it('for any headers, is accepted or refused without another error', () => {
  const value = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.constantFrom(
      'v1,',
      ',',
      'v1',
      'v1,v1',
      'v1a,AAAA',
      String(NOW_S),
      `${NOW_S}`.padStart(13, '0'),
      '-1',
      '1e3',
      '',
      ' ',
    ),
    fc.base64String().map((text) => `v1,${text} v2,${text}`),
    fc.array(fc.string(), { maxLength: 3 }),
    fc.constant(undefined),
  );
  const name = fc.constantFrom(
    'webhook-id',
    'webhook-timestamp',
    'webhook-signature',
    'Webhook-Id',
    '__proto__',
    'constructor',
  );
  const payload = fc.oneof(fc.string({ unit: 'binary' }), fc.uint8Array());
  fc.assert(
    fc.property(
      fc.array(fc.tuple(name, value), { maxLength: 6 }),
      payload,
      symmetric,
      (pairs, payload, secret) => {
        const problem = problemOf(() =>
          verifyWebhook({ payload, headers: Object.fromEntries(pairs), secret, now: NOW }),
        );
        expect(problem).not.toBe('genuine');
      },
    ),
    { numRuns: 1_000 },
  );
});

it('for any timestamp, is accepted only with whole seconds within the tolerance, even if it is otherwise valid', () => {
  const near = fc.integer({ min: NOW_S - 400, max: NOW_S + 400 });
  const time = fc.oneof(
    near.map(String),
    near.map((seconds) => `${seconds}.0`),
    near.map((seconds) => `+${seconds}`),
    near.map((seconds) => `0x${seconds.toString(16)}`),
    near.map((seconds) => `${seconds / 1e9}e9`),
    near.map((seconds) => `${seconds} `),
    fc.string({ minLength: 1 }),
  );
  fc.assert(
    fc.property(time, symmetric, (timestamp, secret) => {
      const payload = '{"type":"upstream.up","data":{}}';
      const key = Buffer.from(secret.slice(6), 'base64');
      const signature = crypto
        .createHmac('sha256', key)
        .update(`evt_1.${timestamp}.${payload}`)
        .digest('base64');
      const headers = {
        'webhook-id': 'evt_1',
        'webhook-timestamp': timestamp,
        'webhook-signature': `v1,${signature}`,
      };
      const isGenuine = /^\d{1,12}$/.test(timestamp) && Math.abs(Number(timestamp) - NOW_S) <= 300;
      const problem = problemOf(() => verifyWebhook({ payload, headers, secret, now: NOW }));
      expect(problem === 'genuine').toBe(isGenuine);
    }),
    { numRuns: 500 },
  );
});

it('for any text as a secret, is created or the secret is refused without being quoted', () => {
  const text = fc.oneof(
    fc.string(),
    fc.base64String().map((rest) => `whsec_${rest}`),
    fc.base64String({ minLength: 80, maxLength: 100 }).map((rest) => `whsk_${rest}`),
    fc
      .uint8Array({ minLength: 20, maxLength: 70 })
      .map((key) => `whsec_${Buffer.from(key).toString('base64')}`),
    // A valid secret with a typing error.
    fc
      .tuple(symmetric, fc.nat(), fc.constantFrom(' ', '-', '_', '=', '\n', ''))
      .map(([secret, at, slip]) => {
        const from = 6 + (at % (secret.length - 6));
        return secret.slice(0, from) + slip + secret.slice(from + 1);
      }),
    fc
      .uint8Array({ minLength: 64, maxLength: 64 })
      .map((key) => `whsk_${Buffer.from(key).toString('base64')}`),
  );
  fc.assert(
    fc.property(text, (secret) => {
      const refusal = checkSecret(secret);
      const sign = () => sent('evt_1', '{}', [secret]);
      const content = secret.replace(/^wh\w+_/, '');
      if (refusal !== undefined) expect(sign).toThrow(TypeError);
      else
        expect([sign(), Buffer.from(content, 'base64').toString('base64')]).toEqual([
          expect.anything(),
          content,
        ]);
      if (content.length > 8) expect(refusal ?? '').not.toContain(content);
    }),
    { numRuns: 500 },
  );
});

it('signatures are compared in constant time, each with every secret, also after a match', () => {
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
  const secrets = [makeSecret('v1'), makeSecret('v1'), makeSecret('v1')];
  const request = sent('evt_1', '{"type":"upstream.up","data":{}}', secrets);
  verifyWebhook({ ...request, secret: secrets.slice(0, 2), now: NOW });
  expect(compared).toBe(6);
});

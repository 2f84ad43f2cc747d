import { describe, expect, it } from 'vitest';
import { verifyWebhook } from '../../src/client/webhook.ts';
import { checkSecret, createSigner, makeSecret } from '../../src/notifications/channels/webhook.ts';

const BODY = JSON.stringify({ id: 'evt_1', type: 'upstream.up', data: { upstream: 'größer ✓' } });
const nowS = () => Math.floor(Date.now() / 1_000);
const signed = (...secrets: string[]) =>
  createSigner(secrets)({ id: 'evt_1', timestampS: nowS(), body: BODY });

const whsec = (bytes: number) => `whsec_${Buffer.alloc(bytes, 'k').toString('base64')}`;

describe('a supplied secret', () => {
  it.each([24, 64])('may have %i bytes', (bytes) => {
    expect(checkSecret(whsec(bytes))).toBeUndefined();
    expect(() =>
      verifyWebhook({ payload: BODY, headers: signed(whsec(bytes)), secret: whsec(bytes) }),
    ).not.toThrow();
  });

  const half = Buffer.alloc(32, 'k').toString('base64');
  it.each([
    ['too short', whsec(23), /24 to 64 bytes/],
    ['too long', whsec(65), /24 to 64 bytes/],
    ['without its prefix', half, /must begin with whsec_/],
    ['not base64', `whsec_${'ü'.repeat(40)}`, /base64/],
    ['base64 for URLs', `whsec_${Buffer.alloc(32, 0xff).toString('base64url')}=`, /base64/],
    ['a private key', `whsk_${half}`, /must begin with whsec_/],
  ])('is refused if it is %s, without being quoted', (_what, secret, reason) => {
    expect(checkSecret(secret)).toMatch(reason);
    const content = secret.replace(/^wh\w+_/, '');
    if (content) expect(checkSecret(secret)).not.toContain(content);
    expect(() => signed(secret)).toThrow(TypeError);
    if (content) expect(() => signed(secret)).not.toThrow(content);
  });
});

it('creates no signature without a secret, nor for an id with a dot', () => {
  expect(() => signed()).toThrow(TypeError);
  const sign = createSigner([makeSecret()]);
  expect(() => sign({ id: 'evt.1', timestampS: nowS(), body: BODY })).toThrow(TypeError);
});

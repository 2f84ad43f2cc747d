import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { sha256 } from '../../../src/access/access.ts';
import { CredentialLock } from '../../../src/access/credential-lock.ts';
import { credentialsOf } from '../../../src/access/credentials-store.ts';
import { Ledger } from '../../../src/wiring/ledger-stores.ts';
import { seeded } from '../../support/seed.ts';
import { tempFolder } from '../../support/temp-folder.ts';
import { distinguishByTime } from './timing.ts';

const SECRET = randomBytes(48).toString('hex');

/**
 * A key with another last character, as an attacker would find it who learns one character after
 * another.
 */
const NEAR = `${SECRET.slice(0, -1)}${SECRET.endsWith('0') ? '1' : '0'}`;
const FAR = [...SECRET].map((digit) => (digit === '0' ? '1' : '0')).join('');

const chance = seeded('token timing');

test('the timing measurement detects a comparison that stops at the first wrong character', () => {
  expect(distinguishByTime(chance, [NEAR, FAR], (guess) => naive(guess, SECRET))).toBe(true);
});

test('the response time to a wrong key does not reveal how much of it is right', () => {
  const isKnown = credentials({ api_key: SECRET, admin_token: undefined });
  expect(isKnown(sha256(SECRET))).toMatchObject({ role: 'service' });
  expect(
    distinguishByTime(chance, [NEAR, FAR], (guess) => isKnown(sha256(guess)) !== undefined),
  ).toBe(false);
});

test('the response time to a wrong key does not reveal whether it resembles the key of a service or of an admin', () => {
  const admin = randomBytes(48).toString('hex');
  const isKnown = credentials({ api_key: SECRET, admin_token: admin });
  const nearAdmin = `${admin.slice(0, -1)}${admin.endsWith('0') ? '1' : '0'}`;
  expect(
    distinguishByTime(chance, [NEAR, nearAdmin], (guess) => isKnown(sha256(guess)) !== undefined),
  ).toBe(false);
});

test('a hash with one wrong bit at its end takes the same time as one that is wrong from the first bit', () => {
  const isKnown = credentials({ api_key: SECRET, admin_token: undefined });
  const wrongAt = (index: number) => {
    const hash = sha256(SECRET);
    hash[index] = (hash[index] ?? 0) ^ 1;
    return hash;
  };
  expect(
    distinguishByTime(chance, [wrongAt(31), wrongAt(0)], (hash) => isKnown(hash) !== undefined),
  ).toBe(false);
});

test('a locked address learns nothing from the response time to a right key', () => {
  const sessions = { identify: () => undefined, callerOf: () => undefined };
  const lock = new CredentialLock(
    credentials({ api_key: SECRET, admin_token: undefined }),
    sessions,
    1,
  );
  const identify = (secret: string) =>
    lock.identify({
      clientAddress: '192.0.2.1',
      routeOptions: {},
      raw: { headersDistinct: { 'x-api-key': [secret] } },
    } as never).kind;
  expect([identify(FAR), identify(SECRET), identify(NEAR)]).toEqual([
    'unknown',
    'locked',
    'locked',
  ]);
  expect(distinguishByTime(chance, [SECRET, NEAR], (guess) => identify(guess) === 'known')).toBe(
    false,
  );
});

function credentials(auth: { api_key: string | undefined; admin_token: string | undefined }) {
  const ledger = new Ledger({ file: join(tempFolder(), 'ledger.db'), now: 0 });
  onTestFinished(() => ledger.close());
  return credentialsOf(auth as Parameters<typeof credentialsOf>[0], ledger.credentials, {
    now: () => 0,
  }).find;
}

function naive(one: string, other: string): boolean {
  for (let index = 0; index < other.length; index++) if (one[index] !== other[index]) return false;
  return true;
}

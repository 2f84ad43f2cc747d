import { expect, it } from 'vitest';
import { sha256 } from '../../src/access/access.ts';
import { createCredential, credentialsOf } from '../../src/access/credentials-store.ts';
import { SERVER } from '../../src/lib/actor.ts';
import { openLedger } from '../support/ledger/ledger-file.ts';

const NO_SETTINGS = { api_key: undefined, admin_token: undefined };
const credential = { role: 'admin', name: 'ops', expiresAt: null } as const;

it('the time of the last use never goes back when the clock is set back', () => {
  const { credentials, audit } = openLedger();
  const { record, secret } = createCredential(
    { credentials, audit },
    { actor: SERVER, now: 0, credential },
  );
  let now = 10_000_000;
  const { find } = credentialsOf(NO_SETTINGS, credentials, { now: () => now });
  find(sha256(secret));
  now = 5_000_000;
  find(sha256(secret));
  expect(credentials.get(record.id)?.lastUsedAt).toBe(10_000_000);
});

it('a credential that expires after a forward step of the clock is valid again once the clock is right', () => {
  const { credentials, audit } = openLedger();
  const brief = { ...credential, expiresAt: 1_000 };
  const { secret } = createCredential(
    { credentials, audit },
    { actor: SERVER, now: 0, credential: brief },
  );
  let now = 5_000;
  const { find } = credentialsOf(NO_SETTINGS, credentials, { now: () => now });
  expect(find(sha256(secret))).toBeUndefined();
  now = 999;
  expect(find(sha256(secret))).toBeDefined();
});

it('an admin token of the settings counts as an admin, unless it is also the service key', () => {
  const { credentials } = openLedger();
  const isAdminConfigured = (service_key?: string, admin_token?: string) =>
    credentialsOf({ service_key, admin_token }, credentials, { now: () => 0 }).hasConfiguredAdmin;
  expect([isAdminConfigured(), isAdminConfigured('a'), isAdminConfigured('a', 'b')]).toEqual([
    false,
    false,
    true,
  ]);
  expect(isAdminConfigured('a', 'a')).toBe(false);
});

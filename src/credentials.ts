import { randomBytes, timingSafeEqual } from 'node:crypto';
import type { Config } from './config.ts';
import { sha256 } from './http/access.ts';
import { type Caller, type Credentials, ROLES, type Role } from './http/ports.ts';
import type { CredentialRecord, CredentialStore } from './ledger/credentials.ts';
import { LedgerError } from './ledger/errors.ts';

/** 256 random bits behind a prefix that secret scanners can be taught. */
export function makeToken(role: Role): string {
  return `dawatch_${role}_${randomBytes(32).toString('base64url')}`;
}

export function isOwnToken(secret: string): boolean {
  return ROLES.some((role) => secret.startsWith(`dawatch_${role}_`));
}

/** Whoever the settings or the ledger know. */
export function credentialsOf(auth: Config['auth'], store: CredentialStore, now: () => number): Credentials {
  const configured: { hash: Buffer; caller: Caller }[] = [];
  if (auth.api_key !== undefined)
    configured.push({ hash: sha256(auth.api_key), caller: { role: 'service', name: 'DAWATCH_API_KEY' } });
  if (auth.admin_token !== undefined)
    configured.push({ hash: sha256(auth.admin_token), caller: { role: 'admin', name: 'DAWATCH_ADMIN_TOKEN' } });
  return (hash) => {
    // Always all of them: the time must not tell which one it was.
    const known = configured.filter((one) => timingSafeEqual(one.hash, hash))[0];
    if (known) return known.caller;
    const record = store.find(hash);
    const role = ROLES.find((name) => name === record?.role);
    if (!record || !role) return undefined;
    noteUse(store, record, now());
    return { role, name: record.name };
  };
}

/** A full disk must not keep anybody from looking. */
function noteUse(store: CredentialStore, record: CredentialRecord, now: number): void {
  try {
    store.used(record, now);
  } catch (error) {
    if (!(error instanceof LedgerError)) throw error;
  }
}

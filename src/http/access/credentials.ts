import { randomBytes, timingSafeEqual } from 'node:crypto';
import type { Config } from '../../config/schema.ts';
import { type Actor, SERVER } from '../../domain/audit/actions.ts';
import type { AuditTrail } from '../../ledger/access/audit.ts';
import type { CredentialRecord, CredentialStore } from '../../ledger/access/credentials.ts';
import { LedgerError } from '../../ledger/file/errors.ts';
import { isLoopback } from '../../platform/addresses.ts';
import { type Caller, type Credentials, ROLES, type Role } from '../ports.ts';
import { sha256 } from './access.ts';

/** Returns a new token: 256 random bits after a prefix that secret scanners can recognize. */
export function makeToken(role: Role): string {
  return `dawatch_${role}_${randomBytes(32).toString('base64url')}`;
}

/** Whether a secret has the prefix of a dawatch token. */
export function isOwnToken(secret: string): boolean {
  return ROLES.some((role) => secret.startsWith(`dawatch_${role}_`));
}

/** Whether a secret has the complete form of a dawatch token. */
export function hasTokenForm(secret: string): boolean {
  return isOwnToken(secret) && /^[a-z]+_[a-z]+_[\w-]{43}$/.test(secret);
}

/** Returns the lookup of configured and stored credentials. */
export function credentialsOf(auth: Config['auth'], store: CredentialStore, now: () => number): Credentials {
  const configured: { hash: Buffer; caller: Caller }[] = [];
  if (auth.api_key !== undefined)
    configured.push({ hash: sha256(auth.api_key), caller: { id: null, role: 'service', name: 'DAWATCH_API_KEY' } });
  if (auth.admin_token !== undefined)
    configured.push({
      hash: sha256(auth.admin_token),
      caller: { id: null, role: 'admin', name: 'DAWATCH_ADMIN_TOKEN' },
    });
  return (hash) => {
    // All are compared, so that the time does not reveal which one matched.
    const known = configured.filter((one) => timingSafeEqual(one.hash, hash))[0];
    if (known) return known.caller;
    const record = store.find(hash);
    const role = ROLES.find((name) => name === record?.role);
    if (!record || !role) return undefined;
    recordUse(store, record, now());
    return { id: record.id, role, name: record.name };
  };
}

/** Records the time of use. A full disk must not prevent access. */
function recordUse(store: CredentialStore, record: CredentialRecord, now: number): void {
  try {
    store.used(record, now);
  } catch (error) {
    if (!(error instanceof LedgerError)) throw error;
  }
}

/** Stores a token with its audit entry. */
export function storeToken(
  { credentials, audit }: { credentials: CredentialStore; audit: AuditTrail },
  { actor, token, now }: { actor: Actor; token: { hash: Buffer; role: Role; name: string }; now: number },
): CredentialRecord {
  return audit.change(
    actor,
    now,
    () => credentials.add(token, now),
    ({ id }) => ({ action: 'tokens.create', subject: String(id), detail: token.role }),
  );
}

/**
 * Creates a service key if there is no credential at all, and returns it to be shown once. Refuses, with the reason, if the
 * server would listen on an address that is not loopback.
 */
export function ensureCredential(deps: {
  auth: Config['auth'];
  host: string;
  ledger: { credentials: CredentialStore; audit: AuditTrail };
  now: number;
}): { kind: 'there' } | { kind: 'made'; key: string } | { kind: 'refused'; reason: string } {
  const { auth, host, ledger, now } = deps;
  if (auth.api_key !== undefined || auth.admin_token !== undefined || ledger.credentials.isAnyValid())
    return { kind: 'there' };
  if (!isLoopback(host)) {
    const how = 'set DAWATCH_API_KEY (at least 16 characters), or make a token with `dawatch token create`';
    return { kind: 'refused', reason: `refusing to listen on ${host} without a credential: ${how}` };
  }
  const key = makeToken('service');
  storeToken(ledger, { actor: SERVER, token: { hash: sha256(key), role: 'service', name: 'first start' }, now });
  return { kind: 'made', key };
}

import { randomBytes, timingSafeEqual } from 'node:crypto';
import type { Config } from '../../config/schema.ts';
import { fromStoredRights, ROLES, type Role, rightsOfRole } from '../../domain/access/scopes.ts';
import { type Actor, SERVER } from '../../domain/audit/actions.ts';
import type { AuditTrail } from '../../ledger/access/audit.ts';
import type {
  CredentialRecord,
  CredentialStore,
  FoundCredential,
  NewCredential,
} from '../../ledger/access/credentials.ts';
import { LedgerError } from '../../ledger/file/errors.ts';
import { isLoopback } from '../../platform/addresses.ts';
import type { Caller, Credentials } from '../ports.ts';
import { sha256 } from './access.ts';

/** The kind of a token with scopes of its own. */
const SCOPED = 'scoped';
const KINDS = [...ROLES, SCOPED];

/** Returns a new token: 256 random bits after a prefix that secret scanners can recognize. `role` null: scopes of its own. */
export function makeToken(role: Role | null): string {
  return `dawatch_${role ?? SCOPED}_${randomBytes(32).toString('base64url')}`;
}

/** Whether a secret has the prefix of a dawatch token. */
export function isOwnToken(secret: string): boolean {
  return KINDS.some((kind) => secret.startsWith(`dawatch_${kind}_`));
}

/** Whether a secret has the complete form of a dawatch token. */
export function hasTokenForm(secret: string): boolean {
  return isOwnToken(secret) && /^[a-z]+_[a-z]+_[\w-]{43}$/.test(secret);
}

/** Returns the lookup of configured and stored credentials. */
export function credentialsOf(auth: Config['auth'], store: CredentialStore, now: () => number): Credentials {
  const configured: { hash: Buffer; caller: Caller }[] = [];
  const add = (secret: string, role: Role, name: string) =>
    configured.push({ hash: sha256(secret), caller: { id: null, ...rightsOfRole(role), tenant: null, name } });
  if (auth.api_key !== undefined) add(auth.api_key, 'service', 'DAWATCH_API_KEY');
  if (auth.admin_token !== undefined) add(auth.admin_token, 'admin', 'DAWATCH_ADMIN_TOKEN');
  return (hash) => {
    // All are compared, so that the time does not reveal which one matched.
    const known = configured.filter((one) => timingSafeEqual(one.hash, hash))[0];
    if (known) return known.caller;
    const found = store.find(hash, now());
    const rights = found && fromStoredRights(found);
    if (!rights) return undefined;
    recordUse(store, found, now());
    return { id: found.id, ...rights, tenant: found.tenant, name: found.name };
  };
}

/** Records the time of use. A full disk must not prevent access. */
function recordUse(store: CredentialStore, found: FoundCredential, now: number): void {
  try {
    store.used(found, now);
  } catch (error) {
    if (!(error instanceof LedgerError)) throw error;
  }
}

/** Stores a token with its audit entry. */
export function storeToken(
  { credentials, audit }: { credentials: CredentialStore; audit: AuditTrail },
  { actor, token, now }: { actor: Actor; token: NewCredential; now: number },
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
  if (auth.api_key !== undefined || auth.admin_token !== undefined || ledger.credentials.isAnyKept())
    return { kind: 'there' };
  if (!isLoopback(host)) {
    const how = 'set DAWATCH_API_KEY (at least 16 characters), or make a token with `dawatch token create`';
    return { kind: 'refused', reason: `refusing to listen on ${host} without a credential: ${how}` };
  }
  const key = makeToken('service');
  storeToken(ledger, { actor: SERVER, token: { hash: sha256(key), role: 'service', name: 'first start' }, now });
  return { kind: 'made', key };
}

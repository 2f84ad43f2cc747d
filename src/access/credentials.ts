import { randomBytes, timingSafeEqual } from 'node:crypto';
import { LedgerError } from '../ledger/errors.ts';
import { type Actor, SERVER } from '../lib/actor.ts';
import { isLoopback } from '../lib/addresses.ts';
import type { Clock } from '../lib/clock.ts';
import { iso } from '../lib/timestamps.ts';
import type { Config } from '../operations/config/schema.ts';
import { sha256 } from './access.ts';
import type { AuditTrail } from './audit-store.ts';
import type { Caller, Credentials } from './caller.ts';
import type { CredentialRecord, CredentialStore, FoundCredential } from './credentials-store.ts';
import {
  fromStoredRights,
  type Rights,
  ROLES,
  type Role,
  rightsOfRole,
  toStoredRights,
} from './scopes.ts';

/** The kind of a token with scopes of its own. */
const SCOPED = 'scoped';
const PREFIXES = [...ROLES, SCOPED].map((kind) => `dawatch_${kind}_`);

/**
 * Returns a new token: 256 random bits after a prefix that secret scanners can recognize. `role`
 * null: scopes of its own.
 */
export function makeToken(role: Role | null): string {
  return `dawatch_${role ?? SCOPED}_${randomBytes(32).toString('base64url')}`;
}

/** Whether a secret has the prefix of a dawatch token. */
export function isOwnToken(secret: string): boolean {
  return PREFIXES.some((prefix) => secret.startsWith(prefix));
}

/** Whether a secret has the complete form of a dawatch token. */
export function hasTokenForm(secret: string): boolean {
  return isOwnToken(secret) && /^[a-z]+_[a-z]+_[\w-]{43}$/.test(secret);
}

/**
 * The lookup of configured and stored credentials. `issuer`: the configured provider; only people
 * of this provider have valid sessions. `hasConfiguredAdmin`: whether the settings have a
 * credential with the scope admin.
 */
export function credentialsOf(
  auth: Config['auth'],
  store: CredentialStore,
  clock: Pick<Clock, 'now'>,
  issuer?: string,
): { find: Credentials; hasConfiguredAdmin: boolean } {
  const configured: { hash: Buffer; caller: Caller }[] = [];
  const add = (secret: string, role: Role, name: string) =>
    configured.push({ hash: sha256(secret), caller: { id: null, ...rightsOfRole(role), name } });
  if (auth.api_key !== undefined) add(auth.api_key, 'service', 'DAWATCH_API_KEY');
  if (auth.admin_token !== undefined) add(auth.admin_token, 'admin', 'DAWATCH_ADMIN_TOKEN');
  return {
    find(hash) {
      // Compares all secrets, so that the time of the comparison does not reveal which one matched.
      const known = configured.filter((one) => timingSafeEqual(one.hash, hash))[0];
      if (known) return known.caller;
      const now = clock.now();
      const found = store.find(hash, now);
      const rights = found && fromStoredRights(found);
      if (!rights || (found.issuer !== null && !isSameUrl(found.issuer, issuer))) return undefined;
      recordUse(store, found, now);
      return { id: found.id, ...rights, name: found.name };
    },
    // A token that is also the api_key has the role service.
    hasConfiguredAdmin: auth.admin_token !== undefined && auth.admin_token !== auth.api_key,
  };
}

function isSameUrl(one: string, other = ''): boolean {
  return URL.parse(one)?.href === URL.parse(other)?.href;
}

/** Records the time of use. A full disk must not prevent access. */
function recordUse(store: CredentialStore, found: FoundCredential, now: number): void {
  try {
    store.used(found, now);
  } catch (error) {
    if (!(error instanceof LedgerError)) throw error;
  }
}

export type CredentialLedger = { credentials: CredentialStore; audit: AuditTrail };

/** A stored credential and its new secret, which is stored only as a hash. */
export type IssuedCredential = { record: CredentialRecord; secret: string };

/** Stores a credential with its audit entry in one transaction. Throws LedgerError. */
export function createCredential(
  ledger: CredentialLedger,
  change: {
    actor: Actor;
    now: number;
    credential: { rights: Rights; name: string; expiresAt: number | null };
  },
): IssuedCredential {
  const { actor, now, credential } = change;
  const { rights, name, expiresAt } = credential;
  const secret = makeToken(rights.role);
  const stored = toStoredRights(rights);
  const expiry = expiresAt === null ? '' : `, expires ${iso(expiresAt)}`;
  const add = () => ({
    record: ledger.credentials.add({ hash: sha256(secret), ...stored, name, expiresAt }, now),
    secret,
  });
  const detail = `${stored.scopes ?? stored.role}${expiry}`;
  return ledger.audit.change(actor, now, add, ({ record }) => ({
    action: 'tokens.create',
    subject: String(record.id),
    detail,
  }));
}

/**
 * Creates a service key if there is no credential at all and no provider at which people sign in,
 * and returns it to be shown once. Refuses, with the reason, if the server would listen on an
 * address that is not loopback.
 */
export function ensureCredential(deps: {
  config: Pick<Config, 'auth' | 'oidc' | 'server'>;
  ledger: CredentialLedger;
  now: number;
}): { kind: 'there' } | { kind: 'made'; key: string } | { kind: 'refused'; reason: string } {
  const { ledger, now } = deps;
  const { auth, oidc, server } = deps.config;
  const { host } = server;
  const isConfigured =
    auth.api_key !== undefined || auth.admin_token !== undefined || oidc.issuer !== undefined;
  if (isConfigured || ledger.credentials.isAnyKept()) return { kind: 'there' };
  if (!isLoopback(host)) {
    const how =
      'set DAWATCH_API_KEY (at least 16 characters), or make a token with `dawatch token create`';
    return {
      kind: 'refused',
      reason: `refusing to listen on ${host} without a credential: ${how}`,
    };
  }
  const credential = { rights: rightsOfRole('service'), name: 'first start', expiresAt: null };
  const { secret } = createCredential(ledger, { actor: SERVER, credential, now });
  return { kind: 'made', key: secret };
}

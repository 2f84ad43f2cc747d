import { randomBytes, timingSafeEqual } from 'node:crypto';
import { LedgerError } from '../ledger/errors.ts';
import type { LedgerDatabase } from '../ledger/ledger-database.ts';
import { type Actor, SERVER } from '../lib/actor.ts';
import { isLoopback } from '../lib/addresses.ts';
import { iso } from '../lib/clock.ts';
import { type Caller, type Credentials, ROLES, type Role, sha256 } from './access.ts';
import type { AuditTrail } from './audit-store.ts';
import type { AccessSettings } from './settings.ts';

/** Returns a new token: 256 random bits after a prefix that secret scanners can recognize. */
export function makeToken(role: Role): string {
  return `dawatch_${role}_${randomBytes(32).toString('base64url')}`;
}

export function isOwnToken(secret: string): boolean {
  return ROLES.some((role) => secret.startsWith(`dawatch_${role}_`));
}

/** Looks like no reserved name, because it is 1 to 64 printable characters of ASCII. */
const NAME_PATTERN = /^(?! )[\x20-\x7e]{1,64}(?<! )$/;

/** Names that the audit uses for callers without a credential in the ledger. */
const RESERVED_NAME = /^(?:forwarded|DAWATCH_|cli:|person:|dawatch$|unauthenticated$)/i;

/** Returns why a credential cannot have this name; undefined if it can. */
export function nameProblem(name: string): string | undefined {
  if (!NAME_PATTERN.test(name))
    return 'must be 1 to 64 printable characters of ASCII, with spaces only between them';
  return RESERVED_NAME.test(name)
    ? 'must not begin with "forwarded", "DAWATCH_", "cli:" or "person:", or be "dawatch" or "unauthenticated"'
    : undefined;
}

export const CREDENTIAL_STATES = ['valid', 'expired', 'revoked'] as const;

/** Times are epoch milliseconds. A credential is invalid from the moment of its expiry on. */
export function credentialState(
  { expiresAt, revokedAt }: { expiresAt: number | null; revokedAt: number | null },
  now: number,
): (typeof CREDENTIAL_STATES)[number] {
  if (revokedAt !== null) return 'revoked';
  return expiresAt !== null && expiresAt <= now ? 'expired' : 'valid';
}

/**
 * `issuer`: the configured provider, whose people alone have valid sessions. `hasConfiguredAdmin`:
 * the settings have an admin token.
 */
export function credentialsOf(
  auth: AccessSettings['auth'],
  store: CredentialStore,
  clock: { now(): number },
  issuer?: string,
): { find: Credentials; hasConfiguredAdmin: boolean } {
  const configured: { hash: Buffer; caller: Caller }[] = [];
  const add = (secret: string, role: Role, name: string) =>
    configured.push({ hash: sha256(secret), caller: { id: null, role, name } });
  if (auth.service_key !== undefined) add(auth.service_key, 'service', 'DAWATCH_SERVICE_KEY');
  if (auth.admin_token !== undefined) add(auth.admin_token, 'admin', 'DAWATCH_ADMIN_TOKEN');
  return {
    find(hash) {
      // Compares all secrets, so that the time of the comparison does not reveal which one matched.
      const match = configured.filter((one) => timingSafeEqual(one.hash, hash))[0];
      if (match) return match.caller;
      const now = clock.now();
      const found = store.find(hash, now);
      if (!found || (found.issuer !== null && !isSameUrl(found.issuer, issuer))) return undefined;
      const { id, role, name } = found;
      recordUse(store, found, now);
      return { id, role, name };
    },
    // A token that is also the service key has the role service.
    hasConfiguredAdmin: auth.admin_token !== undefined && auth.admin_token !== auth.service_key,
  };
}

function isSameUrl(one: string, other = ''): boolean {
  return URL.parse(one)?.href === URL.parse(other)?.href;
}

/** Records the time of use. A full disk must not prevent access. */
function recordUse(store: CredentialStore, credential: CredentialRecord, now: number): void {
  try {
    store.used(credential, now);
  } catch (error) {
    if (!(error instanceof LedgerError)) throw error;
  }
}

export type CredentialLedger = { credentials: CredentialStore; audit: AuditTrail };

/** Stores a credential with its audit entry. The ledger has only the hash of `secret`. */
export function createCredential(
  ledger: CredentialLedger,
  change: {
    actor: Actor;
    now: number;
    credential: { role: Role; name: string; expiresAt: number | null };
  },
): { record: CredentialRecord; secret: string } {
  const { actor, now, credential } = change;
  const { role, name, expiresAt } = credential;
  const secret = makeToken(role);
  const add = () => ledger.credentials.add({ hash: sha256(secret), ...credential }, now);
  const detail =
    expiresAt === null ? `${name}, ${role}` : `${name}, ${role}, expires ${iso(expiresAt)}`;
  const record = ledger.audit.change(actor, now, add, ({ id }) => ({
    action: 'tokens.create',
    subject: String(id),
    detail,
  }));
  return { record, secret };
}

/**
 * `isLastAllowed`: it may be the last valid admin. People count only for the credential of a
 * person, so that tokens do not depend on a provider.
 */
export function revokeCredential(
  { credentials, audit }: CredentialLedger,
  change: { actor: Actor; now: number; id: number; isLastAllowed: boolean },
): 'revoked' | 'was_revoked' | 'unknown' | 'last_admin' {
  const { actor, now, id, isLastAllowed } = change;
  const record = credentials.get(id);
  const revoke = () => {
    if (!record) return 'unknown';
    const isLast =
      record.role === 'admin' &&
      credentialState(record, now) === 'valid' &&
      !credentials.isOtherAdminValid(id, now, { countsPeople: record.person !== null });
    if (isLast && !isLastAllowed) return 'last_admin';
    return credentials.revoke(id, now) ? 'revoked' : 'was_revoked';
  };
  const entry = {
    action: 'tokens.revoke',
    subject: String(id),
    detail: record?.name ?? null,
  } as const;
  return audit.change(actor, now, revoke, (result) => result === 'revoked' && entry);
}

/**
 * Creates a service key, to be shown once, if there is neither a credential nor a provider. Refuses
 * for an address that is not loopback.
 */
export function ensureCredential(deps: {
  config: AccessSettings;
  ledger: CredentialLedger;
  now: number;
}): { kind: 'there' } | { kind: 'made'; key: string } | { kind: 'refused'; reason: string } {
  const { ledger, now } = deps;
  const { auth, oidc, server } = deps.config;
  const { host } = server;
  const isConfigured =
    auth.service_key !== undefined || auth.admin_token !== undefined || oidc.issuer !== undefined;
  if (isConfigured || ledger.credentials.isAnyKept()) return { kind: 'there' };
  if (!isLoopback(host)) {
    const how =
      'set DAWATCH_SERVICE_KEY (at least 32 characters), or make a token with `dawatch token create`';
    return {
      kind: 'refused',
      reason: `refusing to listen on ${host} without a credential: ${how}`,
    };
  }
  const credential = { role: 'service', name: 'first start', expiresAt: null } as const;
  const { secret } = createCredential(ledger, { actor: SERVER, credential, now });
  return { kind: 'made', key: secret };
}

export type CredentialRecord = {
  id: number;
  role: Role;
  name: string;
  /** E-mail address or subject of a person who signs in at a provider, without a secret. */
  person: string | null;
  createdAt: number;
  /** Last use, with a resolution of one minute. */
  lastUsedAt: number | null;
  expiresAt: number | null;
  revokedAt: number | null;
};

/** Maximum number of credentials that are not revoked. Those of people do not count. */
export const MAX_CREDENTIALS = 1_000;
/** The newest revoked credentials stay in the list; older ones are deleted. */
const MAX_REVOKED = 1_000;
/** Minimum time between two records of the last use, because every write waits for the disk. */
const LAST_USED_STEP_MS = 60_000;

/** Stores only the SHA-256 of a secret, enough for 256 random bits. Throws LedgerError. */
export class CredentialStore {
  readonly #db: LedgerDatabase;

  constructor(database: LedgerDatabase) {
    this.#db = database;
  }

  add(
    credential: { hash: Buffer; role: Role; name: string; expiresAt?: number | null },
    now: number,
  ): CredentialRecord {
    // Outside a transaction, a statement that is read by one row reports no error of its commit.
    return this.#db.transaction(
      () => this.#db.row<CredentialRecord>(ADD, { expiresAt: null, ...credential, now }) as never,
    );
  }

  /** Whether there are MAX_CREDENTIALS that are not revoked. Expired ones count. */
  isFull(): boolean {
    const count = this.#db.value<number>(
      `SELECT count(*) FROM credentials WHERE revoked_at IS NULL AND ${IS_SECRET}`,
    );
    return (count ?? 0) >= MAX_CREDENTIALS;
  }

  /** Returns a page, newest first. `before`: the position to continue; null at the end. */
  page(query: { limit: number; before?: number | undefined }): {
    credentials: CredentialRecord[];
    nextBefore: number | null;
  } {
    const { limit, before = Number.MAX_SAFE_INTEGER } = query;
    const rows = this.#db.rows<CredentialRecord>(PAGE, before, limit + 1);
    const credentials = rows.slice(0, limit);
    return {
      credentials,
      nextBefore: rows.length > limit ? (credentials.at(-1)?.id ?? null) : null,
    };
  }

  get(id: number): CredentialRecord | undefined {
    return this.#db.row(`SELECT ${COLUMNS} FROM credentials WHERE id = ?`, id);
  }

  /** Takes effect with the next request. Returns false if it is unknown or already revoked. */
  revoke(id: number, now: number): boolean {
    return this.#db.transaction(() => {
      const { changes } = this.#db.run`
        UPDATE credentials SET revoked_at = ${now} WHERE id = ${id} AND revoked_at IS NULL`;
      if (changes === 1) this.#db.run(DELETE_REVOKED, MAX_REVOKED);
      return changes === 1;
    });
  }

  isOtherAdminValid(id: number, at: number, { countsPeople }: { countsPeople: boolean }): boolean {
    const sql = countsPeople ? OTHER_ADMIN : `${OTHER_ADMIN} AND ${IS_SECRET}`;
    return this.#db.row(sql, id, at) !== undefined;
  }

  /** Returns a valid credential. `issuer`: the provider of the person; null: it has a secret. */
  find(hash: Buffer, now: number): (CredentialRecord & { issuer: string | null }) | undefined {
    return this.#db.row(FIND, hash, now);
  }

  /**
   * Expired credentials count, because an expiry must not prevent the next start. Those of people
   * do not.
   */
  isAnyKept(): boolean {
    const sql = `SELECT 1 FROM credentials WHERE revoked_at IS NULL AND ${IS_SECRET} LIMIT 1`;
    return this.#db.row(sql) !== undefined;
  }

  used({ id, lastUsedAt }: CredentialRecord, now: number): void {
    if (lastUsedAt !== null && now - lastUsedAt < LAST_USED_STEP_MS) return;
    this.#db
      .run`UPDATE credentials SET last_used_at = max(coalesce(last_used_at, 0), ${now}) WHERE id = ${id}`;
  }
}

const COLUMNS = `
  id, role, name, created_at AS createdAt, last_used_at AS lastUsedAt, expires_at AS expiresAt, revoked_at AS revokedAt,
  (SELECT p.name FROM people p WHERE p.credential = credentials.id) AS person`;
const ADD = `
  INSERT INTO credentials (hash, role, name, created_at, expires_at) VALUES (@hash, @role, @name, @now, @expiresAt)
  RETURNING ${COLUMNS}`;
const IS_SECRET = 'NOT EXISTS (SELECT 1 FROM people WHERE credential = credentials.id)';
const DELETE_REVOKED = `
  DELETE FROM credentials WHERE id IN (
    SELECT id FROM credentials WHERE revoked_at IS NOT NULL AND ${IS_SECRET}
    ORDER BY id DESC LIMIT -1 OFFSET ?)`;
const IS_VALID = 'revoked_at IS NULL AND (expires_at IS NULL OR expires_at > ?)';
const PAGE = `SELECT ${COLUMNS} FROM credentials WHERE id < ? ORDER BY id DESC LIMIT ?`;
const OTHER_ADMIN = `SELECT 1 FROM credentials WHERE id <> ? AND role = 'admin' AND ${IS_VALID}`;
const FIND = `
  SELECT ${COLUMNS}, (SELECT p.issuer FROM people p WHERE p.credential = credentials.id) AS issuer
  FROM credentials WHERE hash = ? AND ${IS_VALID}`;

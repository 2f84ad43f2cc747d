import { randomBytes, timingSafeEqual } from 'node:crypto';
import { LedgerError } from '../ledger/errors.ts';
import type { LedgerDatabase } from '../ledger/ledger-database.ts';
import { takePage } from '../ledger/page.ts';
import { type Actor, SERVER } from '../lib/actor.ts';
import { isLoopback } from '../lib/addresses.ts';
import { iso } from '../lib/timestamps.ts';
import type { Config } from '../operations/config/schema.ts';
import {
  type Caller,
  type Credentials,
  fromStoredRights,
  type Rights,
  ROLES,
  type Role,
  rightsOfRole,
  sha256,
  toStoredRights,
} from './access.ts';
import type { AuditTrail } from './audit-store.ts';

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

/**
 * The lookup of configured and stored credentials. `issuer`: the configured provider; only people
 * of this provider have valid sessions. `hasConfiguredAdmin`: whether the settings have a
 * credential with the scope admin.
 */
export function credentialsOf(
  auth: Config['auth'],
  store: CredentialStore,
  clock: { now(): number },
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
  config: Config;
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
      'set DAWATCH_API_KEY (at least 32 characters), or make a token with `dawatch token create`';
    return {
      kind: 'refused',
      reason: `refusing to listen on ${host} without a credential: ${how}`,
    };
  }
  const credential = { rights: rightsOfRole('service'), name: 'first start', expiresAt: null };
  const { secret } = createCredential(ledger, { actor: SERVER, credential, now });
  return { kind: 'made', key: secret };
}

/**
 * `role` and `scopes`: see `toStoredRights`; scopes default to those of the role. `expiresAt`:
 * epoch milliseconds; default: never.
 */
export type NewCredential = {
  hash: Buffer;
  role: string;
  scopes?: string | null;
  name: string;
  expiresAt?: number | null;
};

/** A credential without its secret. Times are epoch milliseconds. */
export type CredentialRecord = {
  id: number;
  role: string;
  scopes: string | null;
  name: string;
  /**
   * E-mail address or subject of the person who signs in at a provider with this credential, which
   * has no secret.
   */
  person: string | null;
  createdAt: number;
  /** Last use of the current secret, with a resolution of one minute. */
  lastUsedAt: number | null;
  expiresAt: number | null;
  revokedAt: number | null;
};

/**
 * A secret that a rotation has replaced and that is still accepted. Times are epoch milliseconds.
 */
export type ReplacedSecret = { validUntil: number; lastUsedAt: number | null };

/**
 * A valid credential. `lastUsedAt` is that of the secret with this hash. `issuer`: the provider of
 * the person; null: it has a secret.
 */
export type FoundCredential = CredentialRecord & {
  hash: Buffer;
  isReplaced: boolean;
  issuer: string | null;
};

/** Maximum number of credentials that are not revoked. Those of people do not count. */
export const MAX_CREDENTIALS = 1_000;
/** The newest revoked credentials stay in the list; older ones are deleted. */
const MAX_REVOKED = 1_000;

/** Minimum time between two records of the last use, because every write waits for the disk. */
const LAST_USED_STEP_MS = 60_000;

/**
 * Credentials of callers. Stores only the SHA-256 of a secret, which suffices for 256 random bits.
 * Throws LedgerError.
 */
export class CredentialStore {
  readonly #db: LedgerDatabase;

  constructor(database: LedgerDatabase) {
    this.#db = database;
  }

  add(credential: NewCredential, now: number): CredentialRecord {
    // Outside a transaction, a statement that is read by one row reports no error of its commit.
    return this.#db.transaction(
      () =>
        this.#db.row<CredentialRecord>(
          `INSERT INTO credentials (hash, role, scopes, name, created_at, expires_at)
           VALUES (@hash, @role, @scopes, @name, @now, @expiresAt) RETURNING ${OWN_COLUMNS}, NULL AS person`,
          { scopes: null, expiresAt: null, ...credential, now },
        ) as CredentialRecord,
    );
  }

  /** Whether there are MAX_CREDENTIALS that are not revoked. Expired ones count. */
  isFull(): boolean {
    const count = this.#db.value<number>(
      `SELECT count(*) FROM credentials WHERE revoked_at IS NULL AND ${IS_SECRET}`,
    );
    return (count ?? 0) >= MAX_CREDENTIALS;
  }

  /** Returns all credentials, oldest first, including expired and revoked ones. */
  list(): CredentialRecord[] {
    return this.#db.rows(`SELECT ${COLUMNS} FROM credentials ORDER BY id`);
  }

  /**
   * Returns a page, newest first, including expired and revoked ones, and the position to continue
   * `before`; null at the end.
   */
  page(query: { limit: number; before?: number | undefined }): {
    credentials: CredentialRecord[];
    nextBefore: number | null;
  } {
    const { limit, before = Number.MAX_SAFE_INTEGER } = query;
    const rows = this.#db.iterate<CredentialRecord>(PAGE, before, limit + 1);
    const { page, hasMore } = takePage(rows, limit);
    return { credentials: page, nextBefore: hasMore ? (page.at(-1)?.id ?? null) : null };
  }

  /** Returns a credential of any state. */
  get(id: number): CredentialRecord | undefined {
    return this.#db.row(`SELECT ${COLUMNS} FROM credentials WHERE id = ?`, id);
  }

  /**
   * Takes effect with the next request. Returns false if the credential is unknown or already
   * revoked.
   */
  revoke(id: number, now: number): boolean {
    return this.#db.transaction(() => {
      const { changes } = this.#db.run`
        UPDATE credentials SET revoked_at = ${now} WHERE id = ${id} AND revoked_at IS NULL`;
      if (changes === 1) {
        this.#db.run`DELETE FROM credential_secrets WHERE credential = ${id}`;
        this.#db.run(DELETE_REVOKED, MAX_REVOKED);
      }
      return changes === 1;
    });
  }

  /**
   * Makes a revoked credential of a person valid again. Its sessions stay ended, because they
   * belong to the earlier hash.
   */
  readmit(id: number): void {
    this.#db.run`UPDATE credentials SET revoked_at = NULL, hash = randomblob(32) WHERE id = ${id}`;
  }

  /** Changes the name and the expiry. An expired credential with a later expiry is valid again. */
  update(id: number, { name, expiresAt }: { name: string; expiresAt: number | null }): void {
    this.#db.run`UPDATE credentials SET name = ${name}, expires_at = ${expiresAt} WHERE id = ${id}`;
  }

  /**
   * Replaces the secret. The replaced secret is accepted until `oldUntil`; secrets of earlier
   * rotations end then at the latest.
   */
  rotate(id: number, hash: Buffer, { oldUntil, now }: { oldUntil: number; now: number }): void {
    this.#db.transaction(() => {
      this.#db.run`
        INSERT INTO credential_secrets (hash, credential, valid_until, last_used_at)
        SELECT hash, id, ${oldUntil}, last_used_at FROM credentials WHERE id = ${id}`;
      this.#db
        .run`UPDATE credential_secrets SET valid_until = min(valid_until, ${oldUntil}) WHERE credential = ${id}`;
      this.#db
        .run`DELETE FROM credential_secrets WHERE credential = ${id} AND valid_until <= ${now}`;
      this.#db.run`UPDATE credentials SET hash = ${hash}, last_used_at = NULL WHERE id = ${id}`;
    });
  }

  /** Returns the replaced secrets that are still accepted, the newest first. */
  replacedSecrets(id: number, now: number): ReplacedSecret[] {
    return this.#db.rows`
      SELECT valid_until AS validUntil, last_used_at AS lastUsedAt FROM credential_secrets
      WHERE credential = ${id} AND valid_until > ${now} ORDER BY valid_until DESC`;
  }

  /** Returns whether another credential with the scope admin is valid after that time. */
  isOtherAdminValid(
    id: number,
    after: number,
    { countsPeople }: { countsPeople: boolean },
  ): boolean {
    return (
      this.#db.row(countsPeople ? OTHER_ADMIN : `${OTHER_ADMIN} AND ${IS_SECRET}`, id, after) !==
      undefined
    );
  }

  /**
   * Returns the valid credential whose secret has this hash: the current secret, or a replaced
   * secret that is still accepted.
   */
  find(hash: Buffer, now: number): FoundCredential | undefined {
    const current = this.#db.row<CredentialRecord & { issuer: string | null }>(
      FIND_CURRENT,
      hash,
      now,
    );
    if (current) return { ...current, hash, isReplaced: false };
    const replaced = this.#db.row<CredentialRecord>(FIND_REPLACED, hash, now, now);
    return replaced && { ...replaced, hash, isReplaced: true, issuer: null };
  }

  /**
   * Returns whether any credential is not revoked. Expired credentials count, because an expiry
   * must not prevent the next start. Credentials of people do not count, because only a provider
   * can authenticate them.
   */
  isAnyKept(): boolean {
    return (
      this.#db.row(
        `SELECT 1 FROM credentials WHERE revoked_at IS NULL AND ${IS_SECRET} LIMIT 1`,
      ) !== undefined
    );
  }

  /** Records the use of a secret. */
  used({ id, hash, lastUsedAt, isReplaced }: FoundCredential, now: number): void {
    if (lastUsedAt !== null && now - lastUsedAt < LAST_USED_STEP_MS) return;
    if (isReplaced)
      this.#db.run`
        UPDATE credential_secrets SET last_used_at = max(coalesce(last_used_at, 0), ${now}) WHERE hash = ${hash}`;
    else
      this.#db
        .run`UPDATE credentials SET last_used_at = max(coalesce(last_used_at, 0), ${now}) WHERE id = ${id}`;
  }
}

const OWN_COLUMNS =
  'id, role, scopes, name, created_at AS createdAt, last_used_at AS lastUsedAt, expires_at AS expiresAt, revoked_at AS revokedAt';
const COLUMNS = `${OWN_COLUMNS}, (SELECT p.name FROM people p WHERE p.credential = credentials.id) AS person`;
const IS_SECRET = 'NOT EXISTS (SELECT 1 FROM people WHERE credential = credentials.id)';
const DELETE_REVOKED = `
  DELETE FROM credentials WHERE id IN (
    SELECT id FROM credentials WHERE revoked_at IS NOT NULL AND ${IS_SECRET}
    ORDER BY id DESC LIMIT -1 OFFSET ?)`;
const IS_VALID = 'revoked_at IS NULL AND (expires_at IS NULL OR expires_at > ?)';
const PAGE = `SELECT ${COLUMNS} FROM credentials WHERE id < ? ORDER BY id DESC LIMIT ?`;
const OTHER_ADMIN = `
  SELECT 1 FROM credentials
  WHERE id <> ? AND (role = 'admin' OR ' ' || scopes || ' ' LIKE '% admin %') AND ${IS_VALID}`;
const FIND_CURRENT = `
  SELECT ${COLUMNS}, (SELECT p.issuer FROM people p WHERE p.credential = credentials.id) AS issuer
  FROM credentials WHERE hash = ? AND ${IS_VALID}`;
const FIND_REPLACED = `
  SELECT id, role, scopes, name, created_at AS createdAt, s.last_used_at AS lastUsedAt, expires_at AS expiresAt,
         revoked_at AS revokedAt, NULL AS person
  FROM credential_secrets s JOIN credentials c ON c.id = s.credential
  WHERE s.hash = ? AND s.valid_until > ? AND ${IS_VALID}`;

import { createHmac, randomBytes } from 'node:crypto';
import type { LedgerDatabase } from '../file/ledger-database.ts';
import { takePage } from '../file/page.ts';

/** One lookup of users, or one reload of the settings. The user is stored so that lookups can be compared, but not read. */
type AuditEntry = {
  /** Epoch milliseconds. */
  at: number;
  /** Name of the credential, or how the caller was authenticated. */
  caller: string;
  /** Id of the credential; null if the credential is not in the ledger. */
  credentialId: number | null;
  /** Address of the client; null for a signal, and in entries of versions that did not record it. */
  address: string | null;
  action: string;
  result: string;
  /** A short text without personal data, such as the limit that was exceeded. */
  detail: string | null;
  /**
   * Keyed hash of the e-mail address, so that a listing or an export does not allow guessing. The key is in the ledger file,
   * so the file itself does.
   */
  emailHash: string | null;
  /** Such as "a…@example.com"; without the first character if it is the only one. */
  emailMasked: string | null;
};

export type AuditRecord = AuditEntry & { seq: number };

/** A lookup to be recorded. */
export type AuditedLookup = Omit<AuditEntry, 'emailHash' | 'emailMasked'> & {
  email: string | null;
  bearer?: string | undefined;
};

/** Distinguishes unknown secrets, but is too short to identify a secret elsewhere. */
const SHORT_HASH_CHARS = 8;

/** The append-only trail of user lookups and reloads. Throws LedgerError. */
export class AuditTrail {
  readonly #db: LedgerDatabase;
  readonly #key: Buffer;

  constructor(database: LedgerDatabase) {
    this.#db = database;
    this.#key = readOrCreateKey(database);
  }

  /** Stores an entry durably. `email` and `bearer`, the token of a forwarded caller, are stored as hashes only. */
  add({ email, bearer, ...entry }: AuditedLookup): void {
    const caller =
      bearer === undefined ? entry.caller : `${entry.caller}:${this.#hash(bearer).slice(0, SHORT_HASH_CHARS)}`;
    const normal = email?.trim().toLowerCase() ?? null;
    this.#db.run`
      INSERT INTO audit (at, caller, credential_id, address, action, outcome, detail, email_hash, email_masked)
      VALUES (${entry.at}, ${caller}, ${entry.credentialId}, ${entry.address}, ${entry.action},
              ${entry.result}, ${entry.detail}, ${normal && this.#hash(normal)}, ${normal && masked(normal)})`;
  }

  /** Returns entries, newest first, and the position to continue `before`; null at the end. */
  list(query: { limit: number; before?: number | undefined }): { entries: AuditRecord[]; nextBefore: number | null } {
    const { limit, before = Number.MAX_SAFE_INTEGER } = query;
    const rows = this.#db.iterate<AuditRecord>`
      SELECT seq, at, caller, credential_id AS credentialId, address, action, outcome AS result, detail,
             email_hash AS emailHash, email_masked AS emailMasked
      FROM audit WHERE seq < ${before} ORDER BY seq DESC LIMIT ${limit + 1}`;
    const { page, hasMore } = takePage(rows, limit);
    return { entries: page, nextBefore: hasMore ? (page.at(-1)?.seq ?? null) : null };
  }

  #hash(text: string): string {
    return createHmac('sha256', this.#key).update(text).digest('hex');
  }
}

function masked(email: string): string {
  const at = email.lastIndexOf('@');
  const shown = at > 1 ? email.slice(0, 1) : '';
  return at < 1 ? '…' : `${shown}…${email.slice(at)}`;
}

function readOrCreateKey(database: LedgerDatabase): Buffer {
  const key = randomBytes(32).toString('hex');
  database.run`INSERT INTO meta (key, value) VALUES ('audit_key', ${key}) ON CONFLICT DO NOTHING`;
  return Buffer.from(String(database.value("SELECT value FROM meta WHERE key = 'audit_key'")), 'hex');
}

import { createHmac, randomBytes } from 'node:crypto';
import type Database from 'better-sqlite3';
import { guarded } from '../file/errors.ts';
import { takePage } from '../file/page.ts';

/** One lookup of users. Whom it was about is kept only so that it can be recognised, never so that it can be read. */
export type AuditEntry = {
  /** Epoch milliseconds. */
  at: number;
  /** The name of the credential, or how the caller was let in. */
  caller: string;
  /** Of the credential in the ledger; null: it is not kept there. */
  credentialId: number | null;
  /** Of the client; null: the entry was written by a version that did not record it. */
  address: string | null;
  action: string;
  outcome: string;
  /** A short text without personal data: the limit, say. */
  detail: string | null;
  /**
   * Of the e-mail address asked for: keyed, so that guesses can't be tried on a listing or an export. The key lies in the
   * ledger itself: whoever has that file can try them.
   */
  emailHash: string | null;
  /** "a…@example.com"; nothing before the … if there is one character only. */
  emailMasked: string | null;
};

export type AuditRecord = AuditEntry & { seq: number };

type Row = {
  seq: number;
  at: number;
  caller: string;
  credential_id: number | null;
  address: string | null;
  action: string;
  outcome: string;
  detail: string | null;
  email_hash: string | null;
  email_masked: string | null;
};

const SHORT_HASH_CHARS = 8;

/** The append-only list of who looked up which users. Throws LedgerError. */
export class AuditTrail {
  readonly #file: string;
  readonly #key: Buffer;
  readonly #insert: Database.Statement;
  readonly #list: Database.Statement;

  constructor(db: Database.Database, file: string) {
    this.#file = file;
    this.#key = guarded(file, () => keyOf(db));
    this.#insert = db.prepare(`
      -- One lookup.
      INSERT INTO audit (at, caller, credential_id, address, action, outcome, detail, email_hash, email_masked)
      VALUES (@at, @caller, @credentialId, @address, @action, @outcome, @detail, @emailHash, @emailMasked)`);
    this.#list = db.prepare(`
      -- Newest first.
      SELECT seq, at, caller, credential_id, address, action, outcome, detail, email_hash, email_masked
      FROM audit WHERE seq < @before ORDER BY seq DESC LIMIT @limit`);
  }

  add(entry: AuditEntry): void {
    guarded(this.#file, () => this.#insert.run(entry));
  }

  /** Newest first, with the position to go on `before`; null at the end. */
  list(query: { limit: number; before?: number | undefined }): { entries: AuditRecord[]; nextBefore: number | null } {
    const { limit, before = Number.MAX_SAFE_INTEGER } = query;
    const { page, hasMore } = guarded(this.#file, () =>
      takePage<Row>(this.#list.iterate({ before, limit: limit + 1 }), limit),
    );
    return {
      entries: page.map(({ credential_id, email_hash, email_masked, ...row }) => ({
        ...row,
        credentialId: credential_id,
        emailHash: email_hash,
        emailMasked: email_masked,
      })),
      nextBefore: hasMore ? (page.at(-1)?.seq ?? null) : null,
    };
  }

  /** How an e-mail address stands in an entry. */
  emailFields(email: string): Pick<AuditEntry, 'emailHash' | 'emailMasked'> {
    const normal = email.trim().toLowerCase();
    const at = normal.lastIndexOf('@');
    const shown = at > 1 ? normal.slice(0, 1) : '';
    return { emailHash: this.#hash(normal), emailMasked: at < 1 ? '…' : `${shown}…${normal.slice(at)}` };
  }

  /** Tells secrets apart that are not ours: the same for the same one, too short to be the secret's fingerprint elsewhere. */
  shortHash(secret: string): string {
    return this.#hash(secret).slice(0, SHORT_HASH_CHARS);
  }

  #hash(text: string): string {
    return createHmac('sha256', this.#key).update(text).digest('hex');
  }
}

/** Made once, kept in the ledger, beside what it is the key of. */
function keyOf(db: Database.Database): Buffer {
  db.prepare("INSERT INTO meta (key, value) VALUES ('audit_key', ?) ON CONFLICT DO NOTHING").run(
    randomBytes(32).toString('hex'),
  );
  const hex = db.prepare("SELECT value FROM meta WHERE key = 'audit_key'").pluck().get();
  return Buffer.from(String(hex), 'hex');
}

import type { LedgerDatabase } from '../file/ledger-database.ts';

/** A credential without its secret. Times are epoch milliseconds. */
export type CredentialRecord = {
  id: number;
  role: string;
  name: string;
  createdAt: number;
  /** With a resolution of one minute. */
  lastUsedAt: number | null;
  revokedAt: number | null;
};

/** The last use is recorded at most this often, because every write waits for the disk. */
const LAST_USED_STEP_MS = 60_000;

/** Credentials of callers. Stores only the SHA-256 of a secret, which suffices for 256 random bits. Throws LedgerError. */
export class CredentialStore {
  readonly #db: LedgerDatabase;

  constructor(database: LedgerDatabase) {
    this.#db = database;
  }

  add(credential: { hash: Buffer; role: string; name: string }, now: number): CredentialRecord {
    // Outside a transaction, a statement that is read by one row reports no error of its commit.
    return this.#db.transaction(
      () =>
        this.#db.row<CredentialRecord>(
          `INSERT INTO credentials (hash, role, name, created_at) VALUES (@hash, @role, @name, @now) RETURNING ${COLUMNS}`,
          { ...credential, now },
        ) as CredentialRecord,
    );
  }

  /** Returns all credentials, oldest first, including revoked ones. */
  list(): CredentialRecord[] {
    return this.#db.rows(`SELECT ${COLUMNS} FROM credentials ORDER BY id`);
  }

  /** Takes effect with the next request. Returns false if the credential is unknown or already revoked. */
  revoke(id: number, now: number): boolean {
    return (
      this.#db.run`UPDATE credentials SET revoked_at = ${now} WHERE id = ${id} AND revoked_at IS NULL`.changes === 1
    );
  }

  /** Returns the valid credential with this hash. */
  find(hash: Buffer): CredentialRecord | undefined {
    return this.#db.row(`SELECT ${COLUMNS} FROM credentials WHERE hash = ? AND revoked_at IS NULL`, hash);
  }

  isAnyValid(): boolean {
    return this.#db.row('SELECT 1 FROM credentials WHERE revoked_at IS NULL LIMIT 1') !== undefined;
  }

  used({ id, lastUsedAt }: CredentialRecord, now: number): void {
    if (lastUsedAt !== null && now - lastUsedAt < LAST_USED_STEP_MS) return;
    this.#db.run`UPDATE credentials SET last_used_at = max(coalesce(last_used_at, 0), ${now}) WHERE id = ${id}`;
  }
}

const COLUMNS = 'id, role, name, created_at AS createdAt, last_used_at AS lastUsedAt, revoked_at AS revokedAt';

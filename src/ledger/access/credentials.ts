import type Database from 'better-sqlite3';
import { guarded } from '../file/errors.ts';

/** A credential as it may be shown: its secret is known to its owner alone. Times are epoch milliseconds. */
export type CredentialRecord = {
  id: number;
  role: string;
  name: string;
  createdAt: number;
  /** To the minute. */
  lastUsedAt: number | null;
  revokedAt: number | null;
};

type Row = {
  id: number;
  role: string;
  name: string;
  created_at: number;
  last_used_at: number | null;
  revoked_at: number | null;
};

/** A use is written down at most this often, because every write waits for the disk. */
const LAST_USED_STEP_MS = 60_000;

/** Who may call. Secrets are kept as SHA-256 only, which is enough for 256 random bits. Throws LedgerError. */
export class CredentialStore {
  readonly #file: string;
  readonly #sql: ReturnType<typeof prepareStatements>;

  constructor(db: Database.Database, file: string) {
    this.#file = file;
    this.#sql = prepareStatements(db);
  }

  add(credential: { hash: Buffer; role: string; name: string }, now: number): CredentialRecord {
    const { lastInsertRowid } = this.#run(() => this.#sql.add.run({ ...credential, now }));
    return toRecord(this.#run(() => this.#sql.get.get(lastInsertRowid)) as Row);
  }

  /** Oldest first, revoked ones too. */
  list(): CredentialRecord[] {
    return (this.#run(() => this.#sql.list.all()) as Row[]).map(toRecord);
  }

  /** Takes effect with the next request. False: there is none with this id, or it was revoked already. */
  revoke(id: number, now: number): boolean {
    return this.#run(() => this.#sql.revoke.run({ id, now })).changes === 1;
  }

  /** Undefined: nobody's, or revoked. */
  find(hash: Buffer): CredentialRecord | undefined {
    const row = this.#run(() => this.#sql.find.get(hash)) as Row | undefined;
    return row && toRecord(row);
  }

  isAnyValid(): boolean {
    return this.#run(() => this.#sql.any.get()) !== undefined;
  }

  used({ id, lastUsedAt }: CredentialRecord, now: number): void {
    if (lastUsedAt === null || now - lastUsedAt >= LAST_USED_STEP_MS) this.#run(() => this.#sql.used.run({ id, now }));
  }

  #run<T>(work: () => T): T {
    return guarded(this.#file, work);
  }
}

function toRecord(row: Row): CredentialRecord {
  const { id, role, name, created_at, last_used_at, revoked_at } = row;
  return { id, role, name, createdAt: created_at, lastUsedAt: last_used_at, revokedAt: revoked_at };
}

function prepareStatements(db: Database.Database) {
  const columns = 'id, role, name, created_at, last_used_at, revoked_at';
  return {
    add: db.prepare(`
      -- A new one.
      INSERT INTO credentials (hash, role, name, created_at) VALUES (@hash, @role, @name, @now)`),
    get: db.prepare(`
      -- By its number.
      SELECT ${columns} FROM credentials WHERE id = ?`),
    list: db.prepare(`
      -- Every one, oldest first.
      SELECT ${columns} FROM credentials ORDER BY id`),
    revoke: db.prepare(`
      -- Once: the time of the first revocation stays.
      UPDATE credentials SET revoked_at = @now WHERE id = @id AND revoked_at IS NULL`),
    find: db.prepare(`
      -- Whose secret it is, while it is valid.
      SELECT ${columns} FROM credentials WHERE hash = ? AND revoked_at IS NULL`),
    any: db.prepare(`
      -- Whether anybody can call.
      SELECT 1 FROM credentials WHERE revoked_at IS NULL LIMIT 1`),
    used: db.prepare(`
      -- The last use; never back in time.
      UPDATE credentials SET last_used_at = max(coalesce(last_used_at, 0), @now) WHERE id = @id`),
  };
}

import type { LedgerDatabase } from '../ledger/ledger-database.ts';
import type { Actor } from '../lib/actor.ts';
import type { AuditTrail } from './audit-store.ts';

/**
 * A session of the dashboard. `credentialHash`: hash of the credential with which it began. Times
 * are epoch milliseconds.
 */
export type SessionRecord = { credentialHash: Buffer; createdAt: number; usedAt: number };

/**
 * `maxAgeMs`: older sessions of any credential are deleted. `replaces`: the current session of the
 * browser, which ends.
 */
export type NewSession = {
  hash: Buffer;
  credentialHash: Buffer;
  maxAgeMs: number;
  replaces: Buffer | undefined;
};

/**
 * Maximum number of sessions of a credential. A further session ends the oldest, so that sign-ins
 * cannot fill the disk.
 */
const MAX_PER_CREDENTIAL = 100;
/** Minimum time between two records of the last use, because every write waits for the disk. */
const USED_STEP_MS = 60_000;

/** Sessions of the dashboard, found by the hash of the secret in the cookie. Throws LedgerError. */
export class SessionStore {
  readonly #db: LedgerDatabase;
  readonly #audit: AuditTrail;

  constructor(database: LedgerDatabase, audit: AuditTrail) {
    this.#db = database;
    this.#audit = audit;
  }

  /**
   * Begins a session, with its entry in the audit. `detail`: the kind of sign-in. `email`: of the
   * person, if it is known.
   */
  begin(
    { hash, credentialHash, maxAgeMs, replaces }: NewSession,
    {
      actor,
      detail,
      email = null,
      now,
    }: { actor: Actor; detail: string; email?: string | null; now: number },
  ): void {
    this.#audit.change(
      actor,
      now,
      () => {
        this.#db
          .run`DELETE FROM sessions WHERE created_at <= ${now - maxAgeMs} OR hash = ${replaces ?? null}`;
        this.#db.run`
          DELETE FROM sessions WHERE hash IN (
            SELECT hash FROM sessions WHERE credential_hash = ${credentialHash}
            ORDER BY created_at DESC LIMIT -1 OFFSET ${MAX_PER_CREDENTIAL - 1})`;
        this.#db.run`
          INSERT INTO sessions (hash, credential_hash, created_at, used_at)
          VALUES (${hash}, ${credentialHash}, ${now}, ${now})`;
      },
      () => ({ action: 'sessions.create', detail, email }),
    );
  }

  find(hash: Buffer): SessionRecord | undefined {
    return this.#db.row`
      SELECT credential_hash AS credentialHash, created_at AS createdAt, used_at AS usedAt FROM sessions
      WHERE hash = ${hash}`;
  }

  /** Records that the session was used. */
  used(hash: Buffer, { usedAt }: SessionRecord, now: number): void {
    if (now - usedAt < USED_STEP_MS) return;
    this.#db.run`UPDATE sessions SET used_at = max(used_at, ${now}) WHERE hash = ${hash}`;
  }

  /** Ends a session, with its entry in the audit unless it had ended already. */
  end(hash: Buffer, actor: Actor, now: number): void {
    this.#audit.change(
      actor,
      now,
      () => this.#db.run`DELETE FROM sessions WHERE hash = ${hash}`.changes,
      (ended) => (ended === 0 ? undefined : { action: 'sessions.delete' }),
    );
  }

  /** Ends all sessions of a credential. */
  endAll(credentialHash: Buffer): void {
    this.#db.run`DELETE FROM sessions WHERE credential_hash = ${credentialHash}`;
  }
}

import { randomBytes } from 'node:crypto';
import type { FastifyRequest } from 'fastify';
import { LedgerError } from '../ledger/errors.ts';
import type { LedgerDatabase } from '../ledger/ledger-database.ts';
import type { Actor } from '../lib/actor.ts';
import { type Caller, type Credentials, type Identity, type Role, sha256 } from './access.ts';
import type { AuditTrail } from './audit-store.ts';
import { mayUseCookie, sessionCookieOf } from './cookies.ts';
import type { AccessSettings } from './settings.ts';

/** An unattended dashboard signs out; an open page sends requests while it is visible. */
const IDLE_MS = 2 * 3_600_000;
/** A working day, so that people sign in each morning. */
const SESSION_MS = 12 * 3_600_000;

/** `credentialHash`: of the credential with which it began. Times are epoch milliseconds. */
export type SessionRecord = { credentialHash: Buffer; createdAt: number; usedAt: number };

/** `replaces`: the current session of the browser, which ends. */
export type NewSession = { hash: Buffer; credentialHash: Buffer; replaces: Buffer | undefined };

/** A further session ends the oldest, so that sign-ins cannot fill the disk. */
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

  /** With its audit entry; deletes sessions that are over. `detail`: the kind of sign-in. */
  begin(
    { hash, credentialHash, replaces }: NewSession,
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
          .run`DELETE FROM sessions WHERE created_at <= ${now - SESSION_MS} OR hash = ${replaces ?? null}`;
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

  endAll(credentialHash: Buffer): void {
    this.#db.run`DELETE FROM sessions WHERE credential_hash = ${credentialHash}`;
  }
}

export type SessionsDeps = {
  store: SessionStore;
  credentials: Credentials;
  config: AccessSettings;
  clock: { now(): number };
};

/** A session ends with its credential, and by its own limits of time. */
export class Sessions {
  readonly #deps: SessionsDeps;

  constructor(deps: SessionsDeps) {
    this.#deps = deps;
  }

  /** Returns undefined if no session is open. Throws LedgerError. */
  identify(request: FastifyRequest): Identity | undefined {
    const publicUrl = this.#deps.config.server.public_url;
    const value = sessionCookieOf(request, publicUrl);
    if (value === undefined) return undefined;
    if (value === null) return { kind: 'malformed' };
    if (!mayUseCookie(request, publicUrl)) return { kind: 'cross_origin' };
    const session = sha256(value);
    const found = this.#find(session);
    if (!found) return undefined;
    this.#recordUse(session, found.record);
    return { kind: 'known', hash: found.record.credentialHash, caller: found.caller, session };
  }

  /** Returns the caller; undefined: the session has ended. Is no use of it. Throws LedgerError. */
  callerOf(session: Buffer): Caller | undefined {
    return this.#find(session)?.caller;
  }

  /** Returns when the session ends at the latest, epoch ms; undefined: it has ended. */
  endOf(session: Buffer): number | undefined {
    const record = this.#deps.store.find(session);
    return record && record.createdAt + SESSION_MS;
  }

  #find(session: Buffer): { record: SessionRecord; caller: Caller } | undefined {
    const { store, credentials, clock } = this.#deps;
    const record = store.find(session);
    if (!record) return undefined;
    const { createdAt, usedAt, credentialHash } = record;
    if (clock.now() >= Math.min(createdAt + SESSION_MS, usedAt + IDLE_MS)) return undefined;
    const caller = credentials(credentialHash);
    return caller && { record, caller };
  }

  /** Ignores a failed write, so that a full disk does not prevent access. */
  #recordUse(session: Buffer, record: SessionRecord): void {
    const { store, clock } = this.#deps;
    try {
      store.used(session, record, clock.now());
    } catch (error) {
      if (!(error instanceof LedgerError)) throw error;
    }
  }
}

/** A person at a provider of OpenID Connect. `name`: the e-mail address or the subject. */
type PersonRecord = { issuer: string; subject: string; name: string };
type FoundPerson = { id: number; hash: Buffer; revokedAt: number | null };

/**
 * Each person has a credential without a usable secret, for role, last use and revocation. It is
 * named `person:` and its id: audit entries never change, so they have no personal data. Throws
 * LedgerError.
 */
export class PeopleStore {
  readonly #db: LedgerDatabase;
  readonly #sessions: SessionStore;

  constructor(database: LedgerDatabase, sessions: SessionStore) {
    this.#db = database;
    this.#sessions = sessions;
  }

  /** With its audit entry. revoked: the credential of the person is revoked. */
  signIn(
    person: PersonRecord & { role: Role },
    session: Omit<NewSession, 'credentialHash'>,
    { address, now }: { address: string; now: number },
  ): 'signed_in' | 'revoked' {
    return this.#db.transaction(() => {
      const { role, name } = person;
      const found = this.#find(person);
      if (found?.revokedAt != null) return 'revoked';
      const { id, hash } = found ?? this.#add(person, now);
      if (found) {
        this.#db.run`UPDATE credentials SET role = ${role} WHERE id = ${id} AND role <> ${role}`;
        this.#db.run`UPDATE people SET name = ${name} WHERE credential = ${id} AND name <> ${name}`;
      }
      const actor = { name: personName(id), credentialId: id, address };
      const email = name.includes('@') ? name : null;
      this.#sessions.begin(
        { ...session, credentialHash: hash },
        { actor, detail: `oidc, ${role}`, email, now },
      );
      return 'signed_in';
    });
  }

  /** Ends the sessions of a person who has no role any more. */
  endSessions(person: PersonRecord): void {
    const found = this.#find(person);
    if (found) this.#sessions.endAll(found.hash);
  }

  nameOf(credential: number): string | undefined {
    return this.#db.value`SELECT name FROM people WHERE credential = ${credential}`;
  }

  #find({ issuer, subject }: PersonRecord): FoundPerson | undefined {
    return this.#db.row`
      SELECT c.id, c.hash, c.revoked_at AS revokedAt FROM people p JOIN credentials c ON c.id = p.credential
      WHERE p.issuer = ${issuer} AND p.subject = ${subject}`;
  }

  #add(
    { issuer, subject, name, role }: PersonRecord & { role: Role },
    now: number,
  ): { id: number; hash: Buffer } {
    // Random, so that no secret has this hash.
    const hash = randomBytes(32);
    const { lastInsertRowid } = this.#db.run`
      INSERT INTO credentials (hash, role, name, created_at) VALUES (${hash}, ${role}, '', ${now})`;
    const id = Number(lastInsertRowid);
    this.#db.run`UPDATE credentials SET name = ${personName(id)} WHERE id = ${id}`;
    this.#db.run`
      INSERT INTO people (credential, issuer, subject, name) VALUES (${id}, ${issuer}, ${subject}, ${name})`;
    return { id, hash };
  }
}

function personName(credential: number): string {
  return `person:${credential}`;
}

/** Returns SQL for the shown name of a caller: as stored or, for a person, address or subject. */
export function callerShown(column: string): string {
  return `coalesce((SELECT p.name FROM people p WHERE 'person:' || p.credential = ${column}), ${column})`;
}

import { randomBytes } from 'node:crypto';
import type { LedgerDatabase } from '../ledger/ledger-database.ts';
import type { NewSession, SessionStore } from './sessions-store.ts';

/** A person at a provider of OpenID Connect. `name`: the e-mail address or the subject. */
type PersonRecord = { issuer: string; subject: string; name: string };
type FoundPerson = { id: number; hash: Buffer; revokedAt: number | null };

/**
 * People who sign in at a provider. Each person has a credential, so that role, last use and
 * revocation work as for tokens. The credential has no usable secret. Its name is `person:` and its
 * id, so that entries of the audit, which never change, contain no personal data. Throws
 * LedgerError.
 */
export class PeopleStore {
  readonly #db: LedgerDatabase;
  readonly #sessions: SessionStore;

  constructor(database: LedgerDatabase, sessions: SessionStore) {
    this.#db = database;
    this.#sessions = sessions;
  }

  /**
   * Begins a session with this role, and stores its entry in the audit. revoked: the credential of
   * the person is revoked.
   */
  signIn(
    person: PersonRecord & { role: string },
    session: Omit<NewSession, 'credentialHash'>,
    { address, now }: { address: string; now: number },
  ): 'signed_in' | 'revoked' {
    return this.#db.transaction(() => {
      const { role, name } = person;
      const known = this.#find(person);
      if (known?.revokedAt != null) return 'revoked';
      const { id, hash } = known ?? this.#add(person, now);
      if (known) {
        this.#db
          .run`UPDATE credentials SET role = ${role}, scopes = NULL WHERE id = ${id} AND role <> ${role}`;
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
    const known = this.#find(person);
    if (known) this.#sessions.endAll(known.hash);
  }

  /** Returns the name of the person with this credential; undefined if there is none. */
  nameOf(credential: number): string | undefined {
    return this.#db.value`SELECT name FROM people WHERE credential = ${credential}`;
  }

  #find({ issuer, subject }: PersonRecord): FoundPerson | undefined {
    return this.#db.row`
      SELECT c.id, c.hash, c.revoked_at AS revokedAt FROM people p JOIN credentials c ON c.id = p.credential
      WHERE p.issuer = ${issuer} AND p.subject = ${subject}`;
  }

  #add(
    { issuer, subject, name, role }: PersonRecord & { role: string },
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

/**
 * Returns SQL for the shown name of a caller: the stored name or, for a person, the address or
 * subject.
 */
export function callerShown(column: string): string {
  return `coalesce((SELECT p.name FROM people p WHERE 'person:' || p.credential = ${column}), ${column})`;
}

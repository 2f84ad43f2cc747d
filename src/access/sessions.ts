import type { FastifyRequest } from 'fastify';
import { LedgerError } from '../ledger/errors.ts';
import type { Clock } from '../lib/clock.ts';
import type { Config } from '../operations/config/schema.ts';
import { type Identity, sha256 } from './access.ts';
import type { Caller, Credentials } from './caller.ts';
import { sessionCookieOf } from './cookies.ts';
import { mayUseCookie } from './same-origin.ts';
import type { SessionRecord, SessionStore } from './sessions-store.ts';

export type SessionsDeps = {
  store: SessionStore;
  credentials: Credentials;
  /** The settings in force. */
  settings: () => Pick<Config, 'sessions'>;
  publicUrl: () => string | undefined;
  clock: Pick<Clock, 'now'>;
};

/**
 * Identifies requests by the cookie of a session. A session ends with its credential, and by its
 * own limits of time.
 */
export class Sessions {
  readonly #deps: SessionsDeps;

  constructor(deps: SessionsDeps) {
    this.#deps = deps;
  }

  /** Returns undefined if no session is open. Throws LedgerError. */
  identify(request: FastifyRequest): Identity | undefined {
    const value = sessionCookieOf(request);
    if (value === undefined) return undefined;
    if (value === null) return { kind: 'malformed' };
    if (!mayUseCookie(request, this.#deps.publicUrl())) return { kind: 'cross_origin' };
    const session = sha256(value);
    const found = this.#find(session);
    if (!found) return undefined;
    this.#recordUse(session, found.record);
    return { kind: 'known', hash: found.record.credentialHash, caller: found.caller, session };
  }

  /**
   * Returns the caller of a session; undefined if it has ended. Does not count as a use of it.
   * Throws LedgerError.
   */
  callerOf(session: Buffer): Caller | undefined {
    return this.#find(session)?.caller;
  }

  /**
   * Returns when a session ends at the latest, in epoch milliseconds; undefined if it has ended.
   */
  endOf(session: Buffer): number | undefined {
    const record = this.#deps.store.find(session);
    return record && record.createdAt + this.#deps.settings().sessions.max_s * 1_000;
  }

  #find(session: Buffer): { record: SessionRecord; caller: Caller } | undefined {
    const { store, credentials, settings, clock } = this.#deps;
    const record = store.find(session);
    if (!record) return undefined;
    const { idle_s: idleS, max_s: maxS } = settings().sessions;
    const { createdAt, usedAt, credentialHash } = record;
    if (clock.now() >= Math.min(createdAt + maxS * 1_000, usedAt + idleS * 1_000)) return undefined;
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

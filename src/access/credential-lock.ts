import type { FastifyRequest } from 'fastify';
import { LruMap } from 'toad-cache';
import { networkOf } from '../lib/addresses.ts';
import { type Authenticator, credentialOf, type Identity, sha256 } from './access.ts';
import type { Caller, Credentials } from './caller.ts';
import { hasTokenForm } from './credentials.ts';
import { FailureBucket } from './failure-bucket.ts';
import type { Sessions } from './sessions.ts';

const WINDOW_MS = 60_000;
/**
 * Limit of addresses and credentials with recorded failures; the one that failed longest ago is
 * evicted.
 */
const MAX_FAILED = 10_000;
const MAX_USED = 10_000;

type AuthenticationAttempt =
  | { kind: 'started'; end: (failed: boolean) => void }
  | { kind: 'locked'; retryAfterMs: number };

/**
 * Looks up the credential of a request, or its session if it has no credential, and limits the
 * number of wrong credentials of an address: after `maxFailures` different ones within a minute,
 * the address is locked for the rest of that minute. Repetitions of one wrong credential count once
 * and lock only that credential, so that a client with an outdated credential does not lock its
 * neighbors.
 *
 * A locked address gets 429 for every credential without a lookup, so that a correct guess looks
 * like a wrong one. Exempt are sessions and tokens of dawatch's own form, whose 256 random bits
 * cannot be guessed, and credentials that the address has used successfully; for bearers of the
 * upstream, these are the ones that the upstream has accepted.
 */
export class CredentialLock implements Authenticator {
  readonly #credentials: Credentials;
  readonly #sessions: Pick<Sessions, 'identify' | 'callerOf'>;
  readonly #addresses: FailureBucket;
  /** Failures by address and credential. */
  readonly #repeated: FailureBucket;
  /**
   * The pairs of address and credential that were used successfully; the one unused for longest is
   * evicted.
   */
  readonly #used = new LruMap<true>(MAX_USED);
  /** Separate, so that many bearers of the upstream do not evict credentials of dawatch. */
  readonly #accepted = new LruMap<true>(MAX_USED);

  /** `maxFailures` 0 disables locking. */
  constructor(
    credentials: Credentials,
    sessions: Pick<Sessions, 'identify' | 'callerOf'>,
    maxFailures: number,
  ) {
    this.#credentials = credentials;
    this.#sessions = sessions;
    const max = maxFailures > 0 ? maxFailures : Number.POSITIVE_INFINITY;
    this.#addresses = new FailureBucket({ max, windowMs: WINDOW_MS, maxKeys: MAX_FAILED });
    this.#repeated = new FailureBucket({ max, windowMs: WINDOW_MS, maxKeys: MAX_FAILED });
  }

  identify(request: FastifyRequest): Identity {
    request.identity ??= this.#identityOf(request);
    return request.identity;
  }

  /**
   * Returns the caller of an earlier request; undefined if its credential or session has ended.
   * Throws LedgerError.
   */
  currentCaller(identity: Identity): Caller | undefined {
    if (identity.kind !== 'known') return undefined;
    const { session, hash } = identity;
    return session ? this.#sessions.callerOf(session) : this.#credentials(hash);
  }

  /** Ends the attempt of a forwarded bearer. `none`: the upstream did not decide about it. */
  recordVerdict(
    request: FastifyRequest,
    verdict: 'accepted' | 'refused' | 'failed' | 'none',
  ): void {
    const { identity } = request;
    if (identity?.kind !== 'forwarded') return;
    const pair = pairOf(networkOf(request.clientAddress), identity.hash);
    if (verdict === 'accepted') this.#accepted.set(pair, true);
    if (verdict === 'refused') this.#accepted.delete(pair);
    request.endAttempt?.(verdict === 'refused' || verdict === 'failed');
  }

  #identityOf(request: FastifyRequest): Identity {
    const shown = credentialOf(request);
    if (shown === undefined) return this.#sessionOf(request) ?? { kind: 'absent' };
    if (shown.kind === 'malformed') return shown;
    const { secret } = shown;
    const hash = sha256(secret);
    const address = networkOf(request.clientAddress);
    if (request.routeOptions.config?.forwardsBearer !== true)
      return this.#lookUp(secret, hash, address);
    const pair = pairOf(address, hash);
    const wasAccepted = this.#accepted.get(pair) === true;
    const attempt = this.#attempt(address, pair, { isExempt: wasAccepted });
    if (attempt.kind === 'locked') return attempt;
    request.endAttempt = attempt.end;
    return { kind: 'forwarded', secret, hash, wasAccepted };
  }

  /** A forwarded bearer does not depend on the dashboard. */
  #sessionOf(request: FastifyRequest): Identity | undefined {
    return request.routeOptions.config?.forwardsBearer
      ? undefined
      : this.#sessions.identify(request);
  }

  #lookUp(secret: string, hash: Buffer, address: string): Identity {
    const isOwn = hasTokenForm(secret);
    const pair = pairOf(address, hash);
    const isExempt = isOwn || this.#used.get(pair) === true;
    const attempt = this.#attempt(address, pair, { isExempt });
    if (attempt.kind === 'locked') return attempt;
    let failed = false;
    try {
      const caller = this.#credentials(hash);
      failed = caller === undefined;
      if (caller === undefined) this.#used.delete(pair);
      else if (!isExempt) this.#used.set(pair, true);
      return caller === undefined ? { kind: 'unknown' } : { kind: 'known', hash, caller };
    } finally {
      attempt.end(failed);
    }
  }

  /**
   * Starts an attempt. An exempt one counts only after it has failed, not while it is in flight.
   */
  #attempt(
    address: string,
    pair: string,
    { isExempt }: { isExempt: boolean },
  ): AuthenticationAttempt {
    if (isExempt)
      return { kind: 'started', end: (failed) => failed && this.#begin(address, pair)(true) };
    const retryAfterMs = this.#addresses.retryAfterMs(address) ?? this.#repeated.retryAfterMs(pair);
    if (retryAfterMs !== undefined) return { kind: 'locked', retryAfterMs };
    return { kind: 'started', end: this.#begin(address, pair) };
  }

  #begin(address: string, pair: string): (failed: boolean) => void {
    const endAddress = this.#repeated.isClean(pair) ? this.#addresses.begin(address) : undefined;
    const endPair = this.#repeated.begin(pair);
    return (failed) => {
      endAddress?.(failed);
      endPair(failed);
    };
  }
}

function pairOf(address: string, hash: Buffer): string {
  return `${address} ${hash.toString('base64')}`;
}

declare module 'fastify' {
  interface FastifyRequest {
    /**
     * Ends the attempt of a forwarded bearer, which counts against its address while it is in
     * flight.
     */
    endAttempt?: (failed: boolean) => void;
  }
}

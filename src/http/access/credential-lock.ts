import type { FastifyRequest } from 'fastify';
import { networkOf } from '../../platform/addresses.ts';
import type { Credentials } from '../ports.ts';
import { type Authenticator, credentialOf, hashOf, type Identity } from './access.ts';
import { FailureBucket } from './failure-bucket.ts';
import { UsedCredentials } from './used-credentials.ts';

const WINDOW_MS = 60_000;
/** Addresses and credentials with failures that are kept; past it the one that failed longest ago is removed. */
const MAX_FAILED = 10_000;
const MAX_USED = 10_000;

type AuthenticationAttempt =
  | { kind: 'entered'; leave: (failed: boolean) => void }
  | { kind: 'locked'; retryAfterMs: number };

/**
 * Looks credentials up, and bounds how many wrong ones an address may try: after `maxFailures` different ones within a minute
 * it is locked for the rest of that minute. Repeating one wrong credential counts once, and locks only that credential, so
 * that a caller with an outdated one does not lock its neighbours.
 *
 * A locked address is answered 429 to every credential without a lookup, so that a correct guess looks like a wrong one.
 * Exempt are tokens of dawatch's own form, whose 256 random bits cannot be guessed, and credentials that this address has used
 * before. Where the upstream judges the bearers, it has used those that the upstream accepted.
 */
export class CredentialLock implements Authenticator {
  readonly #credentials: Credentials;
  readonly #hasTokenForm: (secret: string) => boolean;
  readonly #addresses: FailureBucket;
  /** By address as well: what fails for one address says nothing about another. */
  readonly #repeated: FailureBucket;
  readonly #used = new UsedCredentials(MAX_USED);
  /** Apart, so that bearers of the upstream, which may be many, remove none of those that dawatch knows. */
  readonly #accepted = new UsedCredentials(MAX_USED);

  /** `maxFailures` 0: nothing is locked. */
  constructor(deps: { credentials: Credentials; hasTokenForm: (secret: string) => boolean; maxFailures: number }) {
    this.#credentials = deps.credentials;
    this.#hasTokenForm = deps.hasTokenForm;
    const max = deps.maxFailures > 0 ? deps.maxFailures : Number.POSITIVE_INFINITY;
    this.#addresses = new FailureBucket({ max, windowMs: WINDOW_MS, maxKeys: MAX_FAILED });
    this.#repeated = new FailureBucket({ max, windowMs: WINDOW_MS, maxKeys: MAX_FAILED });
  }

  identify(request: FastifyRequest): Identity {
    request.identity ??= this.#identityOf(request);
    return request.identity;
  }

  /** Ends the attempt of a forwarded bearer, once the upstream has judged it or was not asked. */
  recordVerdict(request: FastifyRequest, verdict: 'accepted' | 'refused' | 'failed' | 'none'): void {
    const { identity } = request;
    if (identity?.kind !== 'forwarded') return;
    const address = networkOf(request.clientAddress);
    if (verdict === 'accepted') this.#accepted.add(address, identity.hash);
    if (verdict === 'refused') this.#accepted.remove(address, identity.hash);
    request.endAttempt?.(verdict === 'refused' || verdict === 'failed');
  }

  #identityOf(request: FastifyRequest): Identity {
    const shown = credentialOf(request);
    if (shown?.kind !== 'secret') return { kind: shown === undefined ? 'absent' : 'malformed' };
    const { secret } = shown;
    const hash = hashOf(secret);
    const address = networkOf(request.clientAddress);
    if (request.routeOptions.config?.forwardsBearer !== true) return this.#lookUp(secret, hash, address);
    const wasAccepted = this.#accepted.has(address, hash);
    const attempt = this.#attempt(address, hash, { isExempt: wasAccepted });
    if (attempt.kind === 'locked') return attempt;
    request.endAttempt = attempt.leave;
    return { kind: 'forwarded', secret, hash, wasAccepted };
  }

  #lookUp(secret: string, hash: Buffer, address: string): Identity {
    const hasTokenForm = this.#hasTokenForm(secret);
    const isExempt = hasTokenForm || this.#used.has(address, hash);
    const attempt = this.#attempt(address, hash, { isExempt });
    if (attempt.kind === 'locked') return attempt;
    let failed = false;
    try {
      const caller = this.#credentials(hash);
      failed = caller === undefined;
      if (caller === undefined) this.#used.remove(address, hash);
      else if (!hasTokenForm) this.#used.add(address, hash);
      return caller === undefined ? { kind: 'unknown' } : { kind: 'known', hash, caller };
    } finally {
      attempt.leave(failed);
    }
  }

  /** An exempt attempt counts only once it has failed: it takes no room from others while it is under way. */
  #attempt(address: string, hash: Buffer, { isExempt }: { isExempt: boolean }): AuthenticationAttempt {
    const pair = `${address} ${hash.toString('base64')}`;
    if (isExempt) return { kind: 'entered', leave: (failed) => failed && this.#enter(address, pair)(true) };
    const retryAfterMs = this.#addresses.retryAfterMs(address) ?? this.#repeated.retryAfterMs(pair);
    if (retryAfterMs !== undefined) return { kind: 'locked', retryAfterMs };
    return { kind: 'entered', leave: this.#enter(address, pair) };
  }

  #enter(address: string, pair: string): (failed: boolean) => void {
    const leaveAddress = this.#repeated.isClean(pair) ? this.#addresses.begin(address) : undefined;
    const leavePair = this.#repeated.begin(pair);
    return (failed) => {
      leaveAddress?.(failed);
      leavePair(failed);
    };
  }
}

declare module 'fastify' {
  interface FastifyRequest {
    /** Ends what a forwarded bearer counts among the failures of its address while it is under way. */
    endAttempt?: (failed: boolean) => void;
  }
}

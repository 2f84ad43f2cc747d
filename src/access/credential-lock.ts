import rateLimit from '@fastify/rate-limit';
import type { FastifyInstance, FastifyReply, FastifyRequest, onRequestHookHandler } from 'fastify';
import { LruMap } from 'toad-cache';
import { sendProblem } from '../http/problems.ts';
import { isUnlimited } from '../http/typed-server.ts';
import { networkOf } from '../lib/addresses.ts';
import type { Config } from '../operations/config/schema.ts';
import { type Authenticator, credentialOf, type Identity, sendLocked, sha256 } from './access.ts';
import { hasTokenForm } from './credentials-store.ts';
import type { Caller, Credentials } from './scopes.ts';
import type { Sessions } from './sessions.ts';

type Options = {
  /** Limit of attempts in flight and failed together, per key. */
  max: number;
  windowMs: number;
  /** Limit of keys with failures; the one that failed longest ago is evicted. */
  maxKeys: number;
};

type EndAttempt = (failed: boolean) => void;

/**
 * Limits failed attempts per key in fixed windows. An attempt counts from its start, so that
 * concurrent attempts get no further than sequential ones, and is uncounted if it succeeds.
 * Attempts in flight count in every window.
 */
export class FailureBucket {
  readonly #options: Options;
  readonly #inFlight = new Map<string, number>();
  readonly #failed = new Map<string, { count: number; endsAt: number }>();

  constructor(options: Options) {
    this.#options = options;
  }

  /** Returns the milliseconds until another attempt is allowed; undefined if it is allowed now. */
  retryAfterMs(key: string): number | undefined {
    const failed = this.#failedOf(key);
    const inFlight = this.#inFlight.get(key) ?? 0;
    if (failed.count + inFlight < this.#options.max) return undefined;
    // An attempt in flight may succeed at any time.
    return inFlight > 0 ? 1_000 : failed.endsAt - Date.now();
  }

  /** Whether the key has no failure in this window and no attempt in flight. */
  isClean(key: string): boolean {
    return !this.#inFlight.has(key) && this.#failedOf(key).count === 0;
  }

  /** Starts an attempt. The returned function ends it; a second call does nothing. */
  begin(key: string): EndAttempt {
    this.#inFlight.set(key, (this.#inFlight.get(key) ?? 0) + 1);
    let isInFlight = true;
    return (hasFailed) => {
      if (!isInFlight) return;
      isInFlight = false;
      this.#end(key);
      if (hasFailed) this.#fail(key);
    };
  }

  #end(key: string): void {
    const left = (this.#inFlight.get(key) ?? 0) - 1;
    if (left > 0) this.#inFlight.set(key, left);
    else this.#inFlight.delete(key);
  }

  #fail(key: string): void {
    const { count, endsAt } = this.#failedOf(key);
    this.#failed.delete(key);
    this.#failed.set(key, { count: count + 1, endsAt });
    const [oldest] = this.#failed.keys();
    if (this.#failed.size > this.#options.maxKeys && oldest !== undefined)
      this.#failed.delete(oldest);
  }

  #failedOf(key: string): { count: number; endsAt: number } {
    const now = Date.now();
    const failed = this.#failed.get(key);
    return failed && failed.endsAt > now
      ? failed
      : { count: 0, endsAt: now + this.#options.windowMs };
  }
}

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

const RATE_WINDOW_MS = 60_000;
/** Limit of buckets; the least recently used one is evicted. */
const MAX_BUCKETS = 10_000;
/**
 * Statuses of a forwarded bearer that are no failed authentication. All others count, so that
 * guesses are limited.
 */
const NO_FAILURES: readonly number[] = [200, 400, 404];
/**
 * Returns a hook that applies limits per minute: wrong credentials per address (counted by `lock`),
 * and requests per credential. Requests with an unknown credential count for their address, because
 * otherwise each guess would have a bucket of its own.
 */
export async function addLimits(
  app: FastifyInstance,
  { limits, lock }: { limits: Config['limits']; lock: CredentialLock },
): Promise<onRequestHookHandler> {
  const { requests_per_minute: requestsPerMinute, failed_authentications_per_minute: maxFailures } =
    limits;
  // Before the response is sent, so that a client cannot send its next guess uncounted.
  app.addHook('onSend', (request, { statusCode }, _payload, done) => {
    if (statusCode === 200) lock.recordVerdict(request, 'accepted');
    else if (statusCode === 401 || statusCode === 403) lock.recordVerdict(request, 'refused');
    else lock.recordVerdict(request, NO_FAILURES.includes(statusCode) ? 'none' : 'failed');
    done();
  });

  // The plugin's own hooks would run after those that refuse a credential, and not at all without a
  // route.
  await app.register(rateLimit, { global: false, timeWindow: RATE_WINDOW_MS, cache: MAX_BUCKETS });
  const requests = app.createRateLimit({ max: requestsPerMinute, keyGenerator: keyOf });

  function keyOf(request: FastifyRequest): string {
    const identity = lock.identify(request);
    const isKnown =
      identity.kind === 'known' || (identity.kind === 'forwarded' && identity.wasAccepted);
    return isKnown
      ? `credential:${identity.hash.toString('hex')}`
      : `address:${networkOf(request.clientAddress)}`;
  }

  // With an async hook, Fastify would call the handler of a refused request whose client
  // disconnects before the response is sent.
  return (request, reply, done) => {
    if (isUnlimited(request.routeOptions.url)) return done();
    const identity = lock.identify(request);
    if (identity.kind === 'locked') {
      const ttlInSeconds = Math.ceil(identity.retryAfterMs / 1_000);
      setRateLimitHeaders(reply, { max: maxFailures, remaining: 0, ttlInSeconds });
      sendLocked(reply, identity.retryAfterMs);
      return;
    }
    if (requestsPerMinute === 0) return done();
    requests(request).then((bucket) => {
      if (!bucket.isAllowed) setRateLimitHeaders(reply, bucket);
      if (bucket.isAllowed || !bucket.isExceeded) done();
      else refuse(reply, bucket.ttlInSeconds, `at most ${requestsPerMinute} requests a minute`);
    }, done);
  };
}

type Bucket = { max: number; remaining: number; ttlInSeconds: number };

function setRateLimitHeaders(reply: FastifyReply, { max, remaining, ttlInSeconds }: Bucket): void {
  reply.headers({
    'ratelimit-limit': max,
    'ratelimit-remaining': remaining,
    'ratelimit-reset': ttlInSeconds,
  });
}

function refuse(reply: FastifyReply, retryAfterS: number, reason: string): FastifyReply {
  reply.header('retry-after', retryAfterS);
  return sendProblem(reply, { status: 429, detail: `${reason}; try again in ${retryAfterS} s` });
}

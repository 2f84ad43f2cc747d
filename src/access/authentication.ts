import rateLimit from '@fastify/rate-limit';
import type { FastifyInstance, FastifyRequest, onRequestHookHandler } from 'fastify';
import { sendProblem, setRetryAfter } from '../http/problems.ts';
import { isUnlimited } from '../http/typed-server.ts';
import { LedgerError } from '../ledger/errors.ts';
import { networkOf } from '../lib/addresses.ts';
import type { Log } from '../operations/logging/event-catalog.ts';
import {
  type Authenticator,
  type Credentials,
  credentialOf,
  type Identity,
  sha256,
} from './access.ts';
import type { AuditTrail } from './audit-store.ts';
import type { Sessions } from './sessions.ts';
import type { AccessSettings } from './settings.ts';

/** Identifies requests by their credential, or by their session if they have no credential. */
export function createAuthenticator(credentials: Credentials, sessions: Sessions): Authenticator {
  const identityOf = (request: FastifyRequest): Identity => {
    const presented = credentialOf(request);
    const forwards = request.routeOptions.config?.forwardsBearer === true;
    if (presented === undefined) {
      // A forwarded bearer does not depend on the dashboard.
      return (forwards ? undefined : sessions.identify(request)) ?? { kind: 'absent' };
    }
    if (presented.kind === 'malformed') return presented;
    const { secret } = presented;
    const hash = sha256(secret);
    if (forwards) return { kind: 'forwarded', secret, hash };
    const caller = credentials(hash);
    return caller === undefined ? { kind: 'unknown' } : { kind: 'known', hash, caller };
  };
  return {
    identify(request) {
      request.identity ??= identityOf(request);
      return request.identity;
    },
    currentCaller(identity) {
      if (identity.kind !== 'known') return undefined;
      const { session, hash } = identity;
      return session ? sessions.callerOf(session) : credentials(hash);
    },
  };
}

/**
 * malformed, unknown: no valid credential. refused: a bearer that the upstream refused or that was
 * not forwarded. cross_origin: a session's cookie, sent by a page of another origin. oidc: refused
 * at the provider.
 */
export const AUTHENTICATION_FAILURES = [
  'absent',
  'malformed',
  'unknown',
  'refused',
  'cross_origin',
  'oidc',
] as const;
export type AuthenticationFailure = (typeof AUTHENTICATION_FAILURES)[number];

function failureOf(identity: Identity, statusCode: number): AuthenticationFailure | undefined {
  switch (identity.kind) {
    case 'unknown':
      // Counted on open routes, too: a wrong credential was tried.
      return 'unknown';
    case 'absent':
    case 'malformed':
    case 'cross_origin':
      return statusCode === 401 ? identity.kind : undefined;
    case 'forwarded':
      return statusCode === 401 || statusCode === 403 ? 'refused' : undefined;
    case 'known':
      return undefined;
    default:
      return identity satisfies never;
  }
}

/**
 * Whether a forwarded bearer may be wrong. An unclear response counts, too, because each costs an
 * audit entry and a request to the upstream.
 */
function mayBeWrong(statusCode: number): boolean {
  return ![200, 400, 404, 429].includes(statusCode);
}

const WINDOW_MS = 60_000;

/**
 * Reports failed authentications, and returns a hook with the limits per minute of a credential and
 * of a network. Above the limit of failures, wrong credentials get 429 and bearers are not
 * forwarded. Correct ones still work: they cannot be guessed.
 */
export async function addLimits(
  app: FastifyInstance,
  deps: {
    limits: AccessSettings['limits'];
    authenticator: Authenticator;
    onRefused: (reason: AuthenticationFailure, address: string) => void;
  },
): Promise<onRequestHookHandler> {
  const { limits, authenticator, onRefused } = deps;
  const { requests_per_minute: maxRequests, failed_authentications_per_minute: maxFailures } =
    limits;
  const networkKey = ({ clientAddress }: FastifyRequest) => networkOf(clientAddress);
  // The plugin's own hooks run after those that refuse, and not at all without a route.
  await app.register(rateLimit, { global: false, timeWindow: WINDOW_MS });
  const failures = app.createRateLimit({ max: maxFailures, keyGenerator: networkKey });
  const requests = app.createRateLimit({
    max: maxRequests,
    keyGenerator(request) {
      const identity = authenticator.identify(request);
      return identity.kind === 'known' ? identity.hash.toString('hex') : networkKey(request);
    },
  });

  /** Requests with a bearer that the upstream is judging. */
  const inFlight = new Set<FastifyRequest>();

  app.addHook('onSend', (request, { statusCode }, _payload, done) => {
    const reason = request.identity && failureOf(request.identity, statusCode);
    if (reason !== undefined) {
      onRefused(reason, request.clientAddress);
      logFailure(request, reason);
    }
    // Before the response is sent, so that a client cannot send its next bearer uncounted.
    if (!inFlight.has(request)) return done();
    const counted = mayBeWrong(statusCode) ? failures(request) : Promise.resolve();
    counted.finally(() => inFlight.delete(request)).then(() => done(), done);
  });

  /** Returns the limit that the request exceeds, and counts the request. */
  const exceededBy = async (request: FastifyRequest) => {
    const { kind } = authenticator.identify(request);
    if (maxFailures > 0 && (kind === 'unknown' || kind === 'forwarded')) {
      const failed = (await failures(request, { increment: kind === 'unknown' })) as Bucket;
      // A forwarded bearer counts until the upstream has responded, and then if it has failed.
      const network = networkKey(request);
      const judged = [...inFlight].filter((other) => networkKey(other) === network).length;
      const isOver = kind === 'unknown' ? failed.isExceeded : failed.remaining <= judged;
      const what =
        kind === 'unknown' ? 'wrong credentials' : 'lookups that failed or are in flight';
      const soon = failed.remaining > 0 && { ttl: 1_000, ttlInSeconds: 1 };
      if (isOver)
        return { limit: `too many ${what} came from this address`, bucket: { ...failed, ...soon } };
      if (kind === 'forwarded') inFlight.add(request);
    }
    if (maxRequests === 0) return undefined;
    const bucket = (await requests(request)) as Bucket;
    return bucket.isExceeded
      ? { limit: `at most ${maxRequests} requests a minute`, bucket }
      : undefined;
  };

  // With an async hook, Fastify would call the handler of a refused request that disconnects.
  return (request, reply, done) => {
    if (isUnlimited(request.routeOptions.url)) return done();
    exceededBy(request).then((exceeded) => {
      if (!exceeded) return done();
      const { limit, bucket } = exceeded;
      setRetryAfter(reply, bucket.ttl);
      const detail = `${limit}; try again in ${bucket.ttlInSeconds} s`;
      sendProblem(reply, 429, detail);
    }, done);
  };
}

type Bucket = {
  remaining: number;
  ttl: number;
  ttlInSeconds: number;
  isExceeded: boolean;
};

function logFailure(request: FastifyRequest, reason: AuthenticationFailure): void {
  const { id, method, clientAddress: address, routeOptions } = request;
  const fields = { request_id: id, reason, address, method, route: routeOptions.url };
  // Without a child log for each request, because most of these lines are suppressed in a flood.
  const log = request.log as unknown as Log;
  // Browsers and scanners cause these constantly, and no credential was tried.
  if (reason === 'absent') log.debug(fields, 'auth.failed');
  else log.warn(fields, 'auth.failed');
}

const HOUR_MS = 3_600_000;
/** Limit of entries in an hour, so that refused sign-ins cannot fill the disk. */
const MAX_ENTRIES = 100;

/** Audits the first refused sign-in of a network in an hour; log and metrics have all. */
export function refusalRecorder({ audit, clock }: { audit: AuditTrail; clock: { now(): number } }) {
  const networks = new Set<string>();
  /** The hour of the networks, counted from the epoch. */
  let hour = 0;
  return (reason: AuthenticationFailure, clientAddress: string): void => {
    if (reason === 'absent') return;
    const now = clock.now();
    const current = Math.floor(now / HOUR_MS);
    if (current !== hour) networks.clear();
    hour = current;
    const address = networkOf(clientAddress);
    if (networks.has(address) || networks.size >= MAX_ENTRIES) return;
    const actor = { name: 'unauthenticated', credentialId: null, address };
    try {
      audit.append(actor, now, { action: 'auth.refused', result: 'refused', detail: reason });
    } catch (error) {
      // The next one of the network is written instead, for example once the disk has space.
      if (error instanceof LedgerError) return;
      throw error;
    }
    networks.add(address);
  };
}

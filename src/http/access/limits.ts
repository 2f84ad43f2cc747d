import rateLimit from '@fastify/rate-limit';
import type { FastifyInstance, FastifyReply, FastifyRequest, onRequestAsyncHookHandler } from 'fastify';
import { networkOf } from '../../platform/addresses.ts';
import { sendProblem } from '../problems.ts';
import { sendLocked } from './access.ts';
import type { CredentialLock } from './credential-lock.ts';

export type LimitSettings = {
  /** By one credential, or by one address without a known one. 0: no limit. */
  requestsPerMinute: number;
  /** Wrong credentials from one address. 0: no limit. */
  failedAuthenticationsPerMinute: number;
};

const WINDOW_MS = 60_000;
/** Buckets kept; past it the one unused for longest is forgotten. */
const MAX_BUCKETS = 10_000;
/** What the upstream accepted or could not find, and what was no valid question. Anything else counts, so that guesses stay bounded. */
const NO_FAILURES: readonly number[] = [200, 400, 404];
/** Whoever watches over the process must always get an answer. */
const UNLIMITED: readonly string[] = ['/livez', '/readyz', '/metrics'];

export function isUnlimited(route: string | undefined): boolean {
  return route !== undefined && UNLIMITED.includes(route);
}

/**
 * Two limits, each in windows of a minute: how many wrong credentials an address may show, which `lock` counts, and how many
 * requests a credential may make. A guessed credential falls into the bucket of its address, as no credential does: guesses
 * would make a bucket each.
 */
export async function addLimits(
  app: FastifyInstance,
  { limits, lock }: { limits: LimitSettings; lock: CredentialLock },
): Promise<void> {
  const { requestsPerMinute, failedAuthenticationsPerMinute } = limits;
  // First: whoever is locked out learns nothing of a credential from what the next hooks count either.
  app.addHook('onRequest', (request, reply, done) => {
    const identity = isUnlimited(request.routeOptions.url) ? undefined : lock.identify(request);
    if (identity?.kind !== 'locked') {
      done();
      return;
    }
    const ttlInSeconds = Math.ceil(identity.retryAfterMs / 1_000);
    tell(reply, { max: failedAuthenticationsPerMinute, remaining: 0, ttlInSeconds });
    sendLocked(reply, identity.retryAfterMs);
  });

  // Before the answer leaves: whoever has it must be counted already.
  app.addHook('onSend', (request, { statusCode }, _payload, done) => {
    if (statusCode === 200) lock.recordVerdict(request, 'accepted');
    else if (statusCode === 401 || statusCode === 403) lock.recordVerdict(request, 'refused');
    else lock.recordVerdict(request, NO_FAILURES.includes(statusCode) ? 'none' : 'failed');
    done();
  });

  // The plugin's own hooks would come after those that refuse a credential, and not at all where there is no route.
  await app.register(rateLimit, { global: false, timeWindow: WINDOW_MS, cache: MAX_BUCKETS });
  const requests = app.createRateLimit({ max: requestsPerMinute, keyGenerator: keyOf });

  function keyOf(request: FastifyRequest): string {
    const identity = lock.identify(request);
    const isKnown = identity.kind === 'known' || (identity.kind === 'forwarded' && identity.wasAccepted);
    return isKnown ? `credential:${identity.hash.toString('hex')}` : `address:${networkOf(request.clientAddress)}`;
  }

  const limitRequests: onRequestAsyncHookHandler = async (request, reply) => {
    if (isUnlimited(request.routeOptions.url)) return undefined;
    const bucket = await requests(request);
    if (bucket.isAllowed) return undefined;
    tell(reply, bucket);
    return bucket.isExceeded
      ? refuse(reply, bucket.ttlInSeconds, `at most ${requestsPerMinute} requests a minute`)
      : undefined;
  };
  if (requestsPerMinute > 0) app.addHook('onRequest', limitRequests);
}

type Bucket = { max: number; remaining: number; ttlInSeconds: number };

function tell(reply: FastifyReply, { max, remaining, ttlInSeconds }: Bucket): void {
  reply.headers({ 'ratelimit-limit': max, 'ratelimit-remaining': remaining, 'ratelimit-reset': ttlInSeconds });
}

function refuse(reply: FastifyReply, retryAfterS: number, reason: string): FastifyReply {
  reply.header('retry-after', retryAfterS);
  return sendProblem(reply, { status: 429, detail: `${reason}; try again in ${retryAfterS} s` });
}

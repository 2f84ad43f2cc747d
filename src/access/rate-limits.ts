import rateLimit from '@fastify/rate-limit';
import type {
  FastifyInstance,
  FastifyReply,
  FastifyRequest,
  onRequestAsyncHookHandler,
} from 'fastify';
import { sendProblem } from '../http/problems.ts';
import { isUnlimited } from '../http/typed-server.ts';
import { networkOf } from '../lib/addresses.ts';
import type { Config } from '../operations/config/schema.ts';
import { sendLocked } from './access.ts';
import type { CredentialLock } from './credential-lock.ts';

const WINDOW_MS = 60_000;
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
): Promise<onRequestAsyncHookHandler> {
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
  await app.register(rateLimit, { global: false, timeWindow: WINDOW_MS, cache: MAX_BUCKETS });
  const requests = app.createRateLimit({ max: requestsPerMinute, keyGenerator: keyOf });

  function keyOf(request: FastifyRequest): string {
    const identity = lock.identify(request);
    const isKnown =
      identity.kind === 'known' || (identity.kind === 'forwarded' && identity.wasAccepted);
    return isKnown
      ? `credential:${identity.hash.toString('hex')}`
      : `address:${networkOf(request.clientAddress)}`;
  }

  return async (request, reply) => {
    if (isUnlimited(request.routeOptions.url)) return undefined;
    const identity = lock.identify(request);
    if (identity.kind === 'locked') {
      const ttlInSeconds = Math.ceil(identity.retryAfterMs / 1_000);
      setRateLimitHeaders(reply, { max: maxFailures, remaining: 0, ttlInSeconds });
      return sendLocked(reply, identity.retryAfterMs);
    }
    if (requestsPerMinute === 0) return undefined;
    const bucket = await requests(request);
    if (bucket.isAllowed) return undefined;
    setRateLimitHeaders(reply, bucket);
    return bucket.isExceeded
      ? refuse(reply, bucket.ttlInSeconds, `at most ${requestsPerMinute} requests a minute`)
      : undefined;
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

import rateLimit from '@fastify/rate-limit';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { identify } from './access.ts';
import type { Credentials } from './ports.ts';
import { sendProblem } from './problems.ts';

export type LimitSettings = {
  /** By one credential, or by one address without a known one. 0: no limit. */
  requestsPerMinute: number;
  /** Wrong credentials from one address. 0: no limit. */
  failedAuthenticationsPerMinute: number;
};

const WINDOW_MS = 60_000;
/** Buckets kept; past it the one unused for longest is forgotten. */
const MAX_BUCKETS = 10_000;
/** Whoever watches over the process must always get an answer. */
export function isUnlimited(route: string | undefined): boolean {
  return route === '/livez' || route === '/readyz';
}

/**
 * Two limits, each in windows of a minute. A guessed credential falls into the bucket of its address, as no credential does:
 * guesses would make a bucket each. Past the failures an address may have, wrong credentials are no longer looked into (nor
 * sent upstream), while a known one still passes: whoever shares an address with an attacker is not locked out.
 */
export async function addLimits(
  app: FastifyInstance,
  deps: { limits: LimitSettings; credentials: Credentials },
): Promise<void> {
  const { requestsPerMinute, failedAuthenticationsPerMinute } = deps.limits;
  // The plugin's own hooks would come after those that refuse a credential, and not at all where there is no route.
  await app.register(rateLimit, { global: false, timeWindow: WINDOW_MS, cache: MAX_BUCKETS });
  const requests = app.createRateLimit({
    max: requestsPerMinute,
    keyGenerator: (request) => keyOf(request, deps.credentials),
  });
  const failures = app.createRateLimit({ max: failedAuthenticationsPerMinute, keyGenerator: addressOf });

  app.addHook('onRequest', async (request, reply): Promise<FastifyReply | undefined> => {
    if (requestsPerMinute === 0 || isUnlimited(request.routeOptions.url)) return undefined;
    const bucket = await requests(request);
    if (bucket.isAllowed) return undefined;
    tell(reply, bucket);
    return bucket.isExceeded
      ? refuse(reply, bucket.ttlInSeconds, `at most ${requestsPerMinute} requests a minute`)
      : undefined;
  });

  if (failedAuthenticationsPerMinute === 0) return;
  app.addHook('onRequest', async (request, reply): Promise<FastifyReply | undefined> => {
    if (isUnlimited(request.routeOptions.url) || !showsUnknown(request, deps.credentials)) return undefined;
    const bucket = await failures(request, { increment: false });
    if (bucket.isAllowed || bucket.remaining > 0) return undefined;
    tell(reply, bucket);
    return refuse(reply, bucket.ttlInSeconds, 'too many wrong credentials came from this address');
  });
  // Before the answer leaves: whoever has it must be counted already.
  app.addHook('onSend', async (request, reply) => {
    if (reply.statusCode === 401 && showsUnknown(request, deps.credentials)) await failures(request);
  });
}

type Bucket = { max: number; remaining: number; ttlInSeconds: number };

function tell(reply: FastifyReply, { max, remaining, ttlInSeconds }: Bucket): void {
  reply.headers({ 'ratelimit-limit': max, 'ratelimit-remaining': remaining, 'ratelimit-reset': ttlInSeconds });
}

function refuse(reply: FastifyReply, retryAfterS: number, reason: string): FastifyReply {
  reply.header('retry-after', retryAfterS);
  return sendProblem(reply, { status: 429, detail: `${reason}; try again in ${retryAfterS} s` });
}

function keyOf(request: FastifyRequest, credentials: Credentials): string {
  const identity = identify(request, credentials);
  return identity?.caller ? `credential:${identity.hash.toString('hex')}` : `address:${addressOf(request)}`;
}

/** The connection's own, whatever the headers say of others; of IPv6 the /64, which one client has whole. */
function addressOf(request: FastifyRequest): string {
  return rateLimit.normalizeIP(request.ip);
}

/** A request that shows nothing is none who guesses. */
function showsUnknown(request: FastifyRequest, credentials: Credentials): boolean {
  const { 'x-api-key': key, authorization } = request.headers;
  return (key !== undefined || authorization !== undefined) && identify(request, credentials)?.caller === undefined;
}

import rateLimit from '@fastify/rate-limit';
import type { FastifyInstance, FastifyReply, FastifyRequest, onRequestAsyncHookHandler } from 'fastify';
import { AcceptedBearers } from './accepted-bearers.ts';
import { identify, identifyBearer } from './access.ts';
import { FailureBucket } from './failure-bucket.ts';
import type { Credentials } from './ports.ts';
import { sendProblem } from './problems.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** Ends what the request counts among the failures of its address while it is under way. */
    leaveFailures?: (failed: boolean) => void;
  }
}

export type LimitSettings = {
  /** By one credential, or by one address without a known one. 0: no limit. */
  requestsPerMinute: number;
  /** Wrong credentials from one address. 0: no limit. */
  failedAuthenticationsPerMinute: number;
};

const WINDOW_MS = 60_000;
/** Buckets kept; past it the one unused for longest is forgotten. */
const MAX_BUCKETS = 10_000;
/** Bearers remembered that the upstream accepted. */
const MAX_ACCEPTED = 10_000;
/** What the upstream accepted or could not find, and what was no valid question. Anything else counts, so that guesses stay bounded. */
const NO_FAILURES: readonly number[] = [200, 400, 404];
/** Whoever watches over the process must always get an answer. */
const UNLIMITED: readonly string[] = ['/livez', '/readyz', '/metrics'];

export function isUnlimited(route: string | undefined): boolean {
  return route !== undefined && UNLIMITED.includes(route);
}

/**
 * Two limits, each in windows of a minute. A guessed credential falls into the bucket of its address, as no credential does:
 * guesses would make a bucket each. Past the failures an address may have, wrong credentials are no longer looked into (nor
 * sent upstream), while a known one still passes: whoever shares an address with an attacker is not locked out. Where the
 * upstream judges the bearers, known are those that it accepted last.
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
    keyGenerator: keyOf,
  });
  const accepted = new AcceptedBearers(MAX_ACCEPTED);

  /** What the route goes by, and nothing else: whether an `x-api-key` is known must not show where guesses are not counted. */
  function shownBy(request: FastifyRequest) {
    return (forwards(request) ? identifyBearer : identify)(request, deps.credentials);
  }

  function isKnown(request: FastifyRequest): boolean {
    const shown = shownBy(request);
    return shown !== undefined && (shown.caller !== undefined || (forwards(request) && accepted.has(shown.hash)));
  }

  function keyOf(request: FastifyRequest): string {
    const known = isKnown(request) ? shownBy(request) : undefined;
    return known ? `credential:${known.hash.toString('hex')}` : `address:${addressOf(request)}`;
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

  // Before the answer leaves, here and below: whoever has it must be counted already.
  app.addHook('onSend', (request, reply, _payload, done) => {
    const bearer = forwards(request) ? identifyBearer(request, deps.credentials) : undefined;
    if (bearer && reply.statusCode === 200) accepted.add(bearer.hash);
    if (bearer && (reply.statusCode === 401 || reply.statusCode === 403)) accepted.forget(bearer.hash);
    done();
  });

  if (failedAuthenticationsPerMinute === 0) return;
  const failures = new FailureBucket({
    max: failedAuthenticationsPerMinute,
    windowMs: WINDOW_MS,
    maxKeys: MAX_BUCKETS,
  });
  app.addHook('onRequest', (request, reply, done) => {
    if (isUnlimited(request.routeOptions.url) || !showsAny(request) || isKnown(request)) {
      done();
      return;
    }
    const entry = failures.enter(addressOf(request));
    if (entry.kind === 'refused') {
      const ttlInSeconds = Math.ceil(entry.retryAfterMs / 1_000);
      tell(reply, { max: failedAuthenticationsPerMinute, remaining: 0, ttlInSeconds });
      refuse(reply, ttlInSeconds, 'too many wrong credentials came from this address');
      return;
    }
    request.leaveFailures = entry.leave;
    // There may be no answer to who hangs up; but what went upstream counts until the upstream has answered.
    if (!forwards(request)) reply.raw.once('close', () => entry.leave(false));
    done();
  });
  app.addHook('onSend', (request, reply, _payload, done) => {
    const { statusCode } = reply;
    request.leaveFailures?.(forwards(request) ? !NO_FAILURES.includes(statusCode) : statusCode === 401);
    done();
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

/** The connection's own, whatever the headers say of others; of IPv6 the /64, which one client has whole. */
function addressOf(request: FastifyRequest): string {
  return rateLimit.normalizeIP(request.ip);
}

/** A request that shows nothing is none who guesses. */
function showsAny(request: FastifyRequest): boolean {
  const { 'x-api-key': key, authorization } = request.headers;
  return authorization !== undefined || (key !== undefined && !forwards(request));
}

/** Whether the upstream judges the bearer of this request. */
function forwards(request: FastifyRequest): boolean {
  return request.routeOptions.config?.forwardsBearer === true;
}

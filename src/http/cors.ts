import type { FastifyReply, onRequestAsyncHookHandler } from 'fastify';

const PREFLIGHT_HEADERS = {
  'access-control-allow-methods': 'GET, POST, PUT, PATCH, DELETE',
  'access-control-allow-headers':
    'authorization, content-type, if-none-match, last-event-id, x-api-key, x-request-id',
  'access-control-max-age': '600',
} as const;
const EXPOSED =
  'etag, ratelimit-limit, ratelimit-remaining, ratelimit-reset, retry-after, x-request-id';

/**
 * Returns a hook that allows pages of the given origins to read responses. Without origins, no CORS
 * headers are sent. Cookies are never allowed: a page sends its token itself.
 */
export function allowOrigins(origins: readonly string[]): onRequestAsyncHookHandler {
  const allowed = new Set(origins);
  return async (request, reply): Promise<FastifyReply | undefined> => {
    if (allowed.size === 0) return undefined;
    reply.header('vary', 'Origin');
    const { origin } = request.headers;
    if (origin === undefined || !allowed.has(origin)) return undefined;
    reply.headers({
      'access-control-allow-origin': origin,
      'access-control-expose-headers': EXPOSED,
    });
    const isPreflight =
      request.method === 'OPTIONS' && 'access-control-request-method' in request.headers;
    return isPreflight ? reply.code(204).headers(PREFLIGHT_HEADERS).send() : undefined;
  };
}

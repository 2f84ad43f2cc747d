import type { FastifyInstance, FastifyRequest, onRequestHookHandler } from 'fastify';

/** Returns the path as sent, without a proxy's scheme and host. Decodes and resolves nothing. */
function sentPath({ url }: FastifyRequest): string {
  const [address = ''] = url.split(/[?#]/, 1);
  return address.replace(/^[a-z][a-z\d+.-]*:\/\/[^/]*/i, '');
}

export type Page = { type: string; body: Buffer; policy?: string | undefined };

/** Serves pages by their paths. They are read at the first request, to start fast. */
export function servePages(
  app: FastifyInstance,
  urls: readonly string[],
  read: () => ReadonlyMap<string, Page>,
): void {
  let pages: ReadonlyMap<string, Page> | undefined;
  for (const url of urls)
    app.get(
      url,
      { config: { isOpen: true, isExpensive: true }, schema: { hide: true } },
      (request, reply) => {
        pages ??= read();
        const page = pages.get(sentPath(request));
        if (page === undefined) return reply.callNotFound();
        if (page.policy) reply.header('content-security-policy', page.policy);
        return reply.type(page.type).send(page.body);
      },
    );
}

const PREFLIGHT_HEADERS = {
  'access-control-allow-methods': 'GET, POST, PUT, PATCH, DELETE',
  'access-control-allow-headers':
    'authorization, content-type, last-event-id, x-api-key, x-request-id',
  'access-control-max-age': '600',
} as const;
const EXPOSED = 'retry-after, x-request-id';

/** Without origins, no CORS headers are sent. Cookies are never allowed: pages send tokens. */
export function allowOrigins(origins: readonly string[]): onRequestHookHandler {
  const allowed = new Set(origins);
  return (request, reply, done) => {
    if (allowed.size === 0) return done();
    reply.header('vary', 'Origin');
    const { origin } = request.headers;
    if (origin === undefined || !allowed.has(origin)) return done();
    reply.headers({
      'access-control-allow-origin': origin,
      'access-control-expose-headers': EXPOSED,
    });
    const isPreflight =
      request.method === 'OPTIONS' && 'access-control-request-method' in request.headers;
    if (isPreflight) reply.code(204).headers(PREFLIGHT_HEADERS).send();
    else done();
  };
}

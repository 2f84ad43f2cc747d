import type { IncomingMessage } from 'node:http';
import type { FastifyInstance, FastifyRequest, onRequestHookHandler } from 'fastify';
import { sendProblem } from './problems.ts';

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

const ORDER = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'];

/** Responds 204 to OPTIONS and 405 to the rest, with Allow. Must precede the first route. */
export function handleUnroutedMethods(app: FastifyInstance): onRequestHookHandler {
  const routes = new Map<string, { segments: string[]; methods: Set<string> }>();
  app.addHook('onRoute', ({ url, method }) => {
    const route = routes.get(url) ?? { segments: url.split('/'), methods: new Set() };
    for (const one of [method].flat()) route.methods.add(one);
    routes.set(url, route);
  });
  const allowedAt = (path: string) => {
    const segments = decoded(path).split('/');
    const found = [...routes.values()].filter(
      (route) => path === '*' || isAt(route.segments, segments),
    );
    const methods = new Set(found.flatMap((route) => [...route.methods]));
    return methods.size === 0
      ? undefined
      : ORDER.filter((name) => name === 'OPTIONS' || methods.has(name)).join(', ');
  };

  return (request, reply, done) => {
    const { method } = request;
    const path = request.is404 ? sentPath(request) : undefined;
    const allowed = path === undefined ? undefined : allowedAt(path);
    if (path === undefined || allowed === undefined) {
      done();
      return;
    }
    reply.header('allow', allowed);
    if (method === 'OPTIONS') reply.code(204).send();
    else
      sendProblem(reply, 405, `${path.slice(0, 200)} does not support ${method}, only ${allowed}`);
  };
}

function isAt(pattern: readonly string[], path: readonly string[]): boolean {
  if (pattern.at(-1) === '*' ? path.length < pattern.length : path.length !== pattern.length)
    return false;
  // A parameter may be empty, as in the router.
  return pattern.every(
    (segment, index) => segment.startsWith(':') || segment === '*' || segment === path[index],
  );
}

/** Decodes a path as the router does. */
function decoded(path: string): string {
  try {
    return decodeURI(path);
  } catch {
    return path;
  }
}

/** Removes the last slash of a POST to /v1; in other requests it may precede a missing id. */
export function withoutLastSlash({ method, url = '/' }: IncomingMessage): string {
  return method === 'POST' ? url.replace(/^(\/v1\/[^?]*[^?/])\/(?=\?|$)/, '$1') : url;
}

/** Relative to the sent address: a proxy may have added a prefix, and the caller a slash. */
export function locationOf({ originalUrl, routeOptions }: FastifyRequest, id: string): string {
  const hasLastSlash = /^[^?]*\/(?:\?|$)/.test(originalUrl);
  return hasLastSlash ? id : `${routeOptions.url?.split('/').at(-1)}/${id}`;
}

const PREFLIGHT_HEADERS = {
  'access-control-allow-methods': 'GET, POST, PUT, PATCH, DELETE',
  'access-control-allow-headers':
    'authorization, content-type, last-event-id, x-api-key, x-request-id',
  'access-control-max-age': '600',
} as const;
const EXPOSED = 'ratelimit-limit, ratelimit-remaining, ratelimit-reset, retry-after, x-request-id';

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

import type { FastifyInstance, FastifyRequest } from 'fastify';

/**
 * Returns the path as the client sent it, without a scheme and host that a proxy may have added.
 * Nothing is decoded and "." and ".." are not resolved.
 */
export function sentPath({ url }: FastifyRequest): string {
  const [address = ''] = url.split(/[?#]/, 1);
  return address.replace(/^[a-z][a-z\d+.-]*:\/\/[^/]*/i, '');
}

/**
 * Serves pages from a server that never listens. It is built at the first request, because loading
 * its libraries slows every start.
 */
export function servePages(
  app: FastifyInstance,
  urls: readonly string[],
  build: () => Promise<FastifyInstance>,
): void {
  let built: Promise<FastifyInstance> | undefined;
  for (const url of urls)
    app.get(url, { config: { isOpen: true }, schema: { hide: true } }, async (request, reply) => {
      const path = sentPath(request);
      // Each file has exactly one path: nothing is decoded or resolved.
      if (!/^(?:\/[\w-][\w.-]*)*\/?$/.test(path)) return reply.callNotFound();
      built ??= build();
      const response = await (await built).inject(path);
      if (response.statusCode !== 200) return reply.callNotFound();
      const { 'content-type': type, 'content-security-policy': policy } = response.headers;
      if (policy) reply.header('content-security-policy', policy);
      return reply.type(String(type)).send(response.rawPayload);
    });
}

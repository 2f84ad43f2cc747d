import type { FastifyInstance, FastifyReply, FastifyRequest, RouteOptions } from 'fastify';

/** What a page says of itself; the connection is another one. */
const SHOWN_HEADERS = ['content-type', 'content-security-policy', 'cache-control', 'etag', 'last-modified', 'location'];

/**
 * Before the first route: whatever is routed later is described at /openapi.json and /docs. What makes these is loaded when
 * somebody first looks: it would make every start slower.
 */
export function addDocumentation(app: FastifyInstance, version: string): { document: () => Promise<unknown> } {
  const routes: RouteOptions[] = [];
  app.addHook('onRoute', (route) => {
    if (route.method !== 'HEAD' && !route.schema?.hide) routes.push(route);
  });
  let docs: Promise<FastifyInstance> | undefined;
  const built = () => {
    docs ??= import('./docs.ts')
      .then(({ buildDocs }) => buildDocs(routes, version))
      .catch((error) => {
        // Who looks next tries again.
        docs = undefined;
        throw error;
      });
    return docs;
  };
  app.addHook('onClose', async () => (await docs?.catch(() => undefined))?.close());

  const show = async (request: FastifyRequest, reply: FastifyReply) => {
    const { 'if-none-match': known = '' } = request.headers;
    const page = await (await built()).inject({ url: request.url, headers: { 'if-none-match': known } });
    if (page.statusCode >= 400) return reply.callNotFound();
    for (const name of SHOWN_HEADERS) if (page.headers[name] !== undefined) reply.header(name, page.headers[name]);
    return reply.code(page.statusCode).send(page.rawPayload);
  };
  for (const url of ['/docs', '/docs/*']) app.get(url, { schema: { hide: true } }, show);
  return { document: async () => (await built()).swagger() };
}

import type { FastifyInstance, FastifyReply, FastifyRequest, RouteOptions } from 'fastify';

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
    docs ??= import('./docs.ts').then(({ buildDocs }) => buildDocs(routes, version));
    return docs;
  };
  app.addHook('onClose', async () => (await docs)?.close());

  const show = async ({ method, url }: FastifyRequest, reply: FastifyReply) => {
    const { statusCode, headers, rawPayload } = await (await built()).inject({
      method: method === 'HEAD' ? 'HEAD' : 'GET',
      url,
    });
    if (statusCode >= 400) return reply.callNotFound();
    return reply.code(statusCode).headers(headers).send(rawPayload);
  };
  for (const url of ['/docs', '/docs/*']) app.get(url, { schema: { hide: true } }, show);
  return { document: async () => (await built()).swagger() };
}

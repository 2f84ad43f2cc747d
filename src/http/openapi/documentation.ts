import type { FastifyInstance, FastifyReply, FastifyRequest, RouteOptions } from 'fastify';
import { type StoredAnswer, sendStored, sentPath } from '../load/stored-answer.ts';
import type { Docs } from './docs.ts';

/**
 * Serves the page at /docs. Registered before the first route: every route that is registered later is described there and
 * in the OpenAPI document. Both are built when a client first asks, because loading what builds them slows down every start.
 */
export function addDocumentation(app: FastifyInstance, version: string): { document: () => Promise<StoredAnswer> } {
  const routes: RouteOptions[] = [];
  app.addHook('onRoute', (route) => {
    if (route.method !== 'HEAD' && !route.schema?.hide) routes.push(route);
  });
  let docs: Promise<Docs> | undefined;
  const built = () => {
    docs ??= import('./docs.ts')
      .then(({ buildDocs }) => buildDocs(routes, version))
      .catch((error) => {
        // The next request tries again.
        docs = undefined;
        throw error;
      });
    return docs;
  };

  const show = async (request: FastifyRequest, reply: FastifyReply) => {
    const file = (await built()).files.get(sentPath(request));
    return file ? sendStored(request, reply, file) : reply.callNotFound();
  };
  for (const url of ['/docs', '/docs/*']) app.get(url, { schema: { hide: true } }, show);
  return { document: async () => (await built()).document };
}

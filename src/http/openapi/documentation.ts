import type { FastifyInstance, FastifyReply, FastifyRequest, RouteOptions } from 'fastify';
import { type StoredResponse, sendStoredResponse, sentPath } from '../stored-response.ts';
import type { Docs } from './docs-page.ts';

/**
 * Serves the page at /docs. Registered before the first route: every route that is registered later is described there and
 * in the OpenAPI document. Both are built when a client first asks, because loading what builds them slows down every start.
 */
export function addDocumentation(app: FastifyInstance, version: string): { document: () => Promise<StoredResponse> } {
  const routes: RouteOptions[] = [];
  app.addHook('onRoute', (route) => {
    if (route.method !== 'HEAD' && !route.schema?.hide) routes.push(route);
  });
  let docs: Promise<Docs> | undefined;
  const built = () => {
    docs ??= import('./docs-page.ts')
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
    return file ? sendStoredResponse(request, reply, file) : reply.callNotFound();
  };
  for (const url of ['/docs', '/docs/*']) app.get(url, { schema: { hide: true } }, show);
  return { document: async () => (await built()).document };
}

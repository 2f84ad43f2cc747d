import swaggerUi from '@fastify/swagger-ui';
import { type FastifyInstance, fastify, type RouteOptions } from 'fastify';
import { addOpenapi } from './openapi.ts';

/** What Swagger UI needs: its own scripts and styles, pictures within those, and the document. Nothing from elsewhere. */
const DOCS_CSP = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

/** A server that listens nowhere: it has the document of these routes, and the page at /docs. */
export async function buildDocs(routes: readonly RouteOptions[], version: string): Promise<FastifyInstance> {
  const docs = fastify();
  docs.setValidatorCompiler(() => () => true);
  docs.setSerializerCompiler(() => (body) => JSON.stringify(body));
  await addOpenapi(docs, version);
  for (const { method, url, schema = {} } of routes) docs.route({ method, url, schema, handler: () => undefined });
  await docs.register(async (page) => {
    page.addHook('onRequest', async (_request, reply) => {
      reply.header('content-security-policy', DOCS_CSP);
    });
    await page.register(swaggerUi, {
      routePrefix: '/docs',
      theme: { title: 'dawatch' },
      // Without the bar on top, which would load any other document.
      uiConfig: { layout: 'BaseLayout', docExpansion: 'list', displayRequestDuration: true, tryItOutEnabled: true },
    });
  });
  await docs.ready();
  return docs;
}

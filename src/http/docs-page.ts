import swagger from '@fastify/swagger';
import swaggerUi from '@fastify/swagger-ui';
import { type FastifyInstance, fastify, type RouteOptions } from 'fastify';
import { openapiOptions } from './openapi.ts';

/** The minimum for Swagger UI: its scripts, styles with embedded images, and the document. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

/** Validates and serializes nothing, so that no schema is compiled. */
const NO_COMPILERS = {
  compilersFactory: {
    buildValidator: () => (() => true) as never,
    buildSerializer: () => () => JSON.stringify,
  },
};

export async function buildDocs(
  routes: readonly RouteOptions[],
  version: string,
  webhooks: object,
): Promise<FastifyInstance> {
  const server = fastify({ exposeHeadRoutes: false, schemaController: NO_COMPILERS });
  await server.register(swagger, openapiOptions(version, webhooks));
  for (const { method, url, schema = {} } of routes)
    server.route({ method, url, schema, handler: () => undefined });
  await server.register(swaggerUi, {
    routePrefix: '/docs',
    // The page loads its files by relative addresses: a proxy may serve it below another path.
    indexPrefix: '.',
    theme: { title: 'dawatch' },
    staticCSP: POLICY,
    // Hides the top bar, which can load other documents.
    uiConfig: {
      layout: 'BaseLayout',
      docExpansion: 'list',
      displayRequestDuration: true,
      tryItOutEnabled: true,
    },
  });
  await server.ready();
  return server;
}

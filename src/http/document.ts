import swagger from '@fastify/swagger';
import { fastify, type RouteOptions } from 'fastify';
import { openapiOptions } from './openapi.ts';

/** Validates and serializes nothing, so that no schema is compiled. */
const NO_COMPILERS = {
  compilersFactory: {
    buildValidator: () => (() => true) as never,
    buildSerializer: () => () => JSON.stringify,
  },
};

export async function buildDocument(
  routes: readonly RouteOptions[],
  version: string,
): Promise<object> {
  const server = fastify({ exposeHeadRoutes: false, schemaController: NO_COMPILERS });
  await server.register(swagger, openapiOptions(version));
  for (const { method, url, schema = {} } of routes)
    server.route({ method, url, schema, handler: () => undefined });
  await server.ready();
  return server.swagger();
}

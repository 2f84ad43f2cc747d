import { readdir } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import swaggerUi from '@fastify/swagger-ui';
import { type FastifyInstance, fastify, type RouteOptions } from 'fastify';
import { type StoredResponse, storedResponse } from '../static-files.ts';
import { addOpenapi } from './openapi.ts';

const PAGE = '/docs';

/** The minimum for Swagger UI: its own scripts, styles with embedded images, and the document. */
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

/** The OpenAPI document and the files of the page at /docs by path. */
export type Docs = { document: StoredResponse; files: ReadonlyMap<string, StoredResponse> };

/** Renders the OpenAPI document of `routes` and the page at /docs. */
export async function buildDocs(routes: readonly RouteOptions[], version: string): Promise<Docs> {
  const server = await describedServer(routes, version);
  try {
    const files = new Map<string, StoredResponse>();
    for (const path of await pathsOfPage()) {
      const { statusCode, rawPayload, headers } = await server.inject(path);
      if (statusCode !== 200) throw new Error(`${path} of the page at /docs is ${statusCode}`);
      const contentType = String(headers['content-type']);
      files.set(path, storedResponse(rawPayload, { 'content-type': contentType, 'content-security-policy': DOCS_CSP }));
    }
    const json = JSON.stringify(server.swagger());
    return { document: storedResponse(json, { 'content-type': 'application/json; charset=utf-8' }), files };
  } finally {
    await server.close();
  }
}

/** Builds a server that never listens; its routes only carry the schemas of `routes`. */
async function describedServer(routes: readonly RouteOptions[], version: string): Promise<FastifyInstance> {
  const server = fastify();
  server.setValidatorCompiler(() => () => true);
  server.setSerializerCompiler(() => (body) => JSON.stringify(body));
  await addOpenapi(server, version);
  for (const { method, url, schema = {} } of routes) server.route({ method, url, schema, handler: () => undefined });
  await server.register(swaggerUi, {
    routePrefix: PAGE,
    theme: { title: 'dawatch' },
    // Without the bar at the top, which can load other documents.
    uiConfig: { layout: 'BaseLayout', docExpansion: 'list', displayRequestDuration: true, tryItOutEnabled: true },
  });
  await server.ready();
  return server;
}

/** Returns the paths of the page's files, without index.html, which only redirects. */
async function pathsOfPage(): Promise<string[]> {
  const folder = join(dirname(createRequire(import.meta.url).resolve('@fastify/swagger-ui')), 'static');
  const files = (await readdir(folder)).filter((file) => file !== 'index.html');
  const all = ['swagger-initializer.js', ...files].map((file) => `${PAGE}/static/${file}`);
  return [PAGE, `${PAGE}/`, `${PAGE}/json`, `${PAGE}/yaml`, ...all];
}

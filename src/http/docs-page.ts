import { readdir } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import swagger from '@fastify/swagger';
import swaggerUi from '@fastify/swagger-ui';
import { fastify, type RouteOptions } from 'fastify';
import { openapiOptions, serversAt } from './openapi.ts';
import { type StoredResponse, storedResponse } from './static-files.ts';

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

const NO_COMPILERS = {
  compilersFactory: {
    buildValidator: () => (() => true) as never,
    buildSerializer: () => () => JSON.stringify,
  },
};

/** The OpenAPI document and the files of the page at /docs by path. */
export type Docs = { document: StoredResponse; files: ReadonlyMap<string, StoredResponse> };

/**
 * Renders the OpenAPI document of `routes` and the page at /docs, through a server that never
 * listens.
 */
export async function buildDocs(
  routes: readonly RouteOptions[],
  version: string,
  webhooks: object,
): Promise<Docs> {
  // Nothing is validated here, so that no schema is compiled.
  const server = fastify({ exposeHeadRoutes: false, schemaController: NO_COMPILERS });
  try {
    await server.register(swagger, openapiOptions(version, webhooks));
    for (const { method, url, schema = {} } of routes)
      server.route({ method, url, schema, handler: () => undefined });
    await server.register(swaggerUi, {
      routePrefix: PAGE,
      // The page loads its files by relative addresses: a proxy may serve it below another path.
      indexPrefix: '.',
      theme: { title: 'dawatch' },
      // Hides the top bar, which can load other documents.
      uiConfig: {
        layout: 'BaseLayout',
        docExpansion: 'list',
        displayRequestDuration: true,
        tryItOutEnabled: true,
      },
    });
    const files = new Map<string, StoredResponse>();
    for (const path of await pathsOfPage()) {
      const { statusCode, rawPayload, headers } = await server.inject(path);
      if (statusCode !== 200) throw new Error(`${path} of the page at /docs is ${statusCode}`);
      const contentType = String(headers['content-type']);
      files.set(
        path,
        storedResponse(rawPayload, {
          'content-type': contentType,
          'content-security-policy': DOCS_CSP,
        }),
      );
    }
    const json = JSON.stringify({ ...server.swagger(), servers: serversAt('.') });
    return {
      document: storedResponse(json, { 'content-type': 'application/json; charset=utf-8' }),
      files,
    };
  } finally {
    await server.close();
  }
}

/** Returns the paths of the page's files, without index.html, which only redirects. */
async function pathsOfPage(): Promise<string[]> {
  const folder = join(
    dirname(createRequire(import.meta.url).resolve('@fastify/swagger-ui')),
    'static',
  );
  const files = (await readdir(folder)).filter((file) => file !== 'index.html');
  const all = ['swagger-initializer.js', ...files].map((file) => `${PAGE}/static/${file}`);
  return [PAGE, `${PAGE}/`, `${PAGE}/json`, `${PAGE}/yaml`, ...all];
}

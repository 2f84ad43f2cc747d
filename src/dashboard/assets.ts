import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { extname, join, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { FastifyInstance } from 'fastify';
import { type Page, servePages } from '../http/methods.ts';

const PAGE = join(import.meta.dirname, 'page');

/** Browser builds of libraries, by their names below /assets/lib. The package has copies. */
export const LIBRARIES = {
  'preact.js': 'preact',
  'preact-hooks.js': 'preact/hooks',
  'htm.js': 'htm',
  'uplot.js': 'uplot/dist/uPlot.esm.js',
  'uplot.css': 'uplot/dist/uPlot.min.css',
  'swagger-ui.js': '@fastify/swagger-ui/static/swagger-ui-bundle.js',
  'swagger-ui.css': '@fastify/swagger-ui/static/swagger-ui.css',
};

export const libraryFile = (name: keyof typeof LIBRARIES): string =>
  fileURLToPath(import.meta.resolve(LIBRARIES[name]));

const TYPES: Partial<Record<string, string>> = {
  '.js': 'application/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
};

/** Serves the dashboard, and Swagger UI at /docs. */
export function registerDashboard(app: FastifyInstance): void {
  servePages(app, ['/', '/docs', '/docs/', '/assets/*'], readPages);
}

function readPages(): Map<string, Page> {
  const pages = new Map<string, Page>();
  const add = (name: string, file: string) => {
    const type = TYPES[extname(name)];
    if (type) pages.set(`/assets/${name.replaceAll(sep, '/')}`, { type, body: readFileSync(file) });
  };
  for (const name of readdirSync(PAGE, { recursive: true, encoding: 'utf8' }))
    add(name, join(PAGE, name));
  for (const name of Object.keys(LIBRARIES) as (keyof typeof LIBRARIES)[])
    if (!pages.has(`/assets/lib/${name}`)) add(`lib/${name}`, libraryFile(name));
  pages.set('/', readHtml('index.html', NO_INSERTED_HTML));
  const docs = readHtml('docs.html', []);
  return pages.set('/docs', docs).set('/docs/', docs);
}

/** Swagger UI inserts HTML, after it has removed scripts from it. */
const NO_INSERTED_HTML = ["require-trusted-types-for 'script'", "trusted-types 'none'"];

/** Limits a page to this server. The hashes of its inline scripts are allowed. */
function readHtml(name: string, directives: readonly string[]): Page {
  const body = readFileSync(join(PAGE, name));
  const hashes = Array.from(
    body.toString().matchAll(/<script(?: type="importmap")?>(.*?)<\/script>/gs),
    ([, text = '']) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`,
  );
  const policy = [
    "default-src 'none'",
    `script-src 'self' ${hashes.join(' ')}`,
    "style-src 'self'",
    "connect-src 'self'",
    "img-src 'self' data:",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    ...directives,
  ].join('; ');
  return { type: 'text/html; charset=utf-8', body, policy };
}

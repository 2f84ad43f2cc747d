import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type FastifyInstance, fastify } from 'fastify';
import { servePages } from '../http/methods.ts';

const PAGE = join(import.meta.dirname, 'page');

/** Browser builds of the libraries, by their paths in the import map of index.html. */
const LIBRARIES = {
  'preact.js': 'preact',
  'preact-hooks.js': 'preact/hooks',
  'htm.js': 'htm',
  'uplot.js': 'uplot/dist/uPlot.esm.js',
  'uplot.css': 'uplot/dist/uPlot.min.css',
};

export function registerDashboard(app: FastifyInstance): void {
  servePages(app, ['/', '/assets/*'], async () => {
    const { default: fastifyStatic } = await import('@fastify/static');
    const server = fastify();
    await server.register(fastifyStatic, {
      root: PAGE,
      prefix: '/assets/',
      allowedPath: (path) => /\.(?:js|mjs|css)$/.test(path),
    });
    for (const [name, specifier] of Object.entries(LIBRARIES)) {
      const file = fileURLToPath(import.meta.resolve(specifier));
      server.get(`/assets/lib/${name}`, (_request, reply) =>
        reply.sendFile(basename(file), dirname(file)),
      );
    }
    const html = readFileSync(join(PAGE, 'index.html'), 'utf8');
    const policy = policyOf(html);
    server.get('/', (_request, reply) =>
      reply.type('text/html; charset=utf-8').header('content-security-policy', policy).send(html),
    );
    return server;
  });
}

/** Limits pages to this server. The hashes of the inline import map and redirect are allowed. */
function policyOf(html: string): string {
  const hashes = Array.from(
    html.matchAll(/<script(?: type="importmap")?>(.*?)<\/script>/gs),
    ([, text = '']) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`,
  );
  return [
    "default-src 'none'",
    `script-src 'self' ${hashes.join(' ')}`,
    "style-src 'self'",
    "connect-src 'self'",
    "img-src 'self' data:",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join('; ');
}

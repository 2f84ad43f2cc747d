import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { FastifyInstance } from 'fastify';
import { serveFiles, storedResponse } from '../http/static-files.ts';

/** A file as served to browsers. `policy`: its Content-Security-Policy, for the page only. */
type Asset = { path: string; contentType: string; body: Buffer; policy?: string };

const PAGE = join(import.meta.dirname, 'page');
const TYPES: Record<string, string> = {
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
};

/**
 * Browser builds of the libraries. The import map of index.html maps their names to these paths.
 * uPlot is minified only as a script that sets a variable.
 */
const LIBRARIES = {
  'preact.js': 'preact',
  'preact-hooks.js': 'preact/hooks',
  'htm.js': 'htm',
  'uplot.js': 'uplot/dist/uPlot.iife.min.js',
  'uplot.css': 'uplot/dist/uPlot.min.css',
};
const EXPORTS: Record<string, string> = { 'lib/uplot.js': 'export default uPlot;' };

/** Every file that the dashboard loads: the files of page/ and its libraries. */
function dashboardAssets(): Asset[] {
  const own = readdirSync(PAGE, { recursive: true, encoding: 'utf8' })
    .filter((name) => extname(name) in TYPES)
    .map((name) => asset(name, join(PAGE, name)));
  const libraries = Object.entries(LIBRARIES).map(([name, specifier]) =>
    asset(`lib/${name}`, fileURLToPath(import.meta.resolve(specifier))),
  );
  return [index(), ...own, ...libraries];
}

/** Serves the dashboard at /, from memory. */
export function registerDashboard(app: FastifyInstance): void {
  const files = new Map(
    dashboardAssets().map(({ path, body, contentType, policy }) => {
      const headers = {
        'content-type': contentType,
        ...(policy !== undefined && { 'content-security-policy': policy }),
      };
      return [path, storedResponse(body, headers)];
    }),
  );
  serveFiles(app, ['/', '/assets/*'], () => files);
}

function index(): Asset {
  const body = readFileSync(join(PAGE, 'index.html'));
  return {
    path: '/',
    contentType: 'text/html; charset=utf-8',
    body,
    policy: policyOf(body.toString()),
  };
}

function asset(name: string, file: string): Asset {
  return {
    path: `/assets/${name}`,
    contentType: TYPES[extname(name)] ?? '',
    body: Buffer.concat([readFileSync(file), Buffer.from(EXPORTS[name] ?? '')]),
  };
}

/**
 * Scripts, styles and requests are limited to this server. The import map must be inline, so the
 * policy allows it by its hash.
 */
function policyOf(html: string): string {
  const importMap = /<script type="importmap">(.*?)<\/script>/s.exec(html)?.[1] ?? '';
  const hash = createHash('sha256').update(importMap).digest('base64');
  return [
    "default-src 'none'",
    `script-src 'self' 'sha256-${hash}'`,
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

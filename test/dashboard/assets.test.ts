import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { call, type HttpResponse, problemOf } from '../support/app/http-calls.ts';
import { useApp } from '../support/app/running-app.ts';

const app = useApp();
const get = (path: string, headers = {}): Promise<HttpResponse> =>
  call(app.url, path, { headers: { 'x-api-key': [], ...headers } });

/** Returns all files that the page loads, directly or indirectly. */
async function loadAllFiles(): Promise<Map<string, HttpResponse>> {
  const page = await get('/');
  const map = JSON.parse(
    /<script type="importmap">(.*?)<\/script>/s.exec(page.text)?.[1] ?? '',
  ) as {
    imports: Record<string, string>;
  };
  const loaded = new Map<string, HttpResponse>();
  const load = async (address: string, from: string): Promise<void> => {
    const { pathname, origin } = new URL(
      map.imports[address] ?? address,
      `${app.url}${map.imports[address] ? '/' : from}`,
    );
    expect(origin, address).toBe(app.url);
    if (loaded.has(pathname)) return;
    const response = await get(pathname);
    // Imports of types are comments.
    const text = response.text.replaceAll(/^\/\*\* @import .*/gm, '');
    loaded.set(pathname, { ...response, text });
    const imports = text.matchAll(/(?:[}\w] ?from ?|^import )["']([\w./-]+)["']/gm);
    for (const [, next = ''] of imports) await load(next, pathname);
  };
  for (const [, address = ''] of page.text.matchAll(
    /<(?:script|link)[^>]*?(?:src|href)="((?!data:)[^"]*)"/g,
  ))
    await load(address, '/');
  return loaded;
}

describe('the files of the dashboard', () => {
  it('are public and loaded from the server only', async () => {
    const loaded = await loadAllFiles();
    expect(loaded.size).toBeGreaterThan(30);
    for (const [path, response] of loaded) {
      expect(response.status, path).toBe(200);
      expect(response.headers['content-type'], path).toBe(
        path.endsWith('.css') ? 'text/css; charset=utf-8' : 'application/javascript; charset=utf-8',
      );
      expect(response.text, path).not.toMatch(/url\(|@import/);
    }
  });

  it('are below 500 kB, and never stored, so that an upgrade is visible at once', async () => {
    let size = 0;
    for (const path of ['/', ...(await loadAllFiles()).keys()]) {
      const { headers } = await get(path);
      expect([headers['cache-control'], headers.etag], path).toEqual(['no-store', undefined]);
      size += Number(headers['content-length']);
    }
    expect(size).toBeLessThan(500_000);
  });

  it('are exactly the listed ones', async () => {
    for (const path of [
      '/assets',
      '/assets/',
      '/assets/none.js',
      '/assets/tsconfig.json',
      '/assets/index.html',
      '/assets/../package.json',
      '/assets/%2e%2e/assets.ts',
      '/assets/..%2fassets.ts',
      '/assets/lib/..%5c..%5cmain.js',
      '//assets/main.js',
      '/assets/main.js%00',
      '/index.html',
    ])
      problemOf(await get(path));
  });
});

describe('the page', () => {
  it('may run, load and request only what this server provides', async () => {
    const { headers, text } = await get('/');
    const policy = new Map(
      String(headers['content-security-policy'])
        .split('; ')
        .map((directive) => [directive.split(' ', 1)[0], directive.split(' ').slice(1)]),
    );
    const inline = [...text.matchAll(/<script(?![^>]* src=)[^>]*>(.*?)<\/script>/gs)];
    const hashes = inline.map(([, script = '']) =>
      createHash('sha256').update(script).digest('base64'),
    );
    expect(policy.get('script-src')).toEqual([
      "'self'",
      ...hashes.map((hash) => `'sha256-${hash}'`),
    ]);
    for (const name of ['default-src', 'base-uri', 'form-action', 'frame-ancestors'])
      expect(policy.get(name), name).toEqual(["'none'"]);
    for (const name of ['style-src', 'connect-src'])
      expect(policy.get(name), name).toEqual(["'self'"]);
    expect(policy.get('img-src')).toEqual(["'self'", 'data:']);
    expect(policy.get('require-trusted-types-for')).toEqual(["'script'"]);
    expect(policy.get('trusted-types')).toEqual(["'none'"]);
    expect([...policy.values()].flat().join()).not.toMatch(/unsafe|https?:|\*/);
  });

  it('supports no other method', async () => {
    for (const method of ['POST', 'PUT', 'DELETE'])
      expect((await call(app.url, '/', { method })).status, method).toBe(404);
    expect(await call(app.url, '/', { method: 'HEAD' })).toMatchObject({ status: 200, text: '' });
  });
});

describe('the page at /docs', () => {
  it.each(['/docs', '/docs/'])(
    'is open as %s, and loads only files of the server',
    async (path) => {
      const page = await get(path);
      expect(page.status).toBe(200);
      expect(page.headers['content-type']).toMatch(/^text\/html/);
      expect(page.text).toContain('<title>dawatch</title>');
      // A browser adds the last slash.
      const loaded = [...page.text.matchAll(/\s(?:src|href)="([^"]*)"/g)].map(
        ([, address = '']) => new URL(address, `${app.url}/docs/`),
      );
      expect(loaded).toHaveLength(3);
      for (const { href, origin, pathname } of loaded) {
        expect(origin, href).toBe(new URL(app.url).origin);
        expect((await get(pathname)).status, pathname).toBe(200);
      }
    },
  );

  it('shows the served document without an external validator', async () => {
    const { text } = await get('/assets/docs.js');
    expect(text).toContain("url: '../openapi.json'");
    expect(text).toContain('validatorUrl: null');
    const { servers } = JSON.parse((await get('/openapi.json')).text);
    // The address of the server, relative to that of the document.
    expect(servers).toMatchObject([{ url: '.' }]);
  });

  it.each(['/docs/package.json', '/docs/index.html', '/docs/x'])(
    'has nothing else: %s',
    async (path) => {
      const response = await get(path);
      expect(response.status).toBe(404);
      problemOf(response);
    },
  );
});

import { describe, expect, it } from 'vitest';
import { call, type HttpResponse, problemOf } from '../support/app/http-calls.ts';
import { useApp } from '../support/app/running-app.ts';

const app = useApp();
const get = (path: string): Promise<HttpResponse> =>
  call(app.url, path, { headers: { 'x-api-key': [] } });

/** Returns the addresses that a page or a style sheet loads. */
function loadedBy(text: string): string[] {
  const marks = text.matchAll(
    /(?:\bsrc|<link[^>]*\bhref)="([^"]*)"|url\(["']?([^"')]+)|@import\s+["']([^"']+)/g,
  );
  return [...marks].map(([, src, url, imported]) => src ?? url ?? imported ?? '');
}

describe('the page at /docs', () => {
  it.each(['/docs', '/docs/'])(
    'is open as %s, and loads only files of the server',
    async (path) => {
      const page = await get(path);
      expect(page.status).toBe(200);
      expect(page.headers['content-type']).toMatch(/^text\/html/);
      expect(page.text).toContain('<title>dawatch</title>');
      const loaded = loadedBy(page.text).map((address) => new URL(address, `${app.url}${path}`));
      expect(loaded.length).toBeGreaterThan(4);
      for (const { href, origin, pathname } of loaded) {
        expect(origin, href).toBe(new URL(app.url).origin);
        expect((await get(pathname)).status, pathname).toBe(200);
      }
    },
  );

  it('has no script or style of its own, so that its policy needs no exception', async () => {
    const { text, headers } = await get('/docs');
    expect(text).not.toMatch(/<style|\sstyle=|\son[a-z]+=|<script(?![^>]*\ssrc=)/i);
    const policy = String(headers['content-security-policy']).split('; ');
    expect(policy).toContain("default-src 'none'");
    expect(policy).toContain("script-src 'self'");
    expect(policy.join()).not.toMatch(/unsafe|https?:|\*/);
  });

  it('shows the served document without an external validator', async () => {
    const { servers, ...document } = JSON.parse((await get('/docs/json')).text);
    expect(JSON.parse((await get('/openapi.json')).text)).toMatchObject(document);
    // The address of the server, relative to that of the document.
    expect(servers).toMatchObject([{ url: '..' }]);
    const { text } = await get('/docs/static/swagger-initializer.js');
    expect(text).toContain('validatorUrl: null');
    expect(text).not.toMatch(/https?:\/\/(?!stackoverflow)/);
  });

  it.each([
    '/docs/static/../../package.json',
    '/docs/static/%2e%2e%2f%2e%2e%2fpackage.json',
    '/docs/static/none.js',
    '/docs/x',
  ])('has nothing else: %s', async (path) => {
    const response = await get(path);
    expect([403, 404]).toContain(response.status);
    problemOf(response);
  });
});

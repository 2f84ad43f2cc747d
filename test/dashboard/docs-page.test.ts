import { describe, expect, it } from 'vitest';
import { call, type HttpResponse, problemOf } from '../support/app/http-calls.ts';
import { useApp } from '../support/app/running-app.ts';

const app = useApp();
const get = (path: string): Promise<HttpResponse> =>
  call(app.url, path, { headers: { 'x-api-key': [] } });

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

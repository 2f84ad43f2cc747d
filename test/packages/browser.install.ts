import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { extname, join } from 'node:path';
import type { Browser } from 'playwright-core';
import { build } from 'vite';
import { afterAll, beforeAll, describe, expect, inject, it, onTestFinished } from 'vitest';
import { type Sandbox, startSandbox } from '../../src/sandbox/server.ts';
import { SKIPPED } from '../support/app/browser.ts';
import { openChromium } from '../support/app/chromium.ts';
import { CRASH_API_KEY, prepareServer } from '../support/processes/killable-server.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { removedAfterTests } from './support/folders.ts';
import { installInto } from './support/installed.ts';
import { CLIENT_NODE } from './support/pack.ts';

const { client: tarball, npmCli, nodes } = inject('packages');
const ENTRY = 'node_modules/@dawatch/client/dist/esm/index.js';
const folder = removedAfterTests();

/**
 * Tracks a submission, waits until it is final, then reads its events as they occur. Shows the
 * result, or the error.
 */
const PROGRAM = `
import { ApiError, DawatchClient } from '@dawatch/client';
const { url, apiKey, id, next } = JSON.parse(decodeURIComponent(location.hash.slice(1)));
const client = new DawatchClient({ url, apiKey });
const show = (value) => { globalThis.shown = JSON.stringify(value); };
try {
  const tracked = await client.track([id], { metadata: { page: true } });
  const final = await client.waitUntilFinal(id);
  const done = new AbortController();
  const types = [];
  const events = client.events({ after: 0, metadata: { page: true }, signal: done.signal });
  for await (const event of events) {
    types.push(event.type);
    // Now the feed has sent what was stored. The events of the next submission arrive live.
    if (event.type === 'submission.finalized' && event.data.submission.submission_id === id)
      await client.track([next], { metadata: { page: true } });
    if (event.type === 'submission.finalized' && event.data.submission.submission_id === next) done.abort();
  }
  show({ accepted: tracked.accepted, status: final.status, types });
} catch (error) {
  show({ name: error.name, status: error instanceof ApiError ? error.status : null, message: error.message });
}
`;
/** Not every browser has it. */
const WITHOUT_ITERATION = '<script>delete ReadableStream.prototype[Symbol.asyncIterator]</script>';
const PAGES: Record<string, string> = {
  'plain.html': `<script type="importmap">{ "imports": { "@dawatch/client": "/${ENTRY}", "eventsource-parser": "/node_modules/eventsource-parser/dist/index.js" } }</script><body></body>
    ${WITHOUT_ITERATION}<script type="module" src="/program.js"></script>`,
  'index.html': `<body></body>${WITHOUT_ITERATION}<script type="module" src="/program.js"></script>`,
};

describe.skipIf(SKIPPED)('the installed client in a browser', () => {
  let browser: Browser;
  let sandbox: Sandbox;
  /** The origin that the server allows, and another one with the same pages. */
  const origins: string[] = [];

  beforeAll(async () => {
    installInto(folder, { tarball, npmCli, nodePath: nodes[CLIENT_NODE] as string });
    for (const [name, html] of Object.entries(PAGES)) writeFileSync(join(folder, name), html);
    writeFileSync(join(folder, 'program.js'), PROGRAM);
    await build({ root: folder, logLevel: 'warn', build: { outDir: 'bundled' } });
    for (let n = 0; n < 2; n += 1) origins.push(await serveFolder());
    sandbox = await startSandbox({ options: { speed: 40 } });
    browser = await openChromium();
  });
  afterAll(async () => {
    await Promise.all([browser?.close(), sandbox?.close()]);
  });

  /** Opens a page and returns what it shows. */
  async function resultOf(origin: string | undefined, path: string): Promise<unknown> {
    const server = await prepareServer(tempFolder(), {
      server: { cors_origins: [origins[0]] },
      upstreams: { default: { url: sandbox.url, api_key: 'sandbox-key' } },
    });
    server.start();
    await server.listening();
    const [id, next] = ['some', 'more'].map((data) => sandbox.model.submit(data, Date.now()));
    const page = await browser.newPage();
    onTestFinished(() => page.close());
    const input = { url: server.url, apiKey: CRASH_API_KEY, id, next };
    await page.goto(`${origin}${path}#${encodeURIComponent(JSON.stringify(input))}`);
    const shown = await page.waitForFunction('globalThis.shown', undefined, { timeout: 120_000 });
    return JSON.parse(String(await shown.jsonValue()));
  }

  it.each([
    ['plain ES modules and an import map', '/plain.html'],
    ['one bundled file', '/bundled/index.html'],
  ])('tracks, waits and reads live events as %s', async (_name, path) => {
    const result = (await resultOf(origins[0], path)) as {
      accepted: number;
      status: string;
      types: string[];
    };
    expect(result).toMatchObject({ accepted: 1, status: 'finalized' });
    expect(result.types.filter((type) => type === 'submission.finalized')).toHaveLength(2);
  });

  it('is refused on pages of an origin that the settings do not name', async () => {
    expect(await resultOf(origins[1], '/plain.html')).toMatchObject({ name: 'ConnectionError' });
  });
});

const TYPES: Record<string, string> = { '.html': 'text/html', '.js': 'text/javascript' };

/** Serves the folder like any web server, until the tests end. Returns its origin. */
async function serveFolder(): Promise<string> {
  const files = createServer((request, response) => {
    const { pathname } = new URL(request.url ?? '/', 'http://localhost');
    const path = [join(folder, pathname), join(folder, 'bundled', pathname)].find((file) =>
      statSync(file, { throwIfNoEntry: false })?.isFile(),
    );
    if (path === undefined) return void response.writeHead(404).end();
    response
      .writeHead(200, { 'content-type': TYPES[extname(path)] ?? 'text/plain' })
      .end(readFileSync(path));
  }).listen(0, '127.0.0.1');
  afterAll(() => void files.close());
  await new Promise((resolve) => files.once('listening', resolve));
  return `http://127.0.0.1:${(files.address() as AddressInfo).port}`;
}

import { mkdtempSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { call } from '../support/app/http-calls.ts';
import { ADMIN_TOKEN } from '../support/app/lookups.ts';
import { openApp } from '../support/app/running-app.ts';
import { isRedisMissing, type RedisServer, startRedis } from '../support/redis/redis-server.ts';
import { tempFolder } from '../support/temp-folder.ts';

/** A server that waited for its shutdown limit would exceed the time limit of the test. */
const SHUTDOWN_S = 3_600;
const RESPONSE_TIMEOUT_MS = 10_000;

const CREDENTIALS = { admin: `x-api-key: ${ADMIN_TOKEN}\r\n`, none: '' };

/**
 * Returns the whole response to a request with exactly this target. Throws if there is no response.
 */
function send(url: string, line: string, header = ''): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(Number(new URL(url).port), '127.0.0.1');
    const timer = setTimeout(() => {
      socket.destroy();
      reject(new Error(`${line.slice(0, 100)} was not answered`));
    }, RESPONSE_TIMEOUT_MS);
    let received = '';
    socket.setEncoding('latin1').on('data', (part) => {
      received += part;
    });
    socket
      .on('error', () => undefined)
      .on('close', () => {
        clearTimeout(timer);
        resolve(received);
      });
    socket.write(`${line} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n${header}\r\n`);
  });
}

const statusOf = (received: string) => Number(/^HTTP\/1\.1 (\d+) /.exec(received)?.[1]);

const PREFIXES = ['/docs', '/assets', '/v1', '/v1/submissions', '/users', ''];
const LONG = 'x'.repeat(4_000);
/** Suffixes that some servers or proxies interpret as another path. */
const SUFFIXES = [
  '/..',
  '/../livez',
  '/./livez',
  '/.',
  '/../../livez',
  '/%2e%2e/livez',
  '/%2E%2E/%2e%2e/livez',
  '/%2e%2e%2flivez',
  '/..%2flivez',
  '/..%5clivez',
  '/..\\livez',
  '\\..\\livez',
  '\\',
  '//',
  '//x',
  '///livez',
  '/static/../../livez',
  '/static//swagger-ui.css',
  '/static%2fswagger-ui.css',
  '/%73tatic/swagger-ui.css',
  '/json/',
  '/json%00',
  '/%00',
  '/%',
  '/%zz',
  '/%c0%ae%c0%ae/livez',
  '/..;/livez',
  ';x',
  '/?/../livez',
  '/#/../livez',
  `/${LONG}`,
  `/${'a/'.repeat(2_000)}`,
  `/${'../'.repeat(1_000)}livez`,
];
/** Complete targets. */
const TARGETS = [
  '*',
  '//docs',
  '//docs/',
  '///docs/../livez',
  '//evil.example/docs/../livez',
  'http://evil.example',
  'http://evil.example/',
  'http://evil.example/docs/../livez',
  'http://evil.example/docs/%2e%2e/livez',
  'http://evil.example//docs',
  'http://evil.example\\docs\\..\\livez',
  'https://evil.example/docs/json/../../livez',
  'ftp://evil.example/docs',
  'docs',
  '?docs',
  '/?/docs/../livez',
];

describe.skipIf(isRedisMissing())('a request target that could be read in two ways', () => {
  let redis: RedisServer;
  let url = '';
  let end = async () => {};
  beforeAll(async () => {
    redis = await startRedis();
    const folder = mkdtempSync(join(tmpdir(), 'dawatch-targets-'));
    const app = await openApp({
      database: join(folder, 'ledger.db'),
      adminToken: ADMIN_TOKEN,
      redisUrl: redis.url,
    });
    url = app.url;
    end = async () => {
      await app.close();
      await redis.close();
      rmSync(folder, { recursive: true });
    };
  });
  afterAll(() => end());

  it.each(PREFIXES)('leads to no other route, below "%s"', async (prefix) => {
    for (const [name, header] of Object.entries(CREDENTIALS))
      for (const method of ['GET', 'HEAD', 'POST', 'OPTIONS'])
        await Promise.all(
          SUFFIXES.map(async (suffix) => {
            const line = `${method} ${prefix}${suffix}`;
            const received = await send(url, line, header);
            const what = `${line.slice(0, 60)} with ${name}`;
            expect(statusOf(received), what).toSatisfy((status) => status >= 200 && status < 500);
            expect(received, what).not.toContain('{"status":"ok"}');
          }),
        );
  });

  it.each(TARGETS)('gets a response: %s', async (target) => {
    for (const header of Object.values(CREDENTIALS))
      for (const method of ['GET', 'HEAD', 'POST', 'OPTIONS']) {
        const received = await send(url, `${method} ${target}`, header);
        expect(statusOf(received), method).toSatisfy((status) => status >= 200 && status < 500);
        expect(received, method).not.toContain('{"status":"ok"}');
      }
  });

  it.each([
    '/docs/../livez',
    '/docs/%2e%2e/livez',
    '/docs//',
    '/docs/..',
    '/docs\\',
    '/docs/static/../json',
    '/docs/%6ason',
  ])('is not found below /docs: %s', async (path) => {
    expect(statusOf(await send(url, `GET ${path}`))).toBe(404);
  });

  it.each([
    '/assets/..',
    '/assets/../',
    '/assets/%2e%2e/',
    '/assets/./main.js',
    '/assets//main.js',
    '/assets/lib/../main.js',
  ])('is no file of the dashboard: %s', async (path) => {
    expect(statusOf(await send(url, `GET ${path}`))).toBe(404);
  });

  it('still leads to the page where a proxy sends the whole address', async () => {
    expect(statusOf(await send(url, 'GET http://evil.example/docs/'))).toBe(200);
    expect(statusOf(await send(url, 'GET http://evil.example/docs/?x'))).toBe(200);
  });
});

it('closing the server does not wait for a connection that sent such a target', async () => {
  const app = await openApp({ database: join(tempFolder(), 'ledger.db'), shutdownS: SHUTDOWN_S });
  const socket = connect(Number(new URL(app.url).port), '127.0.0.1');
  socket.on('error', () => undefined);
  for (const path of ['/docs/../livez', '/docs/%2e%2e/livez'])
    socket.write(`GET ${path} HTTP/1.1\r\nhost: x\r\n\r\n`);
  // One event loop reads requests in the order in which they are sent, even on two connections.
  await new Promise((resolve) => socket.once('connect', resolve));
  await call(app.url, '/livez');
  await app.close();
  socket.destroy();
});

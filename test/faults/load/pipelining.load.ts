import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import {
  CRASH_API_KEY,
  type KillableServer,
  prepareServer,
  sleep,
} from '../../support/processes/killable-server.ts';
import { tempFolder } from '../../support/temp-folder.ts';
import { quantile } from '../support/flood.ts';

const LOADED_MS = 5_000;
const PROBE_EVERY_MS = 10;
/** The slowest response of /livez. */
const MAX_MS = 1_000;
const MAX_MIB = 400;
const KEY = `x-api-key: ${CRASH_API_KEY}\r\n`;

const get = (path: string, header = '') => `GET ${path} HTTP/1.1\r\nhost: x\r\n${header}\r\n`;

/**
 * Requests without a credential, sent repeatedly without reading a response: `count` at once over
 * each connection.
 */
const LOADS: { name: string; connections: number; count: number; request: string }[] = [
  {
    name: 'a large file of /docs',
    connections: 8,
    count: 200,
    request: get('/docs/static/swagger-ui-bundle.js'),
  },
  { name: '/openapi.json', connections: 8, count: 200, request: get('/openapi.json') },
  { name: '/docs/json', connections: 8, count: 200, request: get('/docs/json') },
  { name: '/events.schema.json', connections: 8, count: 200, request: get('/events.schema.json') },
  { name: '/metrics', connections: 4, count: 1_000, request: get('/metrics') },
  { name: '/metrics, 16 at a time', connections: 64, count: 16, request: get('/metrics') },
  { name: 'unknown paths', connections: 8, count: 1_000, request: get('/nowhere') },
  {
    name: 'requests without a credential',
    connections: 8,
    count: 1_000,
    request: get('/v1/submissions'),
  },
  {
    name: 'the largest list',
    connections: 4,
    count: 16,
    request: get('/v1/submissions?limit=1000', KEY),
  },
];

describe('during requests that are sent faster than their responses are read', () => {
  test.each(LOADS)(
    '/livez stays quick, and memory is released: $name',
    async ({ connections, count, request }) => {
      const server = await startServer();
      const idleMs = quantile(await probe(server, 1_000), 0.5);
      const before = server.residentMiB() ?? 0;
      let isOver = false;
      const sockets = new Set<Socket>();
      const client = async () => {
        while (!isOver) {
          const socket = connect(Number(new URL(server.url).port), '127.0.0.1').pause();
          sockets.add(socket);
          socket.on('error', () => undefined).write(request.repeat(count));
          // The client never reads, and connects again.
          await Promise.race([once(socket, 'close'), sleep(250)]);
          if (!isOver) socket.destroy();
          sockets.delete(socket);
        }
      };
      const clients = Array.from({ length: connections }, client);
      const loaded = await probe(server, LOADED_MS);
      const peak = server.residentMiB() ?? 0;
      isOver = true;
      await Promise.all(clients);
      for (const socket of sockets) socket.destroy();
      // The allocator returns freed memory gradually.
      await probe(server, 2_000);
      const after = server.residentMiB() ?? 0;
      const times = quantile(loaded, 0.95) / idleMs;
      const slowest = Math.max(...loaded) / idleMs;
      console.log(
        `/livez ${times.toFixed(0)} times slower than ${idleMs.toFixed(2)} ms, once ${slowest.toFixed(0)} times; ${before} MiB before, ${peak} during, ${after} after`,
      );
      expect(Math.max(...loaded)).toBeLessThan(MAX_MS);
      expect(Math.max(peak, after)).toBeLessThan(MAX_MIB);
    },
  );
});

/** Creates a list whose largest page has the maximum size. */
async function startServer(): Promise<KillableServer> {
  const server = await prepareServer(tempFolder(), {
    upstreams: { default: { url: 'http://127.0.0.1:1' } },
  });
  server.start();
  onTestFinished(async () => void (await server.stop()));
  await server.listening();
  const submission_ids = Array.from({ length: 1_000 }, (_, index) => `large-${index}`);
  const body = JSON.stringify({ submission_ids, metadata: { note: 'x'.repeat(4_000) } });
  const headers = { 'x-api-key': CRASH_API_KEY, 'content-type': 'application/json' };
  expect(
    (await fetch(`${server.url}/v1/submissions`, { method: 'POST', headers, body })).status,
  ).toBe(202);
  // Objects created by the first request are not part of the measurement.
  for (const path of [
    '/docs',
    '/openapi.json',
    '/events.schema.json',
    '/metrics',
    '/v1/submissions?limit=1000',
  ])
    await (await fetch(`${server.url}${path}`, { headers })).arrayBuffer();
  return server;
}

/** Measures the response time of /livez repeatedly. */
async function probe(server: KillableServer, forMs: number): Promise<number[]> {
  const times: number[] = [];
  const until = performance.now() + forMs;
  while (performance.now() < until) {
    const from = performance.now();
    expect((await fetch(`${server.url}/livez`)).status).toBe(200);
    times.push(performance.now() - from);
    await sleep(PROBE_EVERY_MS);
  }
  return times;
}

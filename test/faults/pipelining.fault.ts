import { once } from 'node:events';
import { connect } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import {
  CRASH_API_KEY,
  type KillableServer,
  prepareServer,
  sleep,
} from '../support/processes/killable-server.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { watch } from './support/probe.ts';

const LOADED_MS = 1_000;
/** Responses of /livez during a load, however long that takes. */
const PROBES = 20;
const MAX_MIB = 400;

const get = (path: string, header = '') => `GET ${path} HTTP/1.1\r\nhost: x\r\n${header}\r\n`;

/** Requests, `count` at once over each connection, whose responses the client never reads. */
const LOADS = [
  {
    connections: 4,
    count: 16,
    request: get('/v1/submissions?limit=1000', `x-api-key: ${CRASH_API_KEY}\r\n`),
  },
  { connections: 8, count: 200, request: get('/assets/lib/swagger-ui.js') },
  { connections: 8, count: 200, request: get('/openapi.json') },
  { connections: 64, count: 16, request: get('/metrics') },
  { connections: 8, count: 1_000, request: get('/v1/submissions') },
];

test('/livez responds, and memory is limited, during requests that are sent faster than their responses are read', async () => {
  const server = await startServer();
  for (const { connections, count, request } of LOADS) {
    const seen = watch(server, { paths: ['/livez'], everyMs: 10 });
    const until = performance.now() + LOADED_MS;
    const isOver = () => performance.now() > until && seen.count() >= PROBES;
    const client = async () => {
      while (!isOver()) {
        const socket = connect(Number(new URL(server.url).port), '127.0.0.1').pause();
        socket.on('error', () => undefined).write(request.repeat(count));
        // The client connects again.
        await Promise.race([once(socket, 'close'), sleep(250)]);
        socket.destroy();
      }
    };
    await Promise.all(Array.from({ length: connections }, client));
    const { refused, slowestMs, peakMiB } = await seen.end();
    const [what = ''] = request.split(' HTTP');
    console.log(`${what}: /livez within ${slowestMs.toFixed(0)} ms, ${peakMiB.toFixed(0)} MiB`);
    expect(refused, what).toEqual([]);
    expect(peakMiB, what).toBeLessThan(MAX_MIB);
  }
});

/** Creates a list whose largest page has the maximum size. */
async function startServer(): Promise<KillableServer> {
  const server = await prepareServer(tempFolder(), {
    upstreams: { default: { url: 'http://127.0.0.1:1' } },
  });
  server.start();
  onTestFinished(async () => void (await server.stop()));
  await server.listening();
  const ids = Array.from({ length: 1_000 }, (_, index) => `large-${index}`);
  await server.client.track(ids, { metadata: { note: 'x'.repeat(4_000) } });
  return server;
}

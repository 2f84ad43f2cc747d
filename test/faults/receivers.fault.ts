import { gzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { DawatchClient } from '../../src/client/index.ts';
import { CRASH_ADMIN_TOKEN } from '../support/processes/killable-server.ts';
import { createWebhook, eventIdsOf } from '../support/servers/deliveries.ts';
import { drip, openReceiver, type ScriptedResponse } from '../support/servers/receiver.ts';
import { until } from '../support/until.ts';
import { watch } from './support/probe.ts';
import { prepareWorld } from './support/world.ts';

const SUBMISSIONS = 100;
const MAX_MIB = 400;
const BOMB = gzipSync(Buffer.alloc(20_000_000));
const CHUNK = 'x'.repeat(65_536);

const HOSTILE: Record<string, ScriptedResponse> = {
  hangs: () => undefined,
  drips: ({ socket }) => drip(socket, 'HTTP/1.1 200 OK\r\nx-drip: '),
  resets: ({ socket }) => socket.resetAndDestroy(),
  disconnects: ({ socket }) => socket.destroy(),
  'does not speak HTTP': ({ socket }) => socket.end('220 mail ESMTP\r\n'),
  'fails with 500': { status: 500, body: 'fault' },
  'is gone': { status: 410 },
  'redirects inwards': { status: 307, headers: { location: 'http://127.0.0.2:1/admin' } },
  'requests a pause': { status: 429, headers: { 'retry-after': '90' } },
  'responds with 100 MB': ({ response, socket }) => {
    response.writeHead(200);
    let sent = 0;
    const more = () => {
      while (sent < 1e8 && !socket.destroyed && response.write(CHUNK)) sent += CHUNK.length;
    };
    response.on('drain', more);
    more();
  },
  'responds with a gzip bomb': { headers: { 'content-encoding': 'gzip' }, body: BOMB },
};

test('hostile receivers delay no event to another one, and take no memory', async () => {
  const world = await prepareWorld('receivers', { settings: { log: { level: 'warn' } } });
  const { server, receiver } = world;
  await world.start();
  const hostile = await Promise.all(Object.values(HOSTILE).map((script) => openReceiver(script)));
  for (const { url } of hostile) await createWebhook(server.url, `${url}/hook`);
  const seen = watch(server);
  const ids = await world.track(SUBMISSIONS);
  await world.untilFinal(ids);
  const missing = () => eventIdsOf(server.file).filter((id) => !receiver.bodies.has(id));
  // If each event waited for the time-out of the one before it, they would take half an hour.
  await until(() => missing().length === 0);
  for (const [index, { requests }] of hostile.entries())
    expect(requests.length, Object.keys(HOSTILE)[index]).toBeGreaterThan(0);
  const { refused, peakMiB } = await seen.end();
  console.log(`${receiver.bodies.size} events, at most ${peakMiB.toFixed(0)} MiB`);
  expect(refused).toEqual([]);
  expect(peakMiB).toBeLessThan(MAX_MIB);

  const { webhooks } = new DawatchClient({ url: server.url, token: CRASH_ADMIN_TOKEN });
  for (const { id, url } of (await webhooks.list()).webhooks)
    if (hostile.some((one) => url?.startsWith(one.url))) await webhooks.delete(id);
  await world.expectSurvived();
});

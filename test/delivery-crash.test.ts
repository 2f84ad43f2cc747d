import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { uniformInt } from 'pure-rand/distribution/uniformInt';
import { xoroshiro128plus } from 'pure-rand/generator/xoroshiro128plus';
import { expect, onTestFinished, test } from 'vitest';
import type { DawatchClient } from '../src/client/client.ts';
import { verifyWebhook } from '../src/client/index.ts';
import { startSandbox } from '../src/sandbox/server.ts';
import { auditLedger } from './support/audit.ts';
import { prepareServer, sleep, trackForSure } from './support/killable-server.ts';
import { allTold, createWebhook, eventIdsOf } from './support/told.ts';

const KILLS = 50;
const BATCH = 10;

test('kill -9 during delivery, fifty times: every event arrives, none is skipped, repeats carry the same id and body', {
  timeout: 170_000,
}, async () => {
  const seed = Number(process.env.TEST_SEED ?? Date.now() % 2 ** 31);
  console.log(`delivery crash test: TEST_SEED=${seed}`);
  const random = xoroshiro128plus(seed);
  const folder = mkdtempSync(join(tmpdir(), 'dawatch-delivery-crash-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const sandbox = await startSandbox({ options: { seed, speed: 100, errorRate: 0.2 } });
  onTestFinished(() => sandbox.close());
  const receiver = await openRecorder(() => uniformInt(random, 0, 40));
  const server = await prepareServer(folder, {
    upstreams: {
      default: { url: sandbox.url, api_key: 'sandbox-key', budget: { requests: 100, per_s: 0.02, concurrency: 64 } },
    },
    pacing: { min_interval_s: 0.05, max_interval_s: 0.3 },
    webhooks: { allow: ['127.0.0.0/8'], allow_http: true },
    alerts: { check_s: 0.05 },
  });
  server.start();
  await server.listening();
  receiver.secret = await createWebhook(server.url, receiver.url);

  const acknowledged = new Set<string>();
  const killing = new AbortController();
  const tracking = trackUntil(server.client, killing.signal, acknowledged, () =>
    sandbox.model.submit('data', Date.now()),
  );
  let interrupted = 0;
  for (let kill = 0; kill < KILLS; kill++) {
    await server.listening();
    await receiver.isBusy();
    await sleep(uniformInt(random, 0, 40));
    interrupted += receiver.underWay() > 0 ? 1 : 0;
    await server.kill();
    server.start();
  }
  killing.abort();
  await tracking;
  await server.listening();
  await allTold(server.file, acknowledged.size);
  await server.kill();

  console.log(`${interrupted} of ${KILLS} kills hit a delivery under way, ${receiver.bodies.size} events`);
  // Otherwise the kills hit nothing that was under way.
  expect(interrupted).toBeGreaterThan(KILLS / 4);
  auditLedger(server.file, acknowledged);
  expect(receiver.invalid).toEqual([]);
  const told = eventIdsOf(server.file);
  expect(told.length).toBeGreaterThan(acknowledged.size - 1);
  const missing = told.filter((id) => !receiver.bodies.has(id));
  expect(missing).toEqual([]);
  expect([...receiver.bodies.keys()].filter((id) => !told.includes(id))).toEqual([]);
  expect([...receiver.bodies.values()].filter((bodies) => bodies.size !== 1)).toEqual([]);
});

/** A receiver that takes its time, refuses one in twenty events once, and remembers what it acknowledged. */
async function openRecorder(delayMs: () => number) {
  const refused = new Set<string>();
  const recorder = {
    url: '',
    secret: '',
    /** By id, every body that was acknowledged. */
    bodies: new Map<string, Set<string>>(),
    invalid: [] as unknown[],
    underWay: () => open,
    /** Something is under way, or nothing came for a while. */
    async isBusy(): Promise<void> {
      for (let waitedMs = 0; open === 0 && waitedMs < 400; waitedMs += 5) await sleep(5);
    },
  };
  let open = 0;
  let count = 0;
  const server = createServer(async (request, response) => {
    open += 1;
    response.once('close', () => {
      open -= 1;
    });
    const body = await text(request).catch(() => undefined);
    if (body === undefined) return;
    try {
      verifyWebhook({ payload: body, headers: request.headers, secret: recorder.secret });
    } catch (error) {
      recorder.invalid.push(error);
    }
    const id = String(request.headers['webhook-id']);
    await sleep(delayMs());
    if (++count % 20 === 0 && !refused.has(id)) {
      refused.add(id);
      response.writeHead(500).end();
      return;
    }
    recorder.bodies.set(id, (recorder.bodies.get(id) ?? new Set()).add(body));
    response.writeHead(204).end();
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  recorder.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`;
  return recorder;
}

async function trackUntil(
  client: DawatchClient,
  signal: AbortSignal,
  acknowledged: Set<string>,
  submit: () => string,
): Promise<void> {
  while (!signal.aborted) {
    const batch = Array.from({ length: BATCH }, submit);
    await trackForSure(client, batch);
    for (const id of batch) acknowledged.add(id);
    await sleep(50);
  }
}

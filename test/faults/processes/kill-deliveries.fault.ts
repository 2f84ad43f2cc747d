import { expect, onTestFinished, test } from 'vitest';
import type { DawatchClient } from '../../../src/client/index.ts';
import { startSandbox } from '../../../src/sandbox/server.ts';
import {
  prepareServer,
  sleep,
  trackUntilAcknowledged,
} from '../../support/processes/killable-server.ts';
import { seeded } from '../../support/seed.ts';
import { allDelivered, createWebhook } from '../../support/servers/deliveries.ts';
import { type EventReceiver, openEventReceiver } from '../../support/servers/event-receiver.ts';
import { tempFolder } from '../../support/temp-folder.ts';
import { allFinalized, auditAfterFault } from '../support/audit.ts';

const KILLS = 20;
const BATCH = 10;

test(`${KILLS} kills -9 during deliveries: every event arrives, none is skipped, repeats carry the same id and body`, async () => {
  const { seed, between } = seeded('kills during deliveries');
  const folder = tempFolder();
  const sandbox = await startSandbox({ options: { seed, speed: 100, errorRate: 0.2 } });
  onTestFinished(() => sandbox.close());
  const receiver = await openEventReceiver({ delayMs: () => between(0, 40), refuseOneOf: 20 });
  const server = await prepareServer(folder, {
    upstreams: {
      default: {
        url: sandbox.url,
        api_key: 'sandbox-key',
        lag_price: 1_000,
        budget: { requests: 100, per_s: 0.02, concurrency: 64 },
      },
    },
    webhooks: { allow: ['127.0.0.0/8'], allow_http: true },
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
    await isBusy(receiver);
    await sleep(between(0, 40));
    interrupted += receiver.inFlight() > 0 ? 1 : 0;
    await server.kill();
    server.start();
  }
  killing.abort();
  await tracking;
  await server.listening();
  await allDelivered(server.file, acknowledged.size);

  console.log(
    `${interrupted} of ${KILLS} kills hit a delivery under way, ${receiver.bodies.size} events`,
  );
  // Otherwise the kills hit no delivery in flight.
  expect(interrupted).toBeGreaterThan(KILLS / 10);
  await auditAfterFault({ server, expected: allFinalized(acknowledged), receiver });
});

/** Resolves when a delivery is in flight, or after a while without one. */
async function isBusy(receiver: EventReceiver): Promise<void> {
  for (let waitedMs = 0; receiver.inFlight() === 0 && waitedMs < 400; waitedMs += 5) await sleep(5);
}

async function trackUntil(
  client: DawatchClient,
  signal: AbortSignal,
  acknowledged: Set<string>,
  submit: () => string,
): Promise<void> {
  while (!signal.aborted) {
    const batch = Array.from({ length: BATCH }, submit);
    await trackUntilAcknowledged(client, batch);
    for (const id of batch) acknowledged.add(id);
    await sleep(50);
  }
}

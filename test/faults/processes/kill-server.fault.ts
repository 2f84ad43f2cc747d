import { expect, onTestFinished, test } from 'vitest';
import type { DawatchClient } from '../../../src/client/index.ts';
import { startSandbox } from '../../../src/sandbox/server.ts';
import { auditLedger } from '../../support/ledger/audit.ts';
import {
  type KillableServer,
  prepareServer,
  sleep,
  trackUntilAcknowledged,
} from '../../support/processes/killable-server.ts';
import { seeded } from '../../support/seed.ts';
import { tempFolder } from '../../support/temp-folder.ts';
import { allFinalized, auditAfterFault } from '../support/audit.ts';

const KILLS = 30;
const SUBMISSIONS = 2_000;
const BATCH = 25;

test(`${KILLS} kills -9 at random moments lose nothing that was acknowledged`, async () => {
  const { seed, between } = seeded('kills of the server');
  const folder = tempFolder();
  // The limit equals the configured budget: 100 requests in 0.1 s of the server's clock.
  const limit = { rateLimit: 100, rateLimitPerS: 4 };
  const sandbox = await startSandbox({ options: { seed, speed: 40, errorRate: 0.1, ...limit } });
  onTestFinished(() => sandbox.close());
  const server = await prepareServer(folder, {
    upstreams: {
      default: {
        url: sandbox.url,
        api_key: 'sandbox-key',
        lag_price: 1_000,
        budget: { requests: 100, per_s: 0.1, concurrency: 64 },
      },
    },
  });
  const { client, file } = server;
  const acknowledged = new Set<string>();

  const trackAll = async () => {
    for (let tracked = 0; tracked < SUBMISSIONS; tracked += BATCH) {
      const batch = Array.from({ length: BATCH }, () => sandbox.model.submit('data', Date.now()));
      await trackUntilAcknowledged(client, batch);
      for (const id of batch) acknowledged.add(id);
      await sleep(100);
    }
  };
  const tracking = trackAll();
  for (let kill = 0; kill < KILLS; kill++) {
    server.start();
    // Every third process is killed before it listens; the others run for a random time.
    if (kill % 3 !== 0) await server.listening();
    await sleep(between(0, 600));
    // Otherwise the kills hit an idle server and prove nothing.
    if (kill === KILLS - 1) await firstFinal(server);
    await server.kill();
  }
  if (acknowledged.size > 0) auditLedger(file, acknowledged);
  server.start();
  await server.listening();
  await tracking;
  await allFinal(client);

  expect(acknowledged.size).toBe(SUBMISSIONS);
  await auditAfterFault({ server, expected: allFinalized(acknowledged) });
  // Despite all kills, the upstream never received more than its limit.
  expect(sandbox.stats()).toMatchObject({ throttled: 0 });
  expect(sandbox.stats().maxRequestsPerWindow).toBeLessThanOrEqual(100);
});

async function firstFinal({ listening, client }: KillableServer): Promise<void> {
  await listening();
  while ((await client.list({ status: 'finalized', limit: 1 })).submissions.length === 0)
    await sleep(20);
}

async function allFinal(client: DawatchClient): Promise<void> {
  for (const status of ['tracking', 'pending', 'failing', 'tracking', 'pending'] as const) {
    while ((await client.list({ status, limit: 1 })).submissions.length > 0) await sleep(100);
  }
}

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { uniformInt } from 'pure-rand/distribution/uniformInt';
import { xoroshiro128plus } from 'pure-rand/generator/xoroshiro128plus';
import { expect, onTestFinished, test } from 'vitest';
import type { DawatchClient } from '../src/client/client.ts';
import { startSandbox } from '../src/sandbox/server.ts';
import { auditLedger } from './support/audit.ts';
import { prepareServer, sleep, trackForSure } from './support/killable-server.ts';

const SUBMISSIONS = 2_000;
const BATCH = 25;
const KILLS = 20;

test('kill -9 at twenty random moments loses nothing that was acknowledged', { timeout: 150_000 }, async () => {
  const seed = Number(process.env.TEST_SEED ?? Date.now() % 2 ** 31);
  console.log(`crash test: TEST_SEED=${seed}`);
  const random = xoroshiro128plus(seed);
  const folder = mkdtempSync(join(tmpdir(), 'dawatch-crash-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  // Its limit is just what the server is told, 100 requests in 0.1 s of the server's time.
  const limit = { rateLimit: 100, rateLimitPerS: 4 };
  const sandbox = await startSandbox({ options: { seed, speed: 40, errorRate: 0.1, ...limit } });
  onTestFinished(() => sandbox.close());
  const server = await prepareServer(folder, {
    upstreams: {
      default: { url: sandbox.url, api_key: 'sandbox-key', budget: { requests: 100, per_s: 0.1, concurrency: 64 } },
    },
    pacing: { min_interval_s: 0.1, max_interval_s: 1 },
  });

  const acknowledged = new Set<string>();
  const tracking = trackAll(server.client, () => sandbox.model.submit('data', Date.now()), acknowledged);
  for (let kill = 0; kill < KILLS; kill++) {
    server.start();
    // Every third life is cut short before it listens; the others get as far as they get.
    if (kill % 3 !== 0) await server.listening();
    await sleep(uniformInt(random, 0, 900));
    await server.kill();
  }
  const finalizedBetweenKills = auditedFinalized(server.file, acknowledged);
  server.start();
  await server.listening();
  await tracking;
  await allFinal(server.client);
  await server.kill();

  expect(acknowledged.size).toBe(SUBMISSIONS);
  // Otherwise the kills hit an idle server and prove nothing.
  expect(finalizedBetweenKills).toBeGreaterThan(0);
  const statuses = auditLedger(server.file, acknowledged);
  expect([...acknowledged].filter((id) => statuses.get(id) !== 'finalized')).toEqual([]);
  // Whatever died in between: the upstream never saw more than it grants.
  expect(sandbox.stats()).toMatchObject({ throttled: 0 });
  expect(sandbox.stats().maxRequestsPerWindow).toBeLessThanOrEqual(100);
});

function auditedFinalized(file: string, acknowledged: Iterable<string>): number {
  return [...auditLedger(file, acknowledged).values()].filter((status) => status === 'finalized').length;
}

async function trackAll(client: DawatchClient, submit: () => string, acknowledged: Set<string>): Promise<void> {
  while (acknowledged.size < SUBMISSIONS) {
    const batch = Array.from({ length: BATCH }, submit);
    await trackForSure(client, batch);
    for (const id of batch) acknowledged.add(id);
    await sleep(100);
  }
}

async function allFinal(client: DawatchClient): Promise<void> {
  for (const status of ['tracking', 'pending', 'failing', 'tracking', 'pending']) {
    while ((await client.list({ status, limit: 1 })).submissions.length > 0) await sleep(100);
  }
}

import { expect, test } from 'vitest';
import { NODE_FAULT_KINDS } from '../../../src/sandbox/node/node-faults.ts';
import { sleep } from '../../support/processes/killable-server.ts';
import { prepareWorld } from '../support/world.ts';

/** The last two without a fault of the node: what the chain has not confirmed stays open. */
const KILLS = NODE_FAULT_KINDS.length + 2;
/** Before each kill, so that it interrupts work however slow the machine is. */
const BATCHES = 4;
const BATCH = 10;
const LIMIT = 100;

test(`${KILLS} kills -9 at random moments lose nothing that was acknowledged and no event, while the node of the chain fails in every way`, async () => {
  const world = await prepareWorld('kills of the server', {
    // The limit equals the configured budget: 100 requests in 0.1 s of the server's clock.
    sandbox: { rateLimit: LIMIT, rateLimitPerS: 4, errorRate: 0.1 },
    upstream: { budget: { requests: LIMIT, per_s: 0.1, concurrency: 64 } },
    // So slow that kills interrupt deliveries.
    receiver: { delayMs: () => world.between(0, 40), refuseOneOf: 20 },
  });
  const { server, sandbox, receiver } = world;
  let interrupted = 0;
  const delivery = async () => {
    await server.listening();
    for (; receiver.inFlight() === 0; await sleep(20)) await world.track(1);
  };
  await world.start();
  const track = async () => {
    for (let batch = 0; batch < BATCHES; batch++) {
      await world.track(BATCH);
      await sleep(100);
    }
  };
  const tracking: Promise<void>[] = [];
  for (let kill = 0; kill < KILLS; kill++) {
    // The last faults are none: what the chain has not confirmed stays open.
    const fault = kill < KILLS - 2 ? kill % NODE_FAULT_KINDS.length : 0;
    sandbox.setNodeFault({ kind: NODE_FAULT_KINDS[fault] ?? 'none', seconds: 1 });
    tracking.push(track());
    // Every third process is killed before it listens; the others run for a random time.
    if (kill % 3 !== 0) await server.listening();
    await sleep(world.between(0, 600));
    // Otherwise the kills hit an idle server and prove nothing.
    if (kill === KILLS - 1) await delivery();
    interrupted += receiver.inFlight() > 0 ? 1 : 0;
    await server.kill();
    server.start();
  }
  await Promise.all(tracking);
  expect(interrupted).toBeGreaterThan(0);
  await world.expectSurvived();
  // Despite all kills, the upstream never received more than its limit.
  expect(sandbox.stats()).toMatchObject({ throttled: 0 });
  expect(sandbox.stats().maxRequestsPerWindow).toBeLessThanOrEqual(LIMIT);
});

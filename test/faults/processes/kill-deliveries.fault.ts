import { expect, test } from 'vitest';
import { sleep } from '../../support/processes/killable-server.ts';
import type { EventReceiver } from '../../support/servers/event-receiver.ts';
import { prepareWorld } from '../support/world.ts';

const KILLS = 20;

test(`${KILLS} kills -9 during deliveries: every event arrives, none is skipped, repeats carry the same id and body`, async () => {
  const world = await prepareWorld('kills during deliveries', {
    sandbox: { speed: 100, errorRate: 0.2 },
    upstream: { budget: { requests: 100, per_s: 0.02, concurrency: 64 } },
    receiver: { delayMs: () => world.between(0, 40), refuseOneOf: 20 },
  });
  const { server, receiver } = world;
  await world.start();
  let isOver = false;
  const track = async () => {
    for (; !isOver; await sleep(50)) await world.track(10);
  };
  const tracking = track();
  let interrupted = 0;
  for (let kill = 0; kill < KILLS; kill++) {
    await server.listening();
    await isBusy(receiver);
    await sleep(world.between(0, 40));
    interrupted += receiver.inFlight() > 0 ? 1 : 0;
    await server.kill();
    server.start();
  }
  isOver = true;
  await tracking;
  await world.expectSurvived();
  console.log(
    `${interrupted} of ${KILLS} kills hit a delivery under way, ${receiver.bodies.size} events`,
  );
  // Otherwise the kills hit no delivery in flight.
  expect(interrupted).toBeGreaterThan(KILLS / 10);
});

/** Resolves when a delivery is in flight, or after a while without one. */
async function isBusy(receiver: EventReceiver): Promise<void> {
  for (let waitedMs = 0; receiver.inFlight() === 0 && waitedMs < 400; waitedMs += 5) await sleep(5);
}

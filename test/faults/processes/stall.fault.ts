import { expect, test } from 'vitest';
import { sleep } from '../../support/processes/killable-server.ts';
import { prepareWorld } from '../support/world.ts';

/** Of a request to the upstream: 10 s. */
const OVER_TIMEOUT_MS = 11_000;

test('a server that is suspended for longer than its timeouts continues normally', async () => {
  const world = await prepareWorld('stall', { sandbox: { latencyMs: 8_000 } });
  await world.start();
  await world.track(200);
  await sleep(world.between(0, 300));
  world.server.pause();
  await sleep(OVER_TIMEOUT_MS);
  world.server.resume();
  await world.track(50);
  await world.expectSurvived();
  // The server detects its own stall and reports no outage of the upstream.
  expect(world.server.logged('upstream.down')).toEqual([]);
});

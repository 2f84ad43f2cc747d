import { expect, test } from 'vitest';
import { STEP_MS } from '../../support/patience.ts';
import { CRASH_API_KEY, sleep } from '../../support/processes/killable-server.ts';
import { trackOnce } from '../support/requests.ts';
import { prepareWorld } from '../support/world.ts';

const ROUNDS = 2;
/** More than SIGTERM may take on a slow machine. */
const ENDLESS_MS = 2 * STEP_MS;
const CLIENTS = 3;
const READERS = 20;

test('SIGTERM under load completes within its limit, and acknowledged requests are kept', async () => {
  let isOver = false;
  let received = 0;
  const world = await prepareWorld('sigterm', {
    // Some responses take longer than the request timeout.
    sandbox: { latencyMs: 4_000, latencyJitterMs: 40_000 },
    upstream: { timeout_s: 1 },
    // Some receivers take longer than the limit, and than this test.
    receiver: { delayMs: () => (isOver || ++received % 25 > 0 ? 0 : ENDLESS_MS) },
  });
  const { server } = world;
  await world.start();
  let failed = 0;
  const client = async () => {
    while (!isOver) {
      const ids = world.submit(5);
      const response = await trackOnce(server.url, ids).catch(() => undefined);
      if (response?.status === 202) for (const id of ids) world.expected.set(id, 'finalized');
      else if (response && response.status !== 503) failed += 1;
      await sleep(100);
    }
  };
  const clients = Array.from({ length: CLIENTS }, client);
  const longest: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const readers = Array.from({ length: READERS }, () => readForever(server.url));
    await sleep(world.between(200, 1_500));
    const requestedAt = performance.now();
    expect(await server.stop()).toBe(0);
    longest.push(performance.now() - requestedAt);
    await Promise.all(readers);
    server.start();
    await server.listening();
  }
  isOver = true;
  await Promise.all(clients);
  console.log(
    `${ROUNDS} SIGTERMs took ${longest.map((ms) => `${(ms / 1_000).toFixed(1)} s`).join(', ')}`,
  );
  expect(Math.max(...longest)).toBeLessThan(STEP_MS);
  expect(failed).toBe(0);
  await world.expectSurvived();
});

/** Reads the live feed until the server closes it. */
async function readForever(url: string): Promise<void> {
  const response = await fetch(`${url}/v1/events`, {
    headers: { 'x-api-key': CRASH_API_KEY },
  }).catch(() => undefined);
  await response?.text().catch(() => undefined);
}

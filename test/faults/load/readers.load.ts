import { get, type IncomingMessage } from 'node:http';
import { expect, onTestFinished, test } from 'vitest';
import { reading, scrape } from '../../support/app/metrics.ts';
import { CRASH_API_KEY, sleep } from '../../support/processes/killable-server.ts';
import { watch } from '../support/probe.ts';
import { prepareWorld } from '../support/world.ts';

const READERS = 5_000;
const AT_ONCE = 250;
const SUBMISSIONS = 20;
/** 5,000 idle readers take 220 MiB. */
const MEMORY_MIB = 600;

test('5,000 readers of the live feed get every event once and in order, and leave no resources behind', async () => {
  const world = await prepareWorld('readers', {
    sandbox: { errorRate: 0.5 },
    settings: { log: { level: 'warn' } },
  });
  await world.start();
  const { url } = world.server;
  const readers: { received: number[]; response: IncomingMessage }[] = [];
  onTestFinished(() => readers.forEach(({ response }) => void response.destroy()));
  for (let opened = 0; opened < READERS; opened += AT_ONCE)
    readers.push(...(await Promise.all(Array.from({ length: AT_ONCE }, () => read(url)))));
  expect(await readersOf(url)).toBe(READERS);

  const seen = watch(world.server);
  await world.track(SUBMISSIONS);
  const isDelivered = async () => {
    const { waiting, newest } = await world.server.client
      .overview()
      .then(async ({ submissions }) => ({
        waiting: submissions.tracking + submissions.pending + submissions.failing,
        newest: Math.max(...readers.map(({ received }) => received.at(-1) ?? 0)),
      }));
    return (
      waiting === 0 && newest > 0 && readers.every(({ received }) => received.at(-1) === newest)
    );
  };
  while (!(await isDelivered())) await sleep(200);
  const { refused, peakMiB } = await seen.end();
  const first = readers[0]?.received ?? [];
  console.log(`${READERS} readers, ${first.length} events each, at most ${peakMiB.toFixed(0)} MiB`);
  expect(first.length).toBeGreaterThan(SUBMISSIONS);
  expect(first).toEqual([...new Set(first)].toSorted((a, b) => a - b));
  const all = JSON.stringify(first);
  expect(readers.filter(({ received }) => JSON.stringify(received) !== all)).toEqual([]);
  expect(refused).toEqual([]);
  expect(peakMiB).toBeLessThan(MEMORY_MIB);

  for (const { response } of readers) response.destroy();
  while ((await readersOf(url)) !== 0) await sleep(50);
  // The allocator does not return the memory of many connections at once.
  await world.expectSurvived({ memoryMiB: MEMORY_MIB });
});

async function readersOf(url: string): Promise<number | undefined> {
  return reading((await scrape(url)).text, 'dawatch_feed_readers');
}

/** Returns the sequence numbers of the received events. */
function read(url: string): Promise<{ received: number[]; response: IncomingMessage }> {
  return new Promise((resolve, reject) => {
    get(
      `${url}/v1/events`,
      { agent: false, headers: { 'x-api-key': CRASH_API_KEY } },
      (response) => {
        const receivedSeqs: number[] = [];
        let rest = '';
        response.setEncoding('utf8').on('data', (chunk: string) => {
          const blocks = (rest + chunk).split('\n\n');
          rest = blocks.pop() ?? '';
          for (const block of blocks)
            if (block.includes('\nevent: '))
              receivedSeqs.push(Number(/^id: (\d+)/.exec(block)?.[1]));
        });
        response.on('error', () => undefined);
        if (response.statusCode === 200) resolve({ received: receivedSeqs, response });
        else reject(new Error(`a reader received ${response.statusCode}`));
      },
    ).on('error', reject);
  });
}

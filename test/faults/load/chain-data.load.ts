import { expect, onTestFinished, test, vi } from 'vitest';
import { percentile } from '../../../bench/support/percentiles.ts';
import { type Sandbox, startSandbox } from '../../../src/sandbox/server.ts';
import { openTimedSandbox } from '../../sandbox/node/node-client.ts';
import { prepareServer, sleep } from '../../support/processes/killable-server.ts';
import { seeded } from '../../support/seed.ts';
import { tempFolder } from '../../support/temp-folder.ts';
import { watch } from '../support/probe.ts';

const MIB = 1024 * 1024;
const BLOCKS = 3;
/** The most data of a block of Avail, in submissions of the largest size. */
const PER_BLOCK = 4;

const PER_S = 20;
const SPEED = 4;
const SANDBOX_MINUTES = 3;
/** Peak memory in addition to a server that verifies no data. */
const MAX_MORE_MIB = 60;

/** A server in its own process, which finalizes what the sandbox's node confirms. */
async function startServer(sandbox: Sandbox, verify_data: boolean, requests = 400) {
  const chain = { urls: [sandbox.url.replace('http', 'ws')], verify: 'require', verify_data };
  const budget = { requests, per_s: 1, concurrency: 32 };
  const server = await prepareServer(tempFolder(), {
    upstreams: { default: { url: sandbox.url, api_key: 'sandbox-key', budget, chain } },
  });
  server.start();
  onTestFinished(async () => void (await server.stop()));
  await server.listening();
  return server;
}

test('/livez responds while 4 MiB of data in one block are proved', async () => {
  const sandbox = await openTimedSandbox();
  const { clock, model } = sandbox;
  const server = await startServer(sandbox, true);
  const durationsMs: number[] = [];
  for (let block = 0; block < BLOCKS; block += 1) {
    const ids = Array.from({ length: PER_BLOCK }, (_, index) =>
      model.submit(Buffer.alloc(MIB, 1 + index), clock.now()),
    );
    // The sandbox hashes the data before the responses are measured.
    model.heights(clock.now(), 0);
    await server.client.track(ids);
    const seen = watch(server, { paths: ['/livez'], everyMs: 5 });
    await clock.advance(60_000);
    // What takes longer than a second is confirmed at the next block.
    for (const id of ids)
      while ((await server.client.wait(id, 1)).chain !== 'confirmed') await clock.advance(20_000);
    const { refused, durationsMs: taken } = await seen.end();
    expect(refused).toEqual([]);
    durationsMs.push(...taken);
  }
  const [p99, slowest] = [percentile(durationsMs, 99), Math.max(...durationsMs)];
  console.log(
    `${BLOCKS} blocks of ${PER_BLOCK} MiB: p99 of ${durationsMs.length} responses ${p99.toFixed(0)} ms, slowest ${slowest.toFixed(0)} ms`,
  );
});

test(`proofs of ${PER_S} submissions per second take little memory, and one fetch of each block`, async () => {
  const { between } = seeded('chain-data');
  const sandbox = await startSandbox({ options: { speed: SPEED } });
  onTestFinished(() => sandbox.close());
  const fetched = vi.spyOn(sandbox.model, 'extrinsicsOf');
  const open = (verify_data: boolean) => startServer(sandbox, verify_data, 50 * SPEED);
  const [plain, proving] = [await open(false), await open(true)];
  const peaks = { plain: 0, proving: 0 };
  const ids: string[] = [];
  const from = performance.now();
  const elapsedMs = () => performance.now() - from;
  while (elapsedMs() < (SANDBOX_MINUTES * 60_000) / SPEED) {
    await sleep(250);
    const due = Math.floor((elapsedMs() / 1_000) * PER_S * SPEED);
    const added = Array.from({ length: due - ids.length }, () =>
      sandbox.model.submit(Buffer.alloc(between(1_000, 10_000), 1), Date.now()),
    );
    ids.push(...added);
    await Promise.all([plain.client.track(added), proving.client.track(added)]);
    peaks.plain = Math.max(peaks.plain, plain.residentMiB() ?? 0);
    peaks.proving = Math.max(peaks.proving, proving.residentMiB() ?? 0);
  }
  for (const { client } of [plain, proving])
    for await (const { chain } of client.untilFinal(ids)) expect(chain).toBe('confirmed');
  const blocks = fetched.mock.calls.map(([number]) => number);
  console.log(
    `${ids.length} submissions in ${blocks.length} blocks: at most ${peaks.proving.toFixed(0)} MiB, without proofs ${peaks.plain.toFixed(0)} MiB`,
  );
  expect(blocks.length).toBeGreaterThan(0);
  expect(blocks).toEqual([...new Set(blocks)]);
  expect(peaks.proving - peaks.plain).toBeLessThan(MAX_MORE_MIB);
});

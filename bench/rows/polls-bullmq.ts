import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { inTurns, type Row } from '../row.ts';
import {
  costsOf,
  runProgram,
  startProgram,
  startRedis,
  startServer,
  startWorker,
  temporaryFolder,
} from '../support/processes.ts';
import { pollsOf } from '../support/scrape.ts';

/** The way through Redis and back is longer than the one to the upstream. */
const CONCURRENCY = 768;
const SECONDS = 5;
const TRACKED = 30_000;

export const row: Row = {
  rounds: 5,
  figures: [
    {
      what: 'the same through BullMQ, one worker process',
      beside: 'the same bare undici Pool',
      bar: { least: 0.5 },
      unit: '',
      value: ({ ours = 0, bare = 0 }) => ours / bare,
      context: ({ ours = 0, bare = 0 }) => `${Math.round(ours)} and ${Math.round(bare)} polls/s`,
    },
  ],
  async open() {
    const folder = temporaryFolder();
    const upstream = await startProgram<{ url: string }>('support/upstream.ts', ['Pending']);
    const redis = await startRedis(folder.path);
    const { url } = upstream.hello;
    const server = await startServer(folder.path, {
      upstreams: { default: { url, api_key: 'bench', budget: { requests: 100_000, concurrency: CONCURRENCY } } },
      pacing: { min_interval_s: 1, max_interval_s: 1 },
      redis: { url: redis.url },
    });
    const worker = await startWorker(folder.path, server);
    for (let from = 0; from < TRACKED; from += 10_000)
      await server.client.track(Array.from({ length: 10_000 }, () => randomUUID()));
    // What is seen for the first time is a change, and dearer than what a poll mostly is.
    while ((await pollsOf(server)) < 1.2 * TRACKED) await sleep(100);
    return {
      async round(index) {
        let [ours, bare] = [0, 0];
        await inTurns(index, [
          async () => {
            const [before, from] = [await pollsOf(server), performance.now()];
            await sleep(SECONDS * 1_000);
            ours = ((await pollsOf(server)) - before) / ((performance.now() - from) / 1_000);
          },
          async () => {
            // The product must not use the upstream meanwhile.
            for (const { pid } of [server, worker]) process.kill(pid, 'SIGSTOP');
            const result = await runProgram<{ perSecond: number }>('peers/bare-loop.ts', [url, CONCURRENCY, SECONDS]);
            for (const { pid } of [server, worker]) process.kill(pid, 'SIGCONT');
            bare = result.perSecond;
            // Until the server has seen that Redis and its worker are there, it asks by itself.
            while ((await server.client.overview()).workers !== 1) await sleep(50);
            await sleep(1_000);
          },
        ]);
        return { ours, bare };
      },
      memoryMib: () => costsOf(server.pid).mib,
      async close() {
        await worker.stop();
        await server.stop();
        await redis.stop();
        await upstream.stop();
        folder.remove();
      },
    };
  },
};

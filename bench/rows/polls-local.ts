import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { inTurns, type Row } from '../row.ts';
import { costsOf, runProgram, startProgram, startServer, temporaryFolder } from '../support/processes.ts';
import { pollsOf } from '../support/scrape.ts';

/** As many as answers are worth to share a commit: at 15 ms to an upstream, so many make 17,000 polls a second. */
const CONCURRENCY = 256;
const SECONDS = 5;
/** More than can be asked in the shortest interval, so that somebody is always due. */
const TRACKED = 30_000;

export const row: Row = {
  rounds: 5,
  figures: [
    {
      what: 'polls per second, each recorded in the ledger (synchronous=FULL), local engine',
      beside: 'a bare undici Pool that only reads and parses',
      bar: { least: 0.7 },
      unit: '',
      value: ({ ours = 0, bare = 0 }) => ours / bare,
      context: ({ ours = 0, bare = 0 }) => `${Math.round(ours)} and ${Math.round(bare)} polls/s`,
    },
  ],
  async open() {
    const folder = temporaryFolder();
    const upstream = await startProgram<{ url: string }>('support/upstream.ts', ['Pending']);
    const { url } = upstream.hello;
    const server = await startServer(folder.path, {
      upstreams: { default: { url, api_key: 'bench', budget: { requests: 100_000, concurrency: CONCURRENCY } } },
      pacing: { min_interval_s: 1, max_interval_s: 1 },
    });
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
            process.kill(server.pid, 'SIGSTOP');
            const result = await runProgram<{ perSecond: number }>('peers/bare-loop.ts', [url, CONCURRENCY, SECONDS]);
            process.kill(server.pid, 'SIGCONT');
            bare = result.perSecond;
            await sleep(1_000);
          },
        ]);
        return { ours, bare };
      },
      memoryMib: () => costsOf(server.pid).mib,
      async close() {
        await server.stop();
        await upstream.stop();
        folder.remove();
      },
    };
  },
};

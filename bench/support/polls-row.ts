import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Figure, inTurns, type Row } from '../row.ts';
import { startPolling } from './polling.ts';
import { costsOf, runProgram } from './processes.ts';
import { pollsOf } from './scrape.ts';

const SECONDS = 5;
/** More than can be asked in the shortest interval, so that somebody is always due. */
const TRACKED = 30_000;

type PollsRow = Pick<Figure, 'what' | 'beside' | 'bar'> & { concurrency: number; throughRedis: boolean };

/** Polls per second beside those of a bare loop with as many at once. */
export function pollsRow({ concurrency, throughRedis, ...figure }: PollsRow): Row {
  return {
    rounds: 5,
    figures: [
      {
        ...figure,
        unit: '',
        value: ({ ours = 0, bare = 0 }) => ours / bare,
        context: ({ ours = 0, bare = 0 }) => `${Math.round(ours)} and ${Math.round(bare)} polls/s`,
      },
    ],
    async open() {
      const { server, url, pids, close } = await startPolling({ upstream: ['Pending'], concurrency, throughRedis });
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
              for (const pid of pids) process.kill(pid, 'SIGSTOP');
              const result = await runProgram<{ perSecond: number }>('peers/bare-loop.ts', [url, concurrency, SECONDS]);
              for (const pid of pids) process.kill(pid, 'SIGCONT');
              bare = result.perSecond;
              // Until the server has seen that Redis and its worker are there, it asks by itself.
              while (throughRedis && (await server.client.overview()).workers !== 1) await sleep(50);
              await sleep(1_000);
            },
          ]);
          return { ours, bare };
        },
        memoryMib: () => costsOf(server.pid).mib,
        close,
      };
    },
  };
}

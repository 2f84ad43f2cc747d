import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { inTurns, type Metric, type Row } from '../row.ts';
import { startPolling } from './polling.ts';
import { costsOf, runProgram } from './processes.ts';
import { pollsOf } from './scrape.ts';

const SECONDS = 5;
/** More than can be polled in the shortest interval, so that a submission is always due. */
const TRACKED = 30_000;

/** `target`: of the ratio to the loop that stores the responses, too. */
type PollsRow = Pick<Metric, 'what' | 'target'> & { concurrency: number; throughRedis: boolean };

/** Compares polls per second with those of bare loops of the same concurrency. */
export function pollsRow({ concurrency, throughRedis, what, target }: PollsRow): Row {
  return {
    rounds: 5,
    metrics: [
      {
        what,
        beside: 'a bare undici Pool that only reads and parses',
        unit: '',
        value: ({ dawatch = 0, bare = 0 }) => dawatch / bare,
        context: ({ dawatch = 0, bare = 0 }) =>
          `${Math.round(dawatch)} and ${Math.round(bare)} polls/s`,
      },
      {
        what: 'the same polls',
        beside:
          'the same Pool that also stores each response in the same tables, with one commit per turn of the event loop',
        ...(target && { target }),
        unit: '',
        value: ({ dawatch = 0, minimal = 0 }) => dawatch / minimal,
        context: ({ dawatch = 0, bare = 0, minimal = 0, cpuUs = 0, minimalCpuUs = 0 }) =>
          `${Math.round(dawatch)} and ${Math.round(minimal)} polls/s; ${Math.round(cpuUs)} and ${Math.round(minimalCpuUs)} µs of CPU each; ${(minimal / bare).toFixed(2)} of the rate of the peer above`,
      },
    ],
    async open() {
      const { folder, server, url, pids, close } = await startPolling({
        upstream: ['Pending'],
        concurrency,
        throughRedis,
      });
      for (let from = 0; from < TRACKED; from += 10_000)
        await server.client.track(Array.from({ length: 10_000 }, () => randomUUID()));
      // The first response about each id is a change and costs more than a typical poll.
      while ((await pollsOf(server)) < 1.2 * TRACKED) await sleep(100);
      /** Returns the rate of a peer while dawatch is stopped and does not use the upstream. */
      const apart = async (peer: string, args: readonly unknown[]) => {
        for (const pid of pids) process.kill(pid, 'SIGSTOP');
        const result = await runProgram<{ perSecond: number; cpuUs?: number }>(peer, args);
        for (const pid of pids) process.kill(pid, 'SIGCONT');
        // The server sends the polls itself until it has detected Redis and the worker.
        while (throughRedis && (await server.client.overview()).workers !== 1) await sleep(50);
        await sleep(1_000);
        return result;
      };
      const cpuS = () => pids.reduce((sum, pid) => sum + costsOf(pid).cpuS, 0);
      return {
        async round(index) {
          let [dawatch, bare, minimal, cpuUs, minimalCpuUs] = [0, 0, 0, 0, 0];
          await inTurns(index, [
            async () => {
              const [before, from, cpuBefore] = [await pollsOf(server), performance.now(), cpuS()];
              await sleep(SECONDS * 1_000);
              const polls = (await pollsOf(server)) - before;
              dawatch = polls / ((performance.now() - from) / 1_000);
              cpuUs = ((cpuS() - cpuBefore) * 1e6) / polls;
            },
            async () => {
              bare = (await apart('peers/bare-loop.ts', [url, concurrency, SECONDS])).perSecond;
            },
            async () => {
              const file = join(folder, `minimal-${index}.db`);
              const result = await apart('peers/storing-loop.ts', [
                url,
                concurrency,
                SECONDS,
                file,
                TRACKED,
              ]);
              [minimal, minimalCpuUs] = [result.perSecond, result.cpuUs ?? 0];
            },
          ]);
          return { dawatch, bare, minimal, cpuUs, minimalCpuUs };
        },
        memoryMib: () => costsOf(server.pid).mib,
        close,
      };
    },
  };
}

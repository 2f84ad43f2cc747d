import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { inTurns, type Metric, type Row } from '../row.ts';
import { startPolling } from './polling.ts';
import { costsOf, runProgram } from './processes.ts';
import { pollsOf } from './scrape.ts';

const SECONDS = 3;
/** More than can be polled in the shortest interval, so that a submission is always due. */
const TRACKED = 20_000;

type PollsRow = Pick<Metric, 'what' | 'target'> & { concurrency: number; throughRedis: boolean };

/** Compares polls per second with those of a minimal loop of the same concurrency. */
export function pollsRow({ concurrency, throughRedis, what, target }: PollsRow): Row {
  return {
    rounds: 3,
    metrics: [
      {
        what,
        beside: 'undici',
        ...(target && { target }),
        unit: '',
        value: ({ dawatch = 0, minimal = 0 }) => dawatch / minimal,
        context: ({ dawatch = 0, minimal = 0, cpuUs = 0, minimalCpuUs = 0 }) =>
          `${Math.round(dawatch)} and ${Math.round(minimal)} polls/s; ${Math.round(cpuUs)} and ${Math.round(minimalCpuUs)} µs CPU each`,
      },
    ],
    async open() {
      const { folder, server, url, pids, close } = await startPolling({
        upstream: ['Pending'],
        concurrency,
        throughRedis,
      });
      for (let from = 0; from < TRACKED; from += 1_000)
        await server.client.track(Array.from({ length: 1_000 }, () => randomUUID()));
      // The first response about each id is a change and costs more than a typical poll.
      while ((await pollsOf(server)) < 1.2 * TRACKED) await sleep(100);
      /** Measures the peer while dawatch is stopped and does not use the upstream. */
      const measurePeer = async (file: string) => {
        for (const pid of pids) process.kill(pid, 'SIGSTOP');
        const args = [url, concurrency, SECONDS, file, TRACKED];
        type Result = { perSecond: number; cpuUs: number };
        const result = await runProgram<Result>('peers/storing-loop.ts', args);
        for (const pid of pids) process.kill(pid, 'SIGCONT');
        // The server sends the polls itself until it has detected Redis and the worker.
        while (throughRedis && (await server.client.overview()).workers !== 1) await sleep(50);
        // Polls that were in flight for too long are repeated when their leases end.
        const before = await pollsOf(server);
        while ((await pollsOf(server)) === before) await sleep(50);
        await sleep(1_000);
        return result;
      };
      const cpuS = () => pids.reduce((sum, pid) => sum + costsOf(pid).cpuS, 0);
      return {
        async round(index) {
          let [dawatch, minimal, cpuUs, minimalCpuUs] = [0, 0, 0, 0];
          await inTurns(index, [
            async () => {
              const [before, from, cpuBefore] = [await pollsOf(server), performance.now(), cpuS()];
              await sleep(SECONDS * 1_000);
              const polls = (await pollsOf(server)) - before;
              dawatch = polls / ((performance.now() - from) / 1_000);
              cpuUs = ((cpuS() - cpuBefore) * 1e6) / polls;
            },
            async () => {
              const result = await measurePeer(join(folder, `minimal-${index}.db`));
              [minimal, minimalCpuUs] = [result.perSecond, result.cpuUs];
            },
          ]);
          return { dawatch, minimal, cpuUs, minimalCpuUs };
        },
        memoryMib: () => costsOf(server.pid).mib,
        close,
      };
    },
  };
}

import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Row } from '../row.ts';
import { costsOf, startProgram, startServer, temporaryFolder } from '../support/processes.ts';

const ROUNDS = 5;
const READERS = 1_000;
const PER_SECOND = 200;
const SECONDS = 4;

export const row: Row = {
  rounds: ROUNDS,
  metrics: [
    {
      what: `from an event to ${READERS} readers of the live feed at ${PER_SECOND} events/s, p99`,
      target: { max: 100 },
      unit: 'ms',
      value: ({ p99 = Number.NaN }) => p99,
      context: ({ p50 = 0, perSecond = 0, corePercent = 0, idlePercent = 0, mib = 0 }) =>
        `p50 ${Math.round(p50)} ms; ${Math.round(perSecond)} events/s; ${Math.round(corePercent)} % of a core, idle ${idlePercent.toFixed(1)} %; ${Math.round(mib)} MiB`,
    },
  ],
  async open() {
    const folder = temporaryFolder();
    const server = await startServer(folder.path, {
      upstreams: { default: { url: 'http://127.0.0.1:1', api_key: 'bench' } },
    });
    const ids = Array.from({ length: (ROUNDS + 1) * SECONDS * PER_SECOND }, () => randomUUID());
    await server.client.track(ids);
    const readers = await startProgram<{ url: string }>('support/feed-readers.ts', [
      server.url,
      server.apiKey,
      READERS,
    ]);
    type Taken = { received: number; p50: number; p99: number };
    const taken = async () => (await (await fetch(readers.hello.url)).json()) as Taken;
    return {
      async round() {
        const atRest = costsOf(server.pid).cpuS;
        await sleep(2_000);
        await taken();
        const [{ cpuS }, from] = [costsOf(server.pid), performance.now()];
        const cancelled: Promise<unknown>[] = [];
        while (cancelled.length < SECONDS * PER_SECOND) {
          const due = ((performance.now() - from) / 1_000) * PER_SECOND;
          while (cancelled.length < Math.min(due, SECONDS * PER_SECOND))
            cancelled.push(server.client.cancel(ids.pop() ?? ''));
          await sleep(2);
        }
        await Promise.all(cancelled);
        const [seconds, cost] = [(performance.now() - from) / 1_000, costsOf(server.pid)];
        await sleep(500);
        const { received, p50, p99 } = await taken();
        return {
          p50,
          p99,
          perSecond: received / seconds,
          corePercent: ((cost.cpuS - cpuS) / seconds) * 100,
          idlePercent: (cpuS - atRest) * 50,
          mib: cost.mib,
        };
      },
      memoryMib: () => costsOf(server.pid).mib,
      async close() {
        await readers.stop();
        await server.stop();
        folder.remove();
      },
    };
  },
};

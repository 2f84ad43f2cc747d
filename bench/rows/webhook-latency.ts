import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Row } from '../row.ts';
import { percentile } from '../support/percentiles.ts';
import { costsOf, startProgram, startServer, temporaryFolder } from '../support/processes.ts';
import { pollsOf } from '../support/scrape.ts';

const CONCURRENCY = 64;
const SECONDS = 4;
/** More than can be polled in the shortest interval, so that a submission is always due. */
const TRACKED = 30_000;
const EVENTS = 500;

export const row: Row = {
  rounds: 5,
  metrics: [
    {
      what: 'from an event to its webhook while polling at full speed, p99',
      target: { max: 50 },
      unit: 'ms',
      value: ({ p99 = Number.NaN }) => p99,
      context: ({ p50 = 0, p99 = 0, polls = 0 }) =>
        `p50 ${p50.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms at ${Math.round(polls)} polls/s`,
    },
  ],
  async open() {
    const folder = temporaryFolder();
    const upstream = await startProgram<{ url: string }>('support/upstream.ts', ['Pending']);
    const receiver = await startProgram<{ url: string }>('support/receiver.ts', [true]);
    const server = await startServer(folder.path, {
      upstreams: {
        default: {
          url: upstream.hello.url,
          api_key: 'bench',
          lag_price: 1_000,
          budget: { requests: 100_000, concurrency: CONCURRENCY },
        },
      },
      webhooks: { allow: ['127.0.0.0/8'], allow_http: true },
    });
    await server.admin.webhooks.create({
      url: `${receiver.hello.url}/hook`,
      types: ['submission.cancelled'],
    });
    const ids = Array.from({ length: TRACKED }, () => randomUUID());
    for (let from = 0; from < TRACKED; from += 1_000)
      await server.client.track(ids.slice(from, from + 1_000));
    const taken = async () => (await (await fetch(receiver.hello.url)).json()) as number[];
    return {
      async round() {
        const [before, from] = [await pollsOf(server), performance.now()];
        const cancelled: Promise<unknown>[] = [];
        for (let event = 0; event < EVENTS; event++) {
          cancelled.push(server.client.cancel(ids.pop() ?? ''));
          await sleep((SECONDS * 1_000) / EVENTS);
        }
        await Promise.all(cancelled);
        const polls = ((await pollsOf(server)) - before) / ((performance.now() - from) / 1_000);
        const latenciesMs: number[] = [];
        while (latenciesMs.length < EVENTS) {
          latenciesMs.push(...(await taken()));
          await sleep(20);
        }
        return { p50: percentile(latenciesMs, 50), p99: percentile(latenciesMs, 99), polls };
      },
      memoryMib: () => costsOf(server.pid).mib,
      async close() {
        await server.stop();
        await receiver.stop();
        await upstream.stop();
        folder.remove();
      },
    };
  },
};

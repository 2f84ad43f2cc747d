import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Row } from '../row.ts';
import { fillLedger } from '../support/filled-ledger.ts';
import { installPackage, packPackages } from '../support/packages.ts';
import {
  type BenchServer,
  costsOf,
  startProgram,
  startServer,
  temporaryFolder,
} from '../support/processes.ts';
import { pollsOf } from '../support/scrape.ts';

const MANY = 1_000_000;
const FEW = 10_000;
const FULL_SPEED = { requests: 100_000, concurrency: 64 };
const SECONDS = 5;
/** The time that V8 needs to release memory after the start. */
const SETTLE_S = 20;

/**
 * The cost of a million tracked submissions compared with ten thousand, of the installed package:
 * CPU per poll at full speed, memory at the default budget, and the start.
 */
export const row: Row = {
  rounds: 1,
  metrics: [
    {
      what: 'CPU per poll with 1,000,000 tracked',
      beside: 'with 10,000 tracked',
      target: { max: 1.3 },
      unit: '',
      value: ({ many = 0, few = 0 }) => many / few,
      context: ({ many = 0, few = 0 }) => `${many.toFixed(0)} and ${few.toFixed(0)} µs CPU`,
    },
    {
      what: 'memory of the process with 1,000,000 tracked',
      target: { max: 350 },
      unit: 'MiB',
      value: ({ restingMib = 0 }) => restingMib,
      context: ({ busyMib = 0 }) => `${busyMib.toFixed(0)} MiB after ${SECONDS} s at full speed`,
    },
    {
      what: 'start to ready with 1,000,000 tracked',
      target: { max: 5 },
      unit: 's',
      value: ({ readyS = 0 }) => readyS,
      context: ({ firstPollS = 0 }) =>
        `first poll after ${firstPollS.toFixed(1)} s, when all are loaded`,
    },
  ],
  async open() {
    const [many, few] = [temporaryFolder(), temporaryFolder()];
    const upstream = await startProgram<{ url: string }>('support/upstream.ts', ['Pending']);
    fillLedger(many.path, MANY);
    fillLedger(few.path, FEW);
    const packed = packPackages();
    const installed = installPackage(packed.server);
    const program = join(installed.path, 'node_modules/dawatch/main.js');
    const start = (folder: string, budget: object) => {
      const { url } = upstream.hello;
      const upstreams = { default: { url, api_key: 'bench', lag_price: 1_000, budget } };
      return startServer(folder, { upstreams }, program);
    };
    return {
      /** Nothing has to be compiled or cached before, so round 0 measures nothing. */
      async round(index) {
        if (index === 0) return {};
        const resting = await start(many.path, {});
        const readyS = resting.readyMs / 1_000;
        const from = performance.now();
        while ((await pollsOf(resting)) === 0) await sleep(20);
        const firstPollS = readyS + (performance.now() - from) / 1_000;
        await sleep(SETTLE_S * 1_000);
        const restingMib = costsOf(resting.pid).mib;
        await resting.stop();
        const ofFew = await atFullSpeed(await start(few.path, FULL_SPEED), FEW);
        const ofMany = await atFullSpeed(await start(many.path, FULL_SPEED), MANY);
        return {
          many: ofMany.us,
          few: ofFew.us,
          busyMib: ofMany.mib,
          restingMib,
          readyS,
          firstPollS,
        };
      },
      async close() {
        await upstream.stop();
        for (const folder of [many, few, installed, packed]) folder.remove();
      },
    };
  },
};

/** Returns the number of loaded submissions; after a start the server loads them in batches. */
async function trackedBy({ client }: BenchServer): Promise<number> {
  return (await client.pacing()).upstreams[0]?.tracked ?? 0;
}

/** Returns the microseconds of CPU per poll after hot code has been compiled. */
async function atFullSpeed(
  server: BenchServer,
  tracked: number,
): Promise<{ us: number; mib: number }> {
  while ((await trackedBy(server)) < tracked) await sleep(20);
  await sleep(2_000);
  const [polls, { cpuS }] = [await pollsOf(server), costsOf(server.pid)];
  await sleep(SECONDS * 1_000);
  const after = costsOf(server.pid);
  const us = ((after.cpuS - cpuS) / ((await pollsOf(server)) - polls)) * 1e6;
  await server.stop();
  return { us, mib: after.mib };
}

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { inTurns, type Row } from '../row.ts';
import { newIds, responseOf, send, startProduct } from '../support/loads.ts';
import { costsOf, startProgram } from '../support/processes.ts';

const TRACKED = 100_000;
const BARE = 'peers/bare-fastify.ts';

export const row: Row = {
  rounds: 5,
  metrics: [
    {
      what: `status reads per second, random ones of ${TRACKED.toLocaleString('en')} in the ledger`,
      beside: 'bare fastify that sends a constant response of the same size',
      unit: '',
      value: ({ dawatch = 0, bare = 0 }) => dawatch / bare,
      context: ({ dawatch = 0, bare = 0, cpuUs = 0, bareCpuUs = 0 }) =>
        `${Math.round(dawatch)} and ${Math.round(bare)} reads/s, ${cpuUs.toFixed(0)} and ${bareCpuUs.toFixed(0)} µs CPU each`,
    },
    {
      what: 'the same reads',
      beside:
        'bare fastify that only reads them from the same tables, with one transaction per turn of the event loop',
      target: { min: 0.4 },
      unit: '',
      value: ({ dawatch = 0, minimal = 0 }) => dawatch / minimal,
      context: ({ dawatch = 0, minimal = 0, bare = 0, minimalCpuUs = 0 }) =>
        `${Math.round(dawatch)} and ${Math.round(minimal)} reads/s, ${minimalCpuUs.toFixed(0)} µs CPU each; ${(minimal / bare).toFixed(2)} of the rate of the peer above`,
    },
  ],
  async open() {
    const { folder, server, close } = await startProduct();
    const ids = newIds(TRACKED);
    for (let from = 0; from < TRACKED; from += 10_000)
      await server.client.track(ids.slice(from, from + 10_000));
    const idsIn = join(folder, 'ids.json');
    writeFileSync(idsIn, JSON.stringify(ids));
    const example = await responseOf(server, `/v1/submissions/${ids[0]}`);
    const copy = join(folder, 'copy.db');
    copyLedger(join(folder, 'ledger.db'), copy);
    const bare = await startProgram<{ url: string }>(BARE, [{ example }]);
    const minimal = await startProgram<{ url: string }>(BARE, [
      { example, ledger: copy, together: true },
    ]);
    const peer = ({ hello, pid }: typeof bare) => send({ url: hello.url, pid }, server, load);
    const load = { connections: 64, until: { seconds: 4 }, send: { idsIn } };
    return {
      async round(index) {
        const round = { dawatch: 0, cpuUs: 0, bare: 0, bareCpuUs: 0, minimal: 0, minimalCpuUs: 0 };
        await inTurns(index, [
          async () => {
            ({ perSecond: round.dawatch, cpuUs: round.cpuUs } = await send(server, server, load));
          },
          async () => {
            ({ perSecond: round.bare, cpuUs: round.bareCpuUs } = await peer(bare));
          },
          async () => {
            ({ perSecond: round.minimal, cpuUs: round.minimalCpuUs } = await peer(minimal));
          },
        ]);
        return round;
      },
      memoryMib: () => costsOf(server.pid).mib,
      async close() {
        await bare.stop();
        await minimal.stop();
        await close();
      },
    };
  },
};

/** Copies the current state of a ledger that a running server has open. */
function copyLedger(file: string, copy: string): void {
  const db = new Database(file, { readonly: true });
  db.prepare('VACUUM INTO ?').run(copy);
  db.close();
}

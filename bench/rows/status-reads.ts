import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { inTurns, type Row } from '../row.ts';
import { newIds, responseOf, send, startProduct } from '../support/loads.ts';
import { costsOf, startProgram } from '../support/processes.ts';

const TRACKED = 100_000;

export const row: Row = {
  rounds: 5,
  metrics: [
    {
      what: `status reads per second of ${TRACKED.toLocaleString('en')}`,
      beside: 'fastify',
      target: { min: 0.4 },
      unit: '',
      value: ({ dawatch = 0, minimal = 0 }) => dawatch / minimal,
      context: ({ dawatch = 0, minimal = 0, cpuUs = 0, minimalCpuUs = 0 }) =>
        `${Math.round(dawatch)} and ${Math.round(minimal)} reads/s, ${cpuUs.toFixed(0)} and ${minimalCpuUs.toFixed(0)} µs CPU each`,
    },
  ],
  async open() {
    const { folder, server, close } = await startProduct();
    const ids = newIds(TRACKED);
    for (let from = 0; from < TRACKED; from += 1_000)
      await server.client.track(ids.slice(from, from + 1_000));
    const idsIn = join(folder, 'ids.json');
    writeFileSync(idsIn, JSON.stringify(ids));
    const example = await responseOf(server, `/v1/submissions/${ids[0]}`);
    const copy = join(folder, 'copy.db');
    copyLedger(join(folder, 'ledger.db'), copy);
    const peer = await startProgram<{ url: string }>('peers/bare-fastify.ts', [example, copy]);
    const load = { connections: 64, seconds: 2, send: { idsIn } };
    return {
      async round(index) {
        const round = { dawatch: 0, cpuUs: 0, minimal: 0, minimalCpuUs: 0 };
        await inTurns(index, [
          async () => {
            ({ perSecond: round.dawatch, cpuUs: round.cpuUs } = await send(server, server, load));
          },
          async () => {
            const to = { url: peer.hello.url, pid: peer.pid };
            ({ perSecond: round.minimal, cpuUs: round.minimalCpuUs } = await send(
              to,
              server,
              load,
            ));
          },
        ]);
        return round;
      },
      memoryMib: () => costsOf(server.pid).mib,
      async close() {
        await peer.stop();
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

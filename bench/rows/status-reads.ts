import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { inTurns, type Row } from '../row.ts';
import { answerOf, newIds, send, startProduct } from '../support/loads.ts';
import { costsOf, startProgram } from '../support/processes.ts';

const TRACKED = 100_000;

export const row: Row = {
  rounds: 5,
  figures: [
    {
      what: `status reads per second, random ones of ${TRACKED.toLocaleString('en')} in the ledger`,
      beside: 'bare fastify that answers as many bytes, always the same',
      bar: { least: 0.7 },
      unit: '',
      value: ({ ours = 0, bare = 0 }) => ours / bare,
      context: ({ ours = 0, bare = 0, cpuUs = 0, bareCpuUs = 0 }) =>
        `${Math.round(ours)} and ${Math.round(bare)} reads/s, ${cpuUs.toFixed(0)} and ${bareCpuUs.toFixed(0)} µs CPU each`,
    },
  ],
  async open() {
    const { folder, server, close } = await startProduct();
    const ids = newIds(TRACKED);
    for (let from = 0; from < TRACKED; from += 10_000) await server.client.track(ids.slice(from, from + 10_000));
    const idsIn = join(folder, 'ids.json');
    writeFileSync(idsIn, JSON.stringify(ids));
    const example = await answerOf(server, `/v1/submissions/${ids[0]}`);
    const peer = await startProgram<{ url: string }>('peers/bare-fastify.ts', [{ example }]);
    const load = { connections: 64, until: { seconds: 4 }, send: { idsIn } };
    return {
      async round(index) {
        const round = { ours: 0, cpuUs: 0, bare: 0, bareCpuUs: 0 };
        await inTurns(index, [
          async () => {
            ({ perSecond: round.ours, cpuUs: round.cpuUs } = await send(server, server, load));
          },
          async () => {
            const to = { url: peer.hello.url, pid: peer.pid };
            ({ perSecond: round.bare, cpuUs: round.bareCpuUs } = await send(to, server, load));
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

import { join } from 'node:path';
import { inTurns, type Row } from '../row.ts';
import { send, startProduct } from '../support/loads.ts';
import { runProgram } from '../support/processes.ts';

const BATCHES = 100;
const IDS = 1_000;
/** One batch is sent while another is committed. */
const CONNECTIONS = 2;

export const row: Row = {
  rounds: 5,
  metrics: [
    {
      what: `ids per second, tracked durably in batches of ${IDS.toLocaleString('en')}`,
      beside: 'the same rows in the same transactions, better-sqlite3 alone',
      target: { min: 0.6 },
      unit: '',
      value: ({ dawatch = 0, bare = 0 }) => dawatch / bare,
      context: ({ dawatch = 0, bare = 0, cpuUs = 0 }) =>
        `${Math.round(dawatch)} and ${Math.round(bare)} ids/s, ${cpuUs.toFixed(0)} µs CPU per id`,
    },
  ],
  async open() {
    const { folder, server, close } = await startProduct();
    return {
      // Both ledgers grow equally in each round, so they have the same size at every measurement.
      async round(index) {
        let [dawatch, bare, cpuUs] = [0, 0, 0];
        await inTurns(index, [
          async () => {
            const sent = await send(server, server, {
              connections: CONNECTIONS,
              until: { requests: BATCHES },
              send: { newIds: IDS },
            });
            [dawatch, cpuUs] = [sent.perSecond * IDS, sent.cpuUs / IDS];
          },
          async () => {
            const result = await runProgram<{ perSecond: number }>('peers/bare-inserts.ts', [
              join(folder, 'bare.db'),
              BATCHES,
              IDS,
            ]);
            bare = result.perSecond;
          },
        ]);
        return { dawatch, bare, cpuUs };
      },
      close,
    };
  },
};

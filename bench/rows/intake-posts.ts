import { join } from 'node:path';
import { inTurns, type Row } from '../row.ts';
import { newIds, responseOf, send, startProduct } from '../support/loads.ts';
import { startProgram } from '../support/processes.ts';

const LOAD = { connections: 64, seconds: 2, send: 'new ids' } as const;

export const row: Row = {
  rounds: 5,
  metrics: [
    {
      what: 'posts per second of one id each, 64 connections',
      beside: 'fastify',
      target: { min: 0.5 },
      unit: '',
      value: ({ dawatch = 0, minimal = 0 }) => dawatch / minimal,
      context: ({ dawatch = 0, minimal = 0, cpuUs = 0, minimalCpuUs = 0 }) =>
        `${Math.round(dawatch)} and ${Math.round(minimal)} posts/s, ${cpuUs.toFixed(0)} and ${minimalCpuUs.toFixed(0)} µs CPU each`,
    },
  ],
  async open() {
    const { folder, server, close } = await startProduct();
    const [submission_id] = newIds(1);
    const example = await responseOf(server, '/v1/submissions', { submission_id });
    const peer = await startProgram<{ url: string }>('peers/bare-fastify.ts', [
      example,
      join(folder, 'minimal.db'),
    ]);
    return {
      async round(index) {
        const round = { dawatch: 0, cpuUs: 0, minimal: 0, minimalCpuUs: 0 };
        await inTurns(index, [
          async () => {
            ({ perSecond: round.dawatch, cpuUs: round.cpuUs } = await send(server, server, LOAD));
          },
          async () => {
            const to = { url: peer.hello.url, pid: peer.pid };
            ({ perSecond: round.minimal, cpuUs: round.minimalCpuUs } = await send(
              to,
              server,
              LOAD,
            ));
          },
        ]);
        return round;
      },
      async close() {
        await peer.stop();
        await close();
      },
    };
  },
};

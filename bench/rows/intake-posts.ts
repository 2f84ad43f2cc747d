import { join } from 'node:path';
import { inTurns, type Row } from '../row.ts';
import { newIds, responseOf, send, startProduct } from '../support/loads.ts';
import { startProgram } from '../support/processes.ts';

const LOAD = { connections: 64, until: { seconds: 4 }, send: { newIds: 1 } };
const BARE = 'peers/bare-fastify.ts';

export const row: Row = {
  rounds: 5,
  metrics: [
    {
      what: 'posts per second of one id each from 64 connections, tracked durably',
      beside: 'bare fastify that reads them, sends responses of the same size, and stores nothing',
      unit: '',
      value: ({ dawatch = 0, bare = 0 }) => dawatch / bare,
      context: ({ dawatch = 0, bare = 0, cpuUs = 0, bareCpuUs = 0 }) =>
        `${Math.round(dawatch)} and ${Math.round(bare)} posts/s, ${cpuUs.toFixed(0)} and ${bareCpuUs.toFixed(0)} µs CPU each`,
    },
    {
      what: 'the same posts',
      beside: 'bare fastify with one commit per post',
      unit: '',
      value: ({ dawatch = 0, durable = 0 }) => dawatch / durable,
      context: ({ dawatch = 0, durable = 0 }) =>
        `${Math.round(dawatch)} and ${Math.round(durable)} posts/s`,
    },
    {
      what: 'the same posts',
      beside:
        'bare fastify that only inserts the same rows, with one commit per turn of the event loop',
      target: { min: 0.55 },
      unit: '',
      value: ({ dawatch = 0, minimal = 0 }) => dawatch / minimal,
      context: ({ dawatch = 0, minimal = 0, bare = 0, minimalCpuUs = 0 }) =>
        `${Math.round(dawatch)} and ${Math.round(minimal)} posts/s, ${minimalCpuUs.toFixed(0)} µs CPU each; ${(minimal / bare).toFixed(2)} of the first peer's rate`,
    },
  ],
  async open() {
    const { folder, server, close } = await startProduct();
    const [submission_id] = newIds(1);
    const example = await responseOf(server, '/v1/submissions', { submission_id });
    const bare = await startProgram<{ url: string }>(BARE, [{ example }]);
    const durable = await startProgram<{ url: string }>(BARE, [
      { example, ledger: join(folder, 'bare.db') },
    ]);
    const minimal = await startProgram<{ url: string }>(BARE, [
      { example, ledger: join(folder, 'minimal.db'), together: true },
    ]);
    const peer = ({ hello, pid }: typeof bare) => send({ url: hello.url, pid }, server, LOAD);
    return {
      async round(index) {
        const round = {
          dawatch: 0,
          cpuUs: 0,
          bare: 0,
          bareCpuUs: 0,
          durable: 0,
          minimal: 0,
          minimalCpuUs: 0,
        };
        await inTurns(index, [
          async () => {
            ({ perSecond: round.dawatch, cpuUs: round.cpuUs } = await send(server, server, LOAD));
          },
          async () => {
            ({ perSecond: round.bare, cpuUs: round.bareCpuUs } = await peer(bare));
          },
          async () => {
            ({ perSecond: round.durable } = await peer(durable));
          },
          async () => {
            ({ perSecond: round.minimal, cpuUs: round.minimalCpuUs } = await peer(minimal));
          },
        ]);
        return round;
      },
      async close() {
        await bare.stop();
        await durable.stop();
        await minimal.stop();
        await close();
      },
    };
  },
};

import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import Database from 'better-sqlite3';
import { toEventJson } from '../../src/notifications/event-body.ts';
import { contextOfRequest } from '../../src/submissions/transition.ts';
import { Ledger } from '../../src/wiring/ledger-stores.ts';
import { inTurns, type Row } from '../row.ts';
import {
  costsOf,
  runProgram,
  startProgram,
  startServer,
  temporaryFolder,
} from '../support/processes.ts';

const ROUNDS = 3;
const CONCURRENCY = 8;
const PER_ROUND = 10_000;
const BATCH = 2_000;
const ENVELOPE = JSON.stringify({
  id: randomUUID(),
  state: 'Finalized',
  error: null,
  data: {
    block_hash: `0x${'ab'.repeat(32)}`,
    block_number: 1_234_567,
    tx_hash: `0x${'ef'.repeat(32)}`,
    tx_index: 1,
  },
});

export const row: Row = {
  rounds: ROUNDS,
  metrics: [
    {
      what: 'webhook deliveries per second, signed and recorded',
      beside: 'undici',
      target: { min: 0.45 },
      unit: '',
      value: ({ dawatch = 0, minimal = 0 }) => dawatch / minimal,
      context: ({ dawatch = 0, minimal = 0, cpuUs = 0, minimalCpuUs = 0 }) =>
        `${Math.round(dawatch)} and ${Math.round(minimal)} deliveries/s; ${Math.round(cpuUs)} and ${Math.round(minimalCpuUs)} µs CPU each`,
    },
  ],
  async open() {
    const folder = temporaryFolder();
    const receiver = await startProgram<{ url: string }>('support/receiver.ts', [false]);
    const { url } = receiver.hello;
    const file = join(folder.path, 'ledger.db');
    const { webhookIds, body } = writeDeadLetters(file, `${url}/hook`);
    const server = await startServer(folder.path, {
      upstreams: { default: { url: 'http://127.0.0.1:1', api_key: 'bench' } },
      webhooks: { allow: ['127.0.0.0/8'], allow_http: true },
    });
    const ledger = new Database(file, { readonly: true });
    const waiting = ledger.prepare(`
      -- Returns a row if a delivery of the destination is waiting.
      SELECT 1 FROM deliveries WHERE state = 'waiting' AND destination = ? LIMIT 1`);
    return {
      async round(index) {
        let [dawatch, minimal, cpuUs, minimalCpuUs] = [0, 0, 0, 0];
        await inTurns(index, [
          async () => {
            const id = webhookIds[index] ?? '';
            const destination = `webhook:${id}`;
            await server.admin.webhooks.update(id, { enabled: true });
            await server.admin.deliveries.replayDead({ destination });
            const [{ cpuS }, from] = [costsOf(server.pid), performance.now()];
            while (waiting.get(destination)) await sleep(10);
            dawatch = PER_ROUND / ((performance.now() - from) / 1_000);
            cpuUs = ((costsOf(server.pid).cpuS - cpuS) * 1e6) / PER_ROUND;
          },
          async () => {
            const args = [
              url,
              CONCURRENCY,
              join(folder.path, `minimal-${index}.db`),
              PER_ROUND,
              body,
            ];
            const result = await runProgram<{ perSecond: number; cpuUs: number }>(
              'peers/storing-posts.ts',
              args,
            );
            [minimal, minimalCpuUs] = [result.perSecond, result.cpuUs];
          },
        ]);
        return { dawatch, minimal, cpuUs, minimalCpuUs };
      },
      memoryMib: () => costsOf(server.pid).mib,
      async close() {
        ledger.close();
        await server.stop();
        await receiver.stop();
        folder.remove();
      },
    };
  },
};

/**
 * Creates a disabled webhook per round, with the events that it missed; returns the ids and the
 * body of one event.
 */
function writeDeadLetters(file: string, url: string): { webhookIds: string[]; body: string } {
  const now = Date.now();
  const far = now + 86_400_000;
  const ledger = new Ledger({ file, now });
  ledger.upstreams.get('default');
  const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
  const webhookIds = Array.from({ length: ROUNDS + 1 }, (_, round) => {
    const webhook = {
      url,
      types: ['*'],
      metadata: { round },
      description: '',
    };
    const { id } = ledger.webhooks.create({ ...webhook, enabled: false }, secret, now);
    for (let written = 0; written < PER_ROUND; written += BATCH) {
      const ids = Array.from({ length: BATCH }, () => randomUUID());
      const limits = { deadlineAt: far, graceEndsAt: far, stuckAt: far };
      const request = { upstream: 'default', metadata: { round }, callbackUrl: null, ...limits };
      ledger.store.track([ids.map((submissionId) => ({ submissionId, ...request }))], now);
      const observation = {
        kind: 'finalized',
        state: 'Finalized',
        error: null,
        envelope: ENVELOPE,
        blockNumber: 1,
      } as const;
      ledger.store.record(
        ids.map((submissionId) => ({ submissionId, at: now, durationMs: 1, ...observation })),
        contextOfRequest(now),
      );
    }
    return id;
  });
  const [event] = ledger.events.after(0, 1);
  const body = event && !('damage' in event) ? toEventJson(event) : '';
  ledger.close();
  return { webhookIds, body };
}

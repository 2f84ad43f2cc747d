import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { percentile } from '../../../bench/support/percentiles.ts';
import { prepareServer, sleep } from '../../support/processes/killable-server.ts';
import { serve } from '../../support/servers/upstream-server.ts';
import { tempFolder } from '../../support/temp-folder.ts';
import { isCompilerMissing, openTestDisk } from './test-disk.ts';

const SYNC_MS = 20;
const DELAYS_MS = [0, SYNC_MS] as const;
/** The delays take turns, so that other load on the machine concerns both. */
const ROUNDS = 3;
const ROUND_MS = 4_000;
const TRACKED = 2_000;
const POLLS_PER_S = 200;
/** Of the p99 of /livez. */
const MAX_RATIO = 3;

type Samples = Record<'livez' | 'status' | 'event' | 'post', number[]>;

test.skipIf(isCompilerMissing())(
  'a disk whose syncs take 20 ms delays no probe, no status read and no event of an acknowledged change',
  async () => {
    const folder = tempFolder();
    const disk = openTestDisk(folder, { records: false });
    // Every submission is pending.
    const upstream = await serve((request, response) => {
      const id = new URL(request.url ?? '', 'http://x').searchParams.get('submission_id');
      response.setHeader('content-type', 'application/json');
      response.end(JSON.stringify({ id, state: 'Pending', error: null, data: null }));
    });
    const budget = { requests: POLLS_PER_S, per_s: 1, concurrency: 64 };
    const { client, ...server } = await prepareServer(folder, {
      database: join(disk.root, 'ledger.db'),
      upstreams: { default: { url: upstream.url, api_key: 'any', lag_price: 1_000, budget } },
    });
    server.start({ env: disk.env });
    await server.listening();
    const ids = Array.from({ length: TRACKED }, () => randomUUID());
    await client.track(ids);

    const arrivals = new Map<string, number>();
    const leave = new AbortController();
    onTestFinished(() => leave.abort());
    const reading = async () => {
      const signal = leave.signal;
      for await (const { data } of client.events({ types: ['submission.cancelled'], signal }))
        if ('submission' in data) arrivals.set(data.submission.submission_id, performance.now());
    };
    const read = reading();

    const measureRound = async (samples: Samples) => {
      const until = performance.now() + ROUND_MS;
      const repeat = async (work: () => Promise<void>) => {
        for (; performance.now() < until; await sleep(20)) await work();
      };
      await Promise.all([
        repeat(() => timed(samples.livez, () => fetch(`${server.url}/livez`))),
        repeat(() => timed(samples.status, () => client.get(ids.at(-samples.status.length) ?? ''))),
        repeat(async () => {
          const id = randomUUID();
          await timed(samples.post, () => client.track([id]));
          await client.cancel(id);
          const acknowledged = performance.now();
          while (!arrivals.has(id)) await sleep(1);
          samples.event.push(Math.max(0, (arrivals.get(id) ?? 0) - acknowledged));
        }),
      ]);
    };
    const measured = DELAYS_MS.map((): Samples => ({ livez: [], status: [], event: [], post: [] }));
    await sleep(2_000);
    for (let round = 0; round < ROUNDS; round++)
      for (const [index, syncDelayMs] of DELAYS_MS.entries()) {
        disk.set({ syncDelayMs });
        await sleep(500);
        await measureRound(measured[index] as Samples);
      }
    const [fast, slow] = measured.map((samples) => ({
      livezP99: percentile(samples.livez, 99),
      status: percentile(samples.status, 50),
      event: percentile(samples.event, 50),
      post: percentile(samples.post, 50),
    }));
    console.log('milliseconds at 0 and 20 ms per sync:');
    console.table([fast, slow]);
    if (!fast || !slow) throw new Error('nothing was measured');
    expect(slow.livezP99 / fast.livezP99).toBeLessThan(MAX_RATIO);
    // Most would take as much longer as a sync if they waited for it, as a post does.
    expect(slow.status - fast.status).toBeLessThan(SYNC_MS / 2);
    expect(slow.event - fast.event).toBeLessThan(SYNC_MS / 2);
    expect(slow.post - fast.post).toBeGreaterThan(SYNC_MS / 2);
    leave.abort();
    await read;
    expect(await server.stop()).toBe(0);
  },
);

async function timed(samples: number[], work: () => Promise<unknown>): Promise<void> {
  const from = performance.now();
  await work();
  samples.push(performance.now() - from);
}

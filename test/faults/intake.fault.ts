import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import { CRASH_API_KEY } from '../support/processes/killable-server.ts';
import { allDelivered } from '../support/servers/deliveries.ts';
import { auditAfterFault } from './support/audit.ts';
import { watch } from './support/probe.ts';
import { prepareWorld } from './support/world.ts';

const MANY = 1_000;
const CLIENTS = 128;
/** Of each client, which ignores Retry-After. */
const REQUESTS = 2;
/** No server listens there: submissions at this upstream stay open and cost no responses. */
const ABSENT = { url: 'http://127.0.0.1:1', api_key: 'any' };
/** In addition to an idle server: bodies, responses and watched submissions. */
const MEMORY_MIB = 700;

test('under more load than it takes, loses nothing that it accepted, and stays healthy', async () => {
  const world = await prepareWorld('overload', {
    settings: { log: { level: 'warn' }, limits: { requests_per_minute: 0 } },
    // The default timeout, because the machine may be slow.
    upstream: { timeout_s: 10 },
    upstreams: { absent: ABSENT },
  });
  await world.start();
  await world.track(100);
  const finals = world.expected.size;
  const seen = watch(world.server);
  const accepted: string[] = [];
  const statuses: number[] = [];
  const flood = async () => {
    for (let count = 0; count < REQUESTS; count++) {
      const ids = Array.from({ length: MANY }, () => `flood-${randomUUID()}`);
      const { status, headers } = await fetch(`${world.server.url}/v1/submissions`, {
        method: 'POST',
        headers: { 'x-api-key': CRASH_API_KEY, 'content-type': 'application/json' },
        body: JSON.stringify({ submission_ids: ids, upstream: 'absent' }),
      });
      statuses.push(status);
      if (status === 202) for (const id of ids) accepted.push(id);
      // Without Retry-After, it has exceeded its time limit.
      else expect([status, headers.get('retry-after') ?? '5']).toEqual([503, '5']);
    }
  };
  await Promise.all(Array.from({ length: CLIENTS }, flood));
  const { refused, peakMiB, slowestMs, durationsMs } = await seen.end();
  const taken = statuses.filter((status) => status === 202).length;
  console.log(
    `${CLIENTS} clients with ${MANY} ids each: ${taken} requests taken, ${statuses.length - taken} refused; ` +
      `at most ${peakMiB.toFixed(0)} MiB; the slowest of ${durationsMs.length} probes ${(slowestMs / 1_000).toFixed(1)} s`,
  );
  // How many it refuses depends on the machine.
  expect(taken).toBeGreaterThan(0);
  expect(refused).toEqual([]);
  expect(peakMiB).toBeLessThan(MEMORY_MIB);
  for (const id of accepted) world.expected.set(id, 'tracking');
  const { server, expected, receiver } = world;
  await allDelivered(server.file, finals);
  await auditAfterFault({ server, expected, receiver, memoryMiB: MEMORY_MIB });
});

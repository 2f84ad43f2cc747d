import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import { CRASH_API_KEY, sleep } from '../../support/processes/killable-server.ts';
import { allDelivered } from '../../support/servers/deliveries.ts';
import { auditAfterFault } from '../support/audit.ts';
import { openPoster, quantile } from '../support/flood.ts';
import { watch } from '../support/probe.ts';
import { prepareWorld } from '../support/world.ts';

const API = { api_key: 'sandbox-key' };
const MANY = 10_000;
/** No server listens there: submissions at this upstream stay open and cost no responses. */
const ABSENT = { url: 'http://127.0.0.1:1', ...API };
/** In addition to an idle server: bodies, responses and watched submissions. */
const MEMORY_MIB = 700;

async function prepare(name: string) {
  const world = await prepareWorld(name, {
    settings: {
      log: { level: 'warn' },
      limits: { requests_per_minute: 0 },
    },
    // The default timeout, because the machine may be slow.
    upstream: { timeout_s: 10 },
    upstreams: { absent: ABSENT },
  });
  await world.start();
  return world;
}

type World = Awaited<ReturnType<typeof prepare>>;

/**
 * Expects that every submission at the working upstream is final and delivered, and that the others
 * are stored and open.
 */
async function expectSurvived(world: World, waiting: Iterable<string>): Promise<void> {
  for (const id of waiting) world.expected.set(id, 'tracking');
  const { server, receiver } = world;
  const finals = [...world.expected.values()].filter((status) => status === 'finalized').length;
  await allDelivered(server.file, finals);
  await auditAfterFault({ server, expected: world.expected, receiver, memoryMiB: MEMORY_MIB });
}

test('accepts 10,000 ids in one request, and one id from 1,000 concurrent clients once', async () => {
  const world = await prepare('large requests');
  const poster = openPoster(world.server.url, CRASH_API_KEY, 1_000);
  const ids = Array.from({ length: MANY }, () => `large-${randomUUID()}`);
  expect(
    (await poster.post(JSON.stringify({ submission_ids: ids, upstream: 'absent' }))).status,
  ).toBe(202);
  const [id = ''] = world.submit(1);
  const body = JSON.stringify({ submission_id: id });
  const statuses = (await Promise.all(Array.from({ length: 1_000 }, () => poster.post(body)))).map(
    ({ status }) => status,
  );
  expect([...new Set(statuses)]).toEqual([202]);
  world.expected.set(id, 'finalized');
  poster.close();
  await expectSurvived(world, ids);
});

test('refuses excess load early, and loses nothing that it accepted', async () => {
  const world = await prepare('overload');
  await world.track(500);
  const seen = watch(world.server);
  const poster = openPoster(world.server.url, CRASH_API_KEY, 64);
  const accepted: string[] = [];
  const statuses: number[] = [];
  const until = performance.now() + 4_000;
  const flood = async () => {
    while (performance.now() < until) {
      const ids = Array.from({ length: MANY }, () => `flood-${randomUUID()}`);
      const { status, retryAfterS } = await poster.post(
        JSON.stringify({ submission_ids: ids, upstream: 'absent' }),
      );
      statuses.push(status);
      if (status === 202) for (const id of ids) accepted.push(id);
      else expect([status, retryAfterS]).toEqual([503, 5]);
      // Clients that ignore Retry-After.
      await sleep(200);
    }
  };
  await Promise.all(Array.from({ length: 64 }, flood));
  const { refused, peakMiB, slowestMs, requestCount: requests } = await seen.end();
  poster.close();
  const taken = statuses.filter((status) => status === 202).length;
  console.log(
    `64 clients with 10,000 ids each: ${taken} requests taken, ${statuses.length - taken} refused; ` +
      `at most ${peakMiB.toFixed(0)} MiB; the slowest of ${requests} probes ${(slowestMs / 1_000).toFixed(1)} s`,
  );
  expect(taken).toBeGreaterThan(0);
  expect(statuses.length - taken).toBeGreaterThan(0);
  expect(refused).toEqual([]);
  expect(peakMiB).toBeLessThan(MEMORY_MIB);
  expect(world.server.lines.some((line) => line.includes('"http.shed"'))).toBe(true);
  // The server was busy; it must not report an outage of the upstream.
  expect(
    world.server.lines.filter(
      (line) => line.includes('"upstream.down"') && line.includes('"default"'),
    ),
  ).toEqual([]);
  await expectSurvived(world, accepted);
});

test('accepts 2,000 ids a second for a minute while it polls at its full budget', async () => {
  const world = await prepare('intake');
  const seen = watch(world.server);
  const poster = openPoster(world.server.url, CRASH_API_KEY, 64);
  const [perRequest, everyMs, requests] = [50, 25, 2_400];
  const accepted: string[] = [];
  const latencies: number[] = [];
  let refusals = 0;
  const sendUntilAcknowledged = async (body: string) => {
    for (;;) {
      const { status, retryAfterS = 0, ms } = await poster.post(body);
      latencies.push(ms);
      if (status === 202) return;
      expect(status).toBe(503);
      refusals += 1;
      await sleep(retryAfterS * 1_000);
    }
  };
  const from = performance.now();
  const sending: Promise<void>[] = [];
  for (let index = 0; index < requests; index++) {
    // One in ten is at the working upstream, which is polled without a pause.
    const isChecked = index % 10 === 0;
    const ids = isChecked
      ? world.submit(perRequest)
      : Array.from({ length: perRequest }, () => `i-${randomUUID()}`);
    for (const id of ids) {
      if (isChecked) world.expected.set(id, 'finalized');
      else accepted.push(id);
    }
    sending.push(
      sendUntilAcknowledged(
        JSON.stringify({ submission_ids: ids, ...(!isChecked && { upstream: 'absent' }) }),
      ),
    );
    await sleep(Math.max(0, from + (index + 1) * everyMs - performance.now()));
  }
  await Promise.all(sending);
  const tookS = (performance.now() - from) / 1_000;
  const { refused, peakMiB } = await seen.end();
  poster.close();
  console.log(
    `${requests * perRequest} ids in ${tookS.toFixed(1)} s (${((requests * perRequest) / tookS).toFixed(0)} a second), ${refusals} refusals, ` +
      `p50 ${quantile(latencies, 0.5).toFixed(0)} ms, p99 ${quantile(latencies, 0.99).toFixed(0)} ms, at most ${peakMiB.toFixed(0)} MiB; ` +
      `meanwhile ${world.sandbox.stats().requests} requests upstream`,
  );
  expect(refused).toEqual([]);
  expect(peakMiB).toBeLessThan(MEMORY_MIB);
  await expectSurvived(world, accepted);
});

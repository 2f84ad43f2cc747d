import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import { sleep } from '../../support/processes/killable-server.ts';
import { openFaultyUpstream } from '../support/faulty-upstream.ts';
import { prepareWorld } from '../support/world.ts';
import { respondWith } from './content-faults.ts';

const GRACE_S = 1;
const recordNotFound = respondWith(500, '{"error":"Record not found"}');
const notFound = respondWith(404, '{"error":"Submission not found"}');

async function openWorld(name: string) {
  const upstream = await openFaultyUpstream();
  const world = await prepareWorld(name, {
    upstreamUrl: upstream.url,
    settings: { submissions: { unknown_grace_s: GRACE_S } },
  });
  upstream.sandboxUrl = world.sandbox.url;
  await world.start();
  const { client } = world.server;
  const track = async (ids: readonly string[], deadline?: Date) => {
    await client.track(ids, deadline && { deadline: deadline.toISOString() });
    for (const id of ids) world.expected.set(id, 'finalized');
  };
  const statusesOf = async (ids: readonly string[]) =>
    new Set(await Promise.all(ids.map(async (id) => (await client.get(id)).status)));
  return { faultyUpstream: upstream, world, client, track, statusesOf };
}

test.each([
  ['500 "Record not found"', recordNotFound],
  ['404', notFound],
])('the server was down while the grace period elapsed: %s ends nothing', async (name, fault) => {
  const {
    faultyUpstream: upstream,
    world,
    track,
    statusesOf,
  } = await openWorld(`down over the grace period, ${name}`);
  await world.track(20);
  const late = world.submit(20);
  upstream.injectFor(late, fault);
  await track(late);
  for (let run = 0; run < 3; run++) {
    await world.server.kill();
    await sleep(2_000 * GRACE_S);
    const before = late.map((id) => upstream.requestCount(id));
    world.server.start();
    await world.server.listening();
    do {
      expect([...(await statusesOf(late))]).toEqual(['tracking']);
      await sleep(50);
    } while (late.some((id, index) => upstream.requestCount(id) < (before[index] ?? 0) + 2));
    expect([...(await statusesOf(late))]).toEqual(['tracking']);
  }
  upstream.stopFaults();
  await world.expectSurvived();
});

test('a failing database that reports every id as not found ends nothing, including new ids and kills', async () => {
  const { faultyUpstream: upstream, world, track, statusesOf } = await openWorld('database fault');
  await world.track(5);
  upstream.aboutAll = recordNotFound;
  const late = world.submit(20);
  await track(late);
  const never: string = randomUUID();
  await world.server.client.track([never]);
  for (let run = 0; run < 2; run++) {
    await sleep(3_000 * GRACE_S);
    await world.server.kill();
    world.server.start();
    await world.server.listening();
  }
  expect([...(await statusesOf([...late, never]))]).toEqual(['tracking']);
  await world.server.client.cancel(never);
  world.expected.set(never, 'cancelled');
  upstream.stopFaults();
  await world.expectSurvived();
});

test('a Retry-After that is longer than the deadline ends nothing, not even after a kill', async () => {
  const {
    faultyUpstream: upstream,
    world,
    client,
    track,
  } = await openWorld('Retry-After beyond the deadline');
  const ids = world.submit(5);
  const pending = respondWith(200, '{"state":"Pending","error":null,"data":{}}');
  const times: number[] = [];
  // The pause ends after the deadline; a later response would expire a submission whose deadline
  // had not moved.
  upstream.aboutAll = respondWith(429, 'Too many requests', { 'retry-after': '12' });
  const deadline = new Date(Date.now() + 3_000);
  await track(ids, deadline);
  while (world.server.logged('server.started').length === 0 || upstream.requests === 0)
    await sleep(20);
  await sleep(500);
  await world.server.kill();
  upstream.aboutAll = (exchange) => {
    times.push(Date.now());
    return pending(exchange);
  };
  world.server.start();
  await world.server.listening();
  while (times.length < 10) await sleep(50);
  expect(Math.min(...times)).toBeGreaterThan(deadline.getTime() + 3_000);
  for (const id of ids) expect((await client.get(id)).status).toBe('pending');
  upstream.stopFaults();
  await world.expectSurvived();
});

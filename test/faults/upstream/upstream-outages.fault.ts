import { expect, test } from 'vitest';
import { STEP_MS } from '../../support/patience.ts';
import { sleep } from '../../support/processes/killable-server.ts';
import {
  type FaultyUpstream,
  openFaultyUpstream,
  type ResponseFault,
} from '../support/faulty-upstream.ts';
import { dataByIdOf } from '../support/stored-data.ts';
import { prepareWorld } from '../support/world.ts';
import { fake, respondWith } from './false-responses.ts';

const OUT_MS = 1_200;

/** How a whole upstream fails, and the state that dawatch reports. */
type Outage = {
  begin: (upstream: FaultyUpstream) => void;
  reportedAs?: 'down' | 'unauthorized';
};

const toAll = (fault: ResponseFault, reportedAs?: Outage['reportedAs']): Outage => ({
  begin: (upstream) => {
    upstream.aboutAll = fault;
  },
  ...(reportedAs && { reportedAs }),
});
const atConnection = (act: NonNullable<FaultyUpstream['atConnection']>): Outage => ({
  begin: (upstream) => {
    upstream.atConnection = act;
    upstream.hangUp();
  },
  reportedAs: 'down',
});
const plain = { 'content-type': 'text/plain' };
const throttled = (headers = {}) => respondWith(429, 'Too many requests', { ...plain, ...headers });

const OUTAGES: Record<string, Outage> = {
  'connections that are reset': atConnection((socket) => socket.resetAndDestroy()),
  'connections that are silent': atConnection(() => undefined),
  '401 to every request': toAll(respondWith(401, 'Invalid API key', plain), 'unauthorized'),
  '429 without Retry-After': toAll(throttled()),
  '503 with Retry-After': toAll(respondWith(503, '<html>', { 'retry-after': '1' }), 'down'),
  'a response about another id to every request': toAll(
    respondWith(200, () => fake('0c9e2d7a-1111-4222-8333-444455556666')),
    'down',
  ),
  'Record not found to every request': toAll(respondWith(500, '{"error":"Record not found"}')),
};

test('an upstream that fails completely, in one way after another, loses nothing and is polled again', async () => {
  const upstream = await openFaultyUpstream();
  const world = await prepareWorld('upstream outages', {
    upstreamUrl: upstream.url,
    settings: { submissions: { unknown_grace_s: 1 } },
  });
  upstream.sandboxUrl = world.sandbox.url;
  const { client } = world.server;
  const reportCount = (what: 'down' | 'unauthorized') =>
    world.server.logged(`upstream.${what}`).length;
  await world.start();
  for (const [name, { begin, reportedAs }] of Object.entries(OUTAGES)) {
    const before = reportedAs && reportCount(reportedAs);
    begin(upstream);
    const ids = await world.track(10);
    const endsAt = performance.now() + OUT_MS;
    while (performance.now() < endsAt || (reportedAs && reportCount(reportedAs) === before)) {
      expect(performance.now(), `${name}: not reported`).toBeLessThan(endsAt + STEP_MS);
      expect((await fetch(`${world.server.url}/livez`)).status, name).toBe(200);
      await sleep(100);
    }
    await world.server.kill();
    await world.start();
    for (const id of ids) expect([name, (await client.get(id)).status]).toEqual([name, 'tracking']);
    upstream.stopFaults();
    for (const id of ids)
      expect([name, (await client.waitUntilFinal(id, { timeoutMs: STEP_MS })).status]).toEqual([
        name,
        'finalized',
      ]);
  }

  await world.expectSurvived();
  const expectedData = dataByIdOf(world.server.file);
  const blockOf = (id: string) => `0x${world.sandbox.model.read(id, Date.now())?.block?.hash}`;
  for (const id of world.expected.keys())
    expect(expectedData.get(id)?.block_hash, id).toBe(blockOf(id));
});

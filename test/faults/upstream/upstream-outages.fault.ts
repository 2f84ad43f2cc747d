import { expect, test } from 'vitest';
import { eventually } from '../../support/until.ts';
import {
  type FaultyUpstream,
  openFaultyUpstream,
  type ResponseFault,
} from '../support/faulty-upstream.ts';
import { dataByIdOf } from '../support/stored-data.ts';
import { prepareWorld, UPSTREAM } from '../support/world.ts';
import { fake, respondWith } from './false-responses.ts';

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

/** By the name of the upstream. */
const OUTAGES: Record<string, Outage> = {
  'resets-connections': atConnection((socket) => socket.resetAndDestroy()),
  'leaves-connections-silent': atConnection(() => undefined),
  'refuses-the-key': toAll(respondWith(401, 'Invalid API key', plain), 'unauthorized'),
  'throttles-without-retry-after': toAll(throttled()),
  'fails-with-retry-after': toAll(respondWith(503, '<html>', { 'retry-after': '1' }), 'down'),
  'responds-about-another-id': toAll(
    respondWith(200, () => fake('0c9e2d7a-1111-4222-8333-444455556666')),
    'down',
  ),
  'finds-no-record': toAll(respondWith(500, '{"error":"Record not found"}')),
};
const NAMES = Object.keys(OUTAGES);
const IDS = 5;

test('upstreams that fail completely, each in another way, lose nothing, delay no other one, and are polled again, also if the server is killed meanwhile', async () => {
  const healthy = await openFaultyUpstream();
  const failing = new Map<string, FaultyUpstream>();
  for (const name of NAMES) failing.set(name, await openFaultyUpstream());
  const world = await prepareWorld('upstream outages', {
    upstreamUrl: healthy.url,
    upstreams: Object.fromEntries(
      [...failing].map(([name, { url }]) => [name, { url, ...UPSTREAM }]),
    ),
    settings: { submissions: { unknown_grace_s: 1 } },
  });
  for (const upstream of [healthy, ...failing.values()]) upstream.sandboxUrl = world.sandbox.url;
  const { client } = world.server;
  const trackAt = async (upstreams: readonly string[]) => {
    const tracked = new Map<string, string[]>();
    for (const upstream of upstreams) tracked.set(upstream, await world.track(IDS, { upstream }));
    return tracked;
  };
  const statuses = async (ids: readonly string[]) =>
    new Set(await Promise.all(ids.map(async (id) => (await client.get(id)).status)));
  await world.start();
  // The first upstream has returned nothing before its outage.
  await world.untilFinal([...(await trackAt(NAMES.slice(1))).values()].flat());

  const requests = new Map([...failing].map(([name, { requests }]) => [name, requests]));
  for (const [name, upstream] of failing) OUTAGES[name]?.begin(upstream);
  const outages = await trackAt(NAMES);
  const isReported = (name: string, { reportedAs }: Outage) =>
    reportedAs === undefined
      ? (failing.get(name)?.requests ?? 0) > (requests.get(name) ?? 0)
      : world.server.logged(`upstream.${reportedAs}`).some(({ upstream }) => upstream === name);
  await eventually(async () => {
    expect((await fetch(`${world.server.url}/livez`)).status).toBe(200);
    expect(NAMES.filter((name) => !isReported(name, OUTAGES[name] as Outage))).toEqual([]);
  });
  await world.untilFinal(await world.track(IDS));
  await world.server.kill();
  await world.start();
  for (const [name, ids] of outages)
    expect([name, await statuses(ids)]).toEqual([name, new Set(['tracking'])]);
  for (const upstream of failing.values()) upstream.stopFaults();
  await world.untilFinal([...outages.values()].flat());

  await world.expectSurvived();
  const expectedData = dataByIdOf(world.server.file);
  const blockOf = (id: string) => `0x${world.sandbox.model.read(id, Date.now())?.block?.hash}`;
  for (const id of world.expected.keys())
    expect(expectedData.get(id)?.block_hash, id).toBe(blockOf(id));
});

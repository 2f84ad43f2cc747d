import { expect, onTestFinished, test } from 'vitest';
import { isFinal } from '../../../src/client/index.ts';
import { eventually } from '../../support/until.ts';
import { openFaultyUpstream } from '../support/faulty-upstream.ts';
import { dataByIdOf } from '../support/stored-data.ts';
import { prepareWorld } from '../support/world.ts';
import { DIGITS, INVALID_RESPONSES, UNUSUAL_RESPONSES } from './false-responses.ts';

const IDS_PER_FAULT = 2;
const HONEST = 100;
/**
 * While bodies of any size arrive, and afterwards: of some 280 MiB the heap is 60, and malloc keeps
 * freed memory.
 */
const MAX_MEMORY_MIB = 400;
const MEMORY_MIB = 350;

test('an upstream that misreports many ids in every way loses none of them, and affects no other', async () => {
  const upstream = await openFaultyUpstream();
  const world = await prepareWorld('upstream responses', { upstreamUrl: upstream.url });
  upstream.sandboxUrl = world.sandbox.url;
  await world.start();
  const faults = { ...INVALID_RESPONSES, ...UNUSUAL_RESPONSES };
  const faultFor = new Map<string, string>();
  for (const [name, fault] of Object.entries(faults)) {
    const ids = world.submit(IDS_PER_FAULT);
    upstream.injectFor(ids, fault);
    for (const id of ids) faultFor.set(id, name);
  }
  const idsOf = (some: object) =>
    [...faultFor].filter(([, name]) => name in some).map(([id]) => id);
  const { client } = world.server;
  await client.track([...faultFor.keys()]);
  for (const id of faultFor.keys()) world.expected.set(id, 'finalized');
  const honest = await world.track(HONEST);

  let peakMiB = 0;
  const watching = setInterval(() => {
    peakMiB = Math.max(peakMiB, world.server.residentMiB() ?? 0);
  }, 100);
  onTestFinished(() => clearInterval(watching));
  // The other submissions become final although false responses arrive beside.
  await world.untilFinal([...honest, ...idsOf(UNUSUAL_RESPONSES)]);
  const invalidResponses = idsOf(INVALID_RESPONSES);
  await eventually(() =>
    expect(invalidResponses.filter((id) => upstream.requestCount(id) < 2)).toEqual([]),
  );
  // The false responses were sent for a while, and none was accepted.
  for (const id of invalidResponses) {
    const { status, error } = await client.get(id);
    expect([faultFor.get(id), isFinal(status), (error?.length ?? 0) > 2_001]).toEqual([
      faultFor.get(id),
      false,
      false,
    ]);
  }
  console.log(`${upstream.requests} requests, most memory ${peakMiB.toFixed(0)} MiB`);
  expect(peakMiB).toBeLessThan(MAX_MEMORY_MIB);

  upstream.stopFaults();
  await world.expectSurvived({ memoryMiB: MEMORY_MIB });
  expect(upstream.followed).toEqual([]);
  const expectedData = dataByIdOf(world.server.file);
  const blockOf = (id: string) => `0x${world.sandbox.model.read(id, Date.now())?.block?.hash}`;
  for (const id of world.expected.keys())
    expect(expectedData.get(id)?.block_hash, id).toBe(blockOf(id));
  for (const [id, name] of faultFor)
    if (name.startsWith('39 digits')) expect(expectedData.get(id)?.fees, name).toBe(DIGITS);
  for (const line of world.server.lines) {
    // biome-ignore lint/suspicious/noControlCharactersInRegex: those are what must not be there.
    expect(line).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u202e]/);
    expect(() => JSON.parse(line)).not.toThrow();
    expect(line.length).toBeLessThan(20_000);
  }
});

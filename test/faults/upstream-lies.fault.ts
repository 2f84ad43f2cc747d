import { expect, onTestFinished, test, vi } from 'vitest';
import { isFinal } from '../../src/client/shapes.ts';
import { openLiar } from './support/liar.ts';
import { DIGITS, INCREDIBLE, ODD_TRUTHS } from './support/lies-of-content.ts';
import { BROKEN_WAYS } from './support/lies-of-transport.ts';
import { truthsOf } from './support/truth.ts';
import { prepareWorld } from './support/world.ts';

const IDS_PER_LIE = 2;
const HONEST = 200;
/** While bodies of any size come in, and once they are gone: of some 280 MiB the heap is 60, what was freed is kept by malloc. */
const MOST_MEMORY_MIB = 400;
const MEMORY_MIB = 350;

test('an upstream that misreports many ids in every way loses none of them, and affects no other', async () => {
  const liar = await openLiar();
  const world = await prepareWorld('upstream lies', { upstreamUrl: liar.url });
  liar.truthUrl = world.sandbox.url;
  await world.start();
  const lies = { ...INCREDIBLE, ...BROKEN_WAYS, ...ODD_TRUTHS };
  const lieAbout = new Map<string, string>();
  for (const [name, lie] of Object.entries(lies)) {
    const ids = world.submit(IDS_PER_LIE);
    liar.lieAbout(ids, lie);
    for (const id of ids) lieAbout.set(id, name);
  }
  const idsOf = (some: object) => [...lieAbout].filter(([, name]) => name in some).map(([id]) => id);
  const { client } = world.server;
  await client.track([...lieAbout.keys()]);
  for (const id of lieAbout.keys()) world.expected.set(id, 'finalized');
  const honest = await world.track(HONEST);

  let mostMiB = 0;
  const watching = setInterval(() => {
    mostMiB = Math.max(mostMiB, world.server.residentMiB() ?? 0);
  }, 100);
  onTestFinished(() => clearInterval(watching));
  const startedAt = performance.now();
  // The others go on: what is true is known although lies come in beside.
  const known = [...honest, ...idsOf(ODD_TRUTHS)];
  const waited = await Promise.all(known.map((id) => client.waitUntilFinal(id, { timeoutMs: 60_000 })));
  expect(waited.filter(({ status }) => status !== 'finalized')).toEqual([]);
  console.log(`${known.length} ids were final after ${Math.round(performance.now() - startedAt)} ms`);
  const incredible = [...idsOf(INCREDIBLE), ...idsOf(BROKEN_WAYS)];
  await vi.waitFor(() => expect(incredible.filter((id) => liar.told(id) < 2)).toEqual([]), {
    timeout: 60_000,
    interval: 200,
  });
  // Told for a while by now: none of it was believed.
  for (const id of incredible) {
    const { status, error } = await client.get(id);
    expect([lieAbout.get(id), isFinal(status), (error?.length ?? 0) > 2_001]).toEqual([lieAbout.get(id), false, false]);
  }
  console.log(`${liar.requests} requests, most memory ${mostMiB.toFixed(0)} MiB`);
  expect(mostMiB).toBeLessThan(MOST_MEMORY_MIB);

  liar.relent();
  await world.survives({ memoryMiB: MEMORY_MIB });
  expect(liar.followed).toEqual([]);
  const truths = truthsOf(world.server.file);
  const blockOf = (id: string) => `0x${world.sandbox.model.read(id, Date.now())?.block?.hash}`;
  for (const id of world.expected.keys()) expect(truths.get(id)?.block_hash, id).toBe(blockOf(id));
  for (const [id, name] of lieAbout) if (name.startsWith('39 digits')) expect(truths.get(id)?.fees, name).toBe(DIGITS);
  for (const line of world.server.lines) {
    // biome-ignore lint/suspicious/noControlCharactersInRegex: those are what must not be there.
    expect(line).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u202e]/);
    expect(() => JSON.parse(line)).not.toThrow();
    expect(line.length).toBeLessThan(20_000);
  }
});

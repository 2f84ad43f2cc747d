import { afterAll, beforeAll, expect, it } from 'vitest';
import { eventually } from '../../support/until.ts';
import { connectRaw, startChopsticks } from './support/chopsticks.ts';
import { dataRootOf, hashesIn, hashesOf, inOneBlock } from './support/extrinsics.ts';
import { describeNode, openClient } from './support/node-conformance.ts';

/** The raw genesis of Avail's main network: misc/genesis of its repository. No registry has it. */
const { AVAIL_GENESIS } = process.env;

let node: Awaited<ReturnType<typeof startChopsticks>>;
let raw: Awaited<ReturnType<typeof connectRaw>>;
beforeAll(async () => {
  if (!AVAIL_GENESIS) console.log('Without AVAIL_GENESIS, the genesis of Avail is not tested.');
  node = await startChopsticks();
  raw = await connectRaw(node.url);
});
afterAll(async () => {
  raw?.close();
  await node?.stop();
});

describeNode('chopsticks', async () => {
  const { url, transaction } = node;
  if (transaction === null) throw new Error('it has no transaction');
  const name = await raw.call<string>('system_chain');
  const genesisHash = await raw.call<string>('chain_getBlockHash', 0);
  return { url, name, genesisHash, transaction, build: raw.build, replace: raw.replace };
});

it('a node that stops and starts again is connected again', async () => {
  const { url } = node;
  const { chain, clock, head, newest } = await openClient(url);
  const before = await newest();
  raw.close();
  await node.stop();
  await eventually(() => expect(chain.status()?.nodes[0]?.state).toBe('disconnected'));
  const { port } = new URL(url);
  expect(chain.status()?.nodes[0]?.problem).toBe('it closed the connection (1006)');
  node = await startChopsticks(Number(port));
  raw = await connectRaw(url);
  await eventually(async () => {
    await clock.advance(1_000);
    expect(chain.status()).toMatchObject({ nodes: [{ state: 'used' }] });
  });
  // It starts with fewer blocks, and the client expects a newer one.
  const built = await raw.build(before);
  await head(built.block_number);
  expect(chain.status()?.nodes[0]?.problem).toBeNull();
});

it.runIf(AVAIL_GENESIS)('Avail has a final block 0, and its extrinsics are read', async () => {
  const { url, avail, stop } = await startChopsticks(0, AVAIL_GENESIS);
  try {
    const { chain, verify, head } = await openClient(url);
    await head(0);
    const { name, genesisHash } = chain.status() ?? {};
    expect(name).toBe('avail_da_mainnet');
    const block = { block_number: 0, block_hash: String(genesisHash) };
    expect(await verify({ ...block, tx_index: 0, tx_hash: '0x00' })).toEqual({
      verdict: 'contradicted',
      reason: 'transaction 0 of block 0 is not 0x00: block 0 has none',
    });
    const { extrinsics } = avail ?? { extrinsics: [] };
    for (const one of extrinsics)
      expect(await hashesIn(one), `${one.name}, ${one.layout}`).toEqual(hashesOf(one.data));
    const inBlock = inOneBlock(extrinsics);
    expect(inBlock.length).toBeGreaterThan(0);
    const { dataRoot } = await connectRaw(url);
    expect(await dataRootOf(inBlock)).toBe(await dataRoot(inBlock));
  } finally {
    await stop();
  }
});

import { blake2b } from '@noble/hashes/blake2.js';
import { keccak_256 } from '@noble/hashes/sha3.js';
import { describe, expect, it } from 'vitest';
import { InvalidProofError, type Proof, verifyProof } from '../../../src/client/proof.ts';
import { Blocks, type ReadBlock } from '../../../src/polling/chain/blocks.ts';
import { encodeHeader } from '../../../src/polling/chain/header.ts';
import { type Chain, ChainError } from '../../../src/polling/chain/port.ts';
import { toProofBody } from '../../../src/polling/chain/proof-route.ts';
import {
  compact,
  submitDataExtrinsic,
  timestampExtrinsic,
  transferExtrinsic,
} from '../../../src/sandbox/chain/extrinsics.ts';
import { blockOf } from '../../support/chain/block.ts';
import { stubChain } from '../../support/chain/stub-chain.ts';
import { createVirtualClock } from '../../support/virtual-time/virtual-clock.ts';
import { dataRootOf, hashesIn, hashesOf, inOneBlock, readRecorded } from './support/extrinsics.ts';

const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex');
const fromHex = (digits: string) => Buffer.from(digits, 'hex');
const ZEROS = new Uint8Array(32);
const text = (data: string) => Buffer.from(data);
const at = (txIndex: number) => ({ seed: 1, blockNumber: 7, txIndex });
const blocksOf = (chain: Chain) => new Blocks(chain, createVirtualClock(0));
const submits = (data: Uint8Array, index = 0) => submitDataExtrinsic(at(index), data);

/** What is read of a block whose header has a data root, 64 digits. */
async function read(
  extrinsics: readonly Uint8Array[],
  dataRoot: string,
  proofOf: (params: unknown[]) => unknown = () => null,
) {
  const { hash, header, message } = blockOf(7, extrinsics, { dataRoot });
  const { chain } = stubChain(async (_, method, params) =>
    method === 'chain_getBlock' ? message : proofOf(params),
  );
  return { hash, header, ...(await blocksOf(chain).of(7, hash)) };
}

async function readData(extrinsics: readonly Uint8Array[], dataRoot: string) {
  return dataOf(await read(extrinsics, dataRoot));
}

function dataOf({ proof }: Pick<ReadBlock, 'proof'>) {
  if (typeof proof === 'string') throw new Error(proof);
  const proofOf = (index: number) => {
    if (!proof.block) throw new Error('the block has no data');
    return toProofBody(proof.block, { index, block_number: 7 });
  };
  return { data: proof.data, proofOf };
}

const withBridge = (blobRoot: Uint8Array, bridgeRoot: Uint8Array) =>
  hex(keccak_256(Buffer.concat([blobRoot, bridgeRoot])));

// Roots and neighbours of the tests of availproject/avail, header_extension_builder_data_tests.rs.
const EMPTY = 'ad3228b676f7d3cd4284a5443f17f1962b36e491b30a40b2405849e597ba5fb5';
const HALF = '3c86bde3a90d18efbcf23e27e9b6714012aa055263fe903a72333aa9caa37f1b';
const OTHER_HALF = 'db0ccc7a2d6559682303cc9322d4b79a7ad619f0c87d5f94723a33015550a64e';
const PADDING = '290decd9548b62a8d60345a988386fc84ba6bc95484008f6362f93160ef3e563';
const [LEAF_0, LEAF_1] = [
  '40105d5bc10105c17fd72b93a8f73369e2ee6eee4d4714b7bf7bf3c2f156e601',
  '4aeff0db81e3146828378be230d377356e57b6d599286b4b517dbf8941b3e1b2',
];
const ROOT_OF_3 = '877f9ed6aa67f160e9b9b7794bb851998d15b65d11bab3efc6ff444339a3d750';

it('reproduces the data root of one submission in a test of Avail', async () => {
  const root = 'f1f399f7e0d8c8ed712df0c21b4ec78f3b8533f1c3d0215e4023e1b7c80bfd91';
  const data = fromHex('abcd');
  const { proofOf } = await readData([submits(data)], root);
  expect(proofOf(0)).toMatchObject({ data_root: `0x${root}`, siblings: [] });
});

it('reproduces the neighbours in a test of Avail, in which empty data do not count', async () => {
  const list = ['0', '', '1', '2'].map((data, index) => submits(text(data), index));
  const { data, proofOf } = await readData(list, withBridge(fromHex(ROOT_OF_3), ZEROS));
  expect([...data.keys()]).toEqual([0, 2, 3]);
  const siblings = [0, 1, 2].map((index) => proofOf(index).siblings);
  expect(siblings).toEqual(
    [
      [LEAF_1, HALF],
      [LEAF_0, HALF],
      [PADDING, OTHER_HALF],
    ].map((one) => one.map((digits) => `0x${digits}`)),
  );
});

it.each([
  ['one call with 256 KiB', 1, 2 ** 18],
  ['8 calls with 32 KiB', 8, 2 ** 15],
])('lets other work run while it reads a block of %s', async (_name, calls, bytes) => {
  const extrinsics = Array.from({ length: calls }, (_, index) =>
    submits(Buffer.alloc(bytes), index),
  );
  let [turns, isRead] = [0, false];
  const count = () => {
    turns += 1;
    if (!isRead) setImmediate(count);
  };
  setImmediate(count);
  await read(extrinsics, EMPTY);
  isRead = true;
  expect(turns).toBeGreaterThanOrEqual(4);
});

it('finds no data in a block without any', async () => {
  const others = [
    timestampExtrinsic(1_760_000_000_000),
    transferExtrinsic(at(1)),
    submits(text('')),
  ];
  expect([...(await readData(others, EMPTY)).data]).toEqual([]);
});

/** A signed extrinsic of the runtime after spec 49: no application in the extensions. */
function nextExtrinsic(...call: Uint8Array[]): Uint8Array {
  const [address, signature] = [Buffer.alloc(33), Buffer.alloc(65, 1)];
  const extensions = Buffer.from([0, 4, 0]);
  const parts = Buffer.concat([Buffer.from([0x84]), address, signature, extensions, ...call]);
  return Buffer.concat([compact(parts.length), parts]);
}

it('reads the calls of the next runtime, whose tree is sorted by application', async () => {
  const [first, second] = [text('first'), text('second')];
  const submit = (appId: number, data: Uint8Array) =>
    nextExtrinsic(Buffer.from([29, 1]), compact(appId), compact(data.length), data);
  const leaves = [second, first].map((data) => keccak_256(keccak_256(data)));
  const root = withBridge(keccak_256(Buffer.concat(leaves)), ZEROS);
  const { proofOf } = await readData([submit(900, first), submit(3, second)], root);
  verifyProof(proofOf(0), second);
  verifyProof(proofOf(1), first);
});

it('reads all calls of a block in one layout, so that none can look like another', async () => {
  const data = text('some data');
  // The application 71 of today's layout has the bytes of `submit_data` in the next one.
  const lure = Buffer.from([29, 1, ...compact(0), ...compact(data.length)]);
  const root = withBridge(keccak_256(keccak_256(data)), ZEROS);
  const { data: found } = await readData([submits(data), nextExtrinsic(lure, data)], root);
  expect([...found.keys()]).toEqual([0]);
});

// `node .ci/chopsticks/record-extrinsics.ts` signs and records them again.
describe('signed extrinsics of Avail', () => {
  const { extrinsics, dataRoot } = readRecorded();

  it.each(extrinsics.filter(({ data }) => data !== null))(
    'finds the data of $name, with the application in an $layout',
    async (signed) => expect(await hashesIn(signed)).toEqual(hashesOf(signed.data)),
  );

  it.each(extrinsics.filter(({ data }) => data === null))(
    'finds no data in $name, with the application in an $layout',
    async (signed) => expect(await hashesIn(signed)).toBeNull(),
  );

  it('reproduces the data root that the runtime of Avail computes', async () => {
    expect(await dataRootOf(inOneBlock(extrinsics))).toBe(dataRoot);
  });
});

it('takes the root of bridge messages from the node, and proves it', async () => {
  const data = text('some data');
  const bridgeRoot = Buffer.alloc(32, 7);
  const root = withBridge(keccak_256(keccak_256(data)), bridgeRoot);
  const calls: unknown[] = [];
  const respond = (bridge: string) => (params: unknown[]) => {
    calls.push(params);
    return { dataProof: { roots: { bridgeRoot: bridge } } };
  };
  const extrinsics = [timestampExtrinsic(0), submits(data)];
  const found = await read(extrinsics, root, respond(`0x${hex(bridgeRoot)}`));
  expect(calls).toEqual([[1, found.hash]]);
  verifyProof(dataOf(found).proofOf(0), data);
  const other = await read(extrinsics, root, respond(`0x${hex(ZEROS)}`));
  expect(other.proof).toBe('block 7 has another data root than its direct submissions');
  const lacking = await read(extrinsics, root, () => {
    throw new ChainError('method_not_found', 'the node does not offer kate_queryDataProof');
  });
  expect(lacking.proof).toBe(
    'block 7 has more than submitted data, such as bridge messages, and no node offers kate_queryDataProof',
  );
});

it('proves nothing by a header of another block, or one without the extension', async () => {
  const { hash, message } = blockOf(7, [submits(text('a'))], { data: [text('a')] });
  const { extension, ...header } = message.block.header;
  const proofOf = async (changed: object) => {
    const block = { ...message.block, header: changed };
    const { proof } = await blocksOf(stubChain(async () => ({ block })).chain).of(7, hash);
    return proof;
  };
  expect(await proofOf(header)).toBe('the header of block 7 has no V3 extension');
  expect(await proofOf({ ...header, extension, stateRoot: `0x${'0'.repeat(64)}` })).toBe(
    'the node sends another header for block 7',
  );
});

// From a test of avail-core, header/mod.rs: a block of a test network.
it('computes the hash of a header of Avail', () => {
  const commitment =
    'ace5bc6a21eef8b28987eb878e0b97b5ae3c8b8e05efe957802dc0008b23327b349f62ec96bcee48bdc30f6bb670f3d1';
  const header = {
    parentHash: '0x84a90eef1c4a75c3cbfdf5095450725f924f1a2696946f6d9cf8401f6db99128',
    number: '0x5a056',
    stateRoot: '0x586140044543d7bb7471781322bcc2d7e4290716fbac7267e001843162f151d8',
    extrinsicsRoot: '0x9ea39eed403afde19c6688785530654a601bb62f0c178c78563933e303e001b6',
    digest: {
      logs: [
        '0x0642414245340201000000aa23040500000000',
        '0x054241424501 0182a0c0a19f4548adcd575cdc37555b3aeaaae4048a6d39013b98f412420977752459afdc5295d026a4d3476d4d8d3d5e55c3c109235350d9242b4e3132db7e88'.replace(
          ' ',
          '',
        ),
      ],
    },
    extension: {
      V3: {
        appLookup: { size: 1, index: [] },
        commitment: {
          ...{ rows: 1, cols: 4, commitment: [...fromHex(commitment.repeat(2))] },
          dataRoot: `0x${hex(ZEROS)}`,
        },
      },
    },
  };
  expect(hex(blake2b(encodeHeader(header) ?? ZEROS, { dkLen: 32 }))).toBe(
    'c9941af1cb862db9f2e4c0c94f457d1217b363ecf6e6cc0dbeb5cbfeb35fbc12',
  );
});

describe('a proof', () => {
  const list = Array.from({ length: 20 }, (_, index) => text(`data ${index}`));
  const block = blockOf(7, list.map(submits), { data: list });
  const dataAt = (index: number) => list[index] as Buffer;
  const prove = async (index: number) => {
    const { chain } = stubChain(async () => block.message);
    return dataOf(await blocksOf(chain).of(7, block.hash)).proofOf(index);
  };

  it('is refused with any byte changed', async () => {
    const json = JSON.stringify(await prove(5));
    const data = dataAt(5);
    verifyProof(JSON.parse(json), data);
    for (let position = 0; position < json.length; position += 1)
      for (const byte of ['0', 'F', '"']) {
        if (json[position] === byte) continue;
        const changed = json.slice(0, position) + byte + json.slice(position + 1);
        const document = parsed(changed);
        if (document === undefined) continue;
        expect(() => verifyProof(document, data), changed.slice(0, position + 1)).toThrow(
          InvalidProofError,
        );
      }
  });

  it.each([
    ['nothing', null],
    ['a text', 'proof'],
    ['an empty object', {}],
    ['no siblings', { siblings: null }],
    ['an index outside the tree', { index: 512 }],
    ['a fraction as index', { index: 0.5 }],
    ['a negative index', { index: -1 }],
    ['a text as block number', { block_number: '7' }],
    ['a million siblings', { siblings: Array(1_000_000).fill(`0x${'0'.repeat(64)}`) }],
  ])('is refused as invalid if it is %s', async (_, change) => {
    const proof = await prove(0);
    const isWhole =
      typeof change !== 'object' || change === null || Object.keys(change).length === 0;
    const document = (isWhole ? change : { ...proof, ...change }) as Proof;
    expect(() => verifyProof(document, dataAt(0))).toThrow(InvalidProofError);
  });
});

function parsed(json: string): Proof | undefined {
  try {
    return JSON.parse(json);
  } catch {
    return undefined;
  }
}

import { blake2b } from '@noble/hashes/blake2.js';
import { describe, expect, it, onTestFinished } from 'vitest';
import {
  type Chain,
  ChainError,
  type ChainHead,
  type ChainStatus,
} from '../../../src/polling/chain/port.ts';
import { ChainVerifier } from '../../../src/polling/chain/verifier.ts';
import { submitDataExtrinsic } from '../../../src/sandbox/chain/extrinsics.ts';
import { createVirtualClock } from '../../support/virtual-time/virtual-clock.ts';

const HASH = `0x${'a'.repeat(64)}`;
type Expectations = { expected?: Record<string, string>; urls?: string[] };

/**
 * An encoded call whose data end in zeros, each of which looks like the length of no data. The
 * account of its sender contains a call with other data.
 */
const DATA = Buffer.concat([Buffer.alloc(200_000, 0xab), Buffer.alloc(9)]);
const SUBMIT = Buffer.from(submitDataExtrinsic({ seed: 1, blockNumber: 7, txIndex: 2 }, DATA));
SUBMIT.set([29, 1, 4], 10);
const EXTRINSICS = ['0x0102', `0x${'ab'.repeat(300_000)}`, `0x${SUBMIT.toString('hex')}`];
const hashOf = (bytes: Uint8Array) => Buffer.from(blake2b(bytes, { dkLen: 32 })).toString('hex');
const [FIRST, SECOND, THIRD] = EXTRINSICS.map((hex) => hashOf(Buffer.from(hex.slice(2), 'hex')));
const DATA_HASH = `0x${hashOf(DATA)}`;
const OTHER_HASH = `0x${'d'.repeat(64)}`;

/** A block as the node sends it. */
const blockOf = (number: number, extrinsics: unknown[] = EXTRINSICS) => ({
  block: {
    header: { number: `0x0000000${number}` },
    extrinsics: Buffer.from(JSON.stringify(extrinsics).slice(1, -1)),
  },
});

/**
 * A verifier whose node has finalized block 7, which has three extrinsics. `expected`: the hash of
 * the data of a submission, by its id.
 */
function open(
  verify_data: boolean,
  respond?: (method: string, params: unknown[]) => Promise<unknown>,
  verify: 'off' | 'report' | 'require' = 'report',
  { expected = {}, urls = ['ws://node'] }: Expectations = {},
) {
  const available: string[] = [];
  const kinds: string[] = [];
  const clock = createVirtualClock(1_760_000_000_000);
  const calls: string[] = [];
  const heads = new Set<(head: ChainHead) => void>();
  const usual = async (method: string) => (method === 'chain_getBlock' ? blockOf(7) : HASH);
  const status: ChainStatus = {
    ...{ name: null, genesisHash: null, head: { number: 7, at: 0 }, problem: null },
    nodes: [],
  };
  const chain: Chain = {
    onHead: (listener) => {
      heads.add(listener);
      return () => heads.delete(listener);
    },
    finalizedAt: () => null,
    call: async <T>(method: string, params: unknown[]) => {
      calls.push(method);
      return { node: 'node', result: (await (respond ?? usual)(method, params)) as T };
    },
    confirm: () => null,
    status: () => status,
    close: async () => undefined,
  };
  onTestFinished(() => heads.clear());
  const settings = { urls, verify, verify_data };
  const verifier = new ChainVerifier({
    chain,
    settings,
    clock,
    dataHashOf: (id) => expected[id] ?? null,
    onAvailable: (id) => available.push(id),
  });
  const observe = async (data: object, blockNumber = 7, submissionId = 's') => {
    const envelope = JSON.stringify({ data: { block_hash: HASH, ...data } });
    const observed = await verifier.observe({
      ...{ kind: 'finalized', submissionId, at: 0, durationMs: 1, state: 'Finalized' },
      ...{ error: null, envelope, blockNumber },
    });
    kinds.push(observed.kind);
    return 'chain' in observed ? observed.chain : undefined;
  };
  /** The node announces a final block. */
  const announce = async (number: number) => {
    status.head = { number, at: clock.now() };
    for (const listener of [...heads]) listener(status.head);
    await clock.advance(0);
  };
  return { clock, calls, verify: observe, announce, available, kinds };
}

it('compares hashes whatever their case and prefix', async () => {
  const { verify } = open(false);
  for (const block_hash of [HASH, HASH.slice(2), HASH.toUpperCase().replace('0X', '0x')])
    expect(await verify({ block_hash })).toEqual({ verdict: 'confirmed', reason: null });
});

it('asks once for a block', async () => {
  const { verify, calls } = open(true);
  const claims = [
    { tx_index: 0, tx_hash: `0x${FIRST}` },
    { tx_index: 1, tx_hash: `0x${SECOND}` },
    { tx_index: 1, tx_hash: SECOND },
  ];
  const verdicts = await Promise.all([...claims, ...claims].map((claim) => verify(claim)));
  expect(verdicts.map((result) => result?.verdict)).toEqual(Array(6).fill('confirmed'));
  expect(calls).toEqual(['chain_getBlockHash', 'chain_getBlock']);
});

it.each([
  [{ tx_index: 1, tx_hash: `0x${FIRST}` }, 'contradicted', `it is 0x${SECOND}`],
  [{ tx_index: 3, tx_hash: `0x${FIRST}` }, 'contradicted', 'block 7 has none'],
  [{ tx_hash: `0x${FIRST}` }, 'unavailable', 'names no transaction'],
])(
  'does not confirm a transaction that the block does not prove: %o',
  async (data, verdict, text) => {
    const reason = expect.stringContaining(text);
    expect(await open(true).verify(data)).toEqual({ verdict, reason });
  },
);

it('waits for the node for five seconds, and then hardly, until it responds', async () => {
  const response = Promise.withResolvers<unknown>();
  const { verify, clock } = open(false, () => response.promise);
  const first = verify({});
  await clock.advance(5_000);
  const reason = 'the node did not respond within 5 s';
  expect(await first).toEqual({ verdict: 'unavailable', reason });
  const second = verify({});
  await clock.advance(100);
  expect(await second).toEqual({ verdict: 'unavailable', reason });
  response.resolve(HASH);
  expect(await verify({})).toEqual({ verdict: 'confirmed', reason: null });
});

it('polls a submission again once, when the node knows its block', async () => {
  const { verify, clock, announce, available } = open(false, undefined, 'require');
  const result = verify({}, 8);
  await clock.advance(5_000);
  expect(await result).toMatchObject({ verdict: 'unavailable' });
  await announce(8);
  await announce(9);
  expect(available).toEqual(['s']);
});

it('polls a submission no more that was confirmed meanwhile', async () => {
  let isDown = true;
  const respond = async () => {
    if (isDown) throw new ChainError('closed', 'it closed the connection');
    return HASH;
  };
  const { verify, announce, available } = open(false, respond, 'require');
  const reason = 'it closed the connection';
  expect(await verify({})).toEqual({ verdict: 'unavailable', reason });
  isDown = false;
  expect(await verify({})).toMatchObject({ verdict: 'confirmed' });
  await announce(8);
  expect(available).toEqual([]);
});

describe('data that the caller names', () => {
  const expected = { s: DATA_HASH };
  const named = (data_hash?: string, txIndex = 2) => {
    const tx_hash = [FIRST, SECOND, THIRD][txIndex];
    return { tx_hash, tx_index: txIndex, ...(data_hash !== undefined && { data_hash }) };
  };
  const other = `data_hash is ${OTHER_HASH}, not ${DATA_HASH} that was expected`;

  it.each([
    ['the data of the transaction', named(DATA_HASH), 'confirmed', null],
    ['a hash without prefix', named(DATA_HASH.slice(2).toUpperCase()), 'confirmed', null],
    ['other data', named(OTHER_HASH), 'contradicted', other],
    ['no hash', named(), 'unavailable', 'the upstream names no data_hash'],
    ['a transaction without data', named(DATA_HASH, 0), 'unavailable', 'no call of submit_data'],
  ])('are verified: %s', async (_, data, verdict, text) => {
    const { verify } = open(true, undefined, 'report', { expected });
    const reason = text === null ? null : expect.stringContaining(text);
    expect(await verify(data)).toEqual({ verdict, reason });
  });

  it('must be in the transaction, whatever the upstream says', async () => {
    const claimed = { s: OTHER_HASH };
    const verifyIn = (verify_data: boolean) =>
      open(verify_data, undefined, 'report', { expected: claimed }).verify(named(OTHER_HASH));
    const reason = `transaction 2 of block 7 submits data with the hash ${DATA_HASH}, not ${OTHER_HASH}`;
    expect(await verifyIn(false)).toEqual({ verdict: 'confirmed', reason: null });
    expect(await verifyIn(true)).toEqual({ verdict: 'contradicted', reason });
  });

  it('are found in a call within another one, not in a signature', async () => {
    const data = Buffer.from('some data');
    const call = Buffer.concat([Buffer.from([29, 1, data.length * 4]), data]);
    // A length, version and account, a signature that looks like a call, extensions, a batch.
    const signature = Buffer.alloc(65, 1);
    signature.set([29, 1, (4 + 3 + call.length) * 4], 62);
    const parts = [Buffer.from([0x84]), Buffer.alloc(33), signature, Buffer.alloc(4)];
    const signed = Buffer.concat([...parts, Buffer.from([1, 0, 4]), call]);
    const extrinsic = Buffer.concat([Buffer.from([signed.length * 4 + 1, 1]), signed]);
    const block = blockOf(7, [`0x${extrinsic.toString('hex')}`]);
    const respond = async (method: string) => (method === 'chain_getBlock' ? block : HASH);
    const data_hash = `0x${hashOf(data)}`;
    const { verify } = open(true, respond, 'report', {
      expected: { s: data_hash },
    });
    const claim = { tx_hash: hashOf(extrinsic), tx_index: 0, data_hash };
    expect(await verify(claim)).toEqual({ verdict: 'confirmed', reason: null });
  });

  it('are compared without a node, which alone can confirm', async () => {
    const { verify, calls } = open(true, undefined, 'report', { expected, urls: [] });
    expect(await verify(named(OTHER_HASH))).toEqual({ verdict: 'contradicted', reason: other });
    expect(await verify(named(DATA_HASH))).toBeUndefined();
    expect(calls).toEqual([]);
  });
});

it.each([
  ['another block', blockOf(0)],
  ['extrinsics that are no texts', blockOf(7, [{ toString: 1, valueOf: 1 }])],
  ['more extrinsics than a block can have', blockOf(7, Array(50_001).fill('0x'))],
])('takes no %s for the block that it asked for', async (_, block) => {
  const respond = async (method: string) => (method === 'chain_getBlock' ? block : HASH);
  const { verify } = open(true, respond);
  expect(await verify({ tx_index: 0, tx_hash: `0x${FIRST}` })).toEqual({
    verdict: 'unavailable',
    reason: 'the node does not have the content of block 7',
  });
});

it('fetches one block at a time, and again if the node did not have it', async () => {
  let [fetching, most, isPruned] = [0, 0, true];
  const { verify } = open(true, async (method, [block]) => {
    if (method !== 'chain_getBlock') return block === 7 ? HASH : OTHER_HASH;
    fetching += 1;
    most = Math.max(most, fetching);
    await new Promise(setImmediate);
    fetching -= 1;
    return isPruned ? null : blockOf(block === HASH ? 7 : 6);
  });
  const claim = { tx_index: 0, tx_hash: FIRST };
  const verifyBoth = () =>
    Promise.all([verify(claim, 7), verify({ ...claim, block_hash: OTHER_HASH }, 6)]);
  expect(await verifyBoth()).toMatchObject(Array(2).fill({ verdict: 'unavailable' }));
  isPruned = false;
  expect(await verifyBoth()).toMatchObject(Array(2).fill({ verdict: 'confirmed' }));
  expect(most).toBe(1);
});

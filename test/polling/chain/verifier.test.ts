import { blake2b } from '@noble/hashes/blake2.js';
import { keccak_256 } from '@noble/hashes/sha3.js';
import { describe, expect, it } from 'vitest';
import { ChainError } from '../../../src/polling/chain/port.ts';
import { ChainVerifier } from '../../../src/polling/chain/verifier.ts';
import { submitDataExtrinsic } from '../../../src/sandbox/chain/extrinsics.ts';
import { blockOf } from '../../support/chain/block.ts';
import { type Respond, stubChain } from '../../support/chain/stub-chain.ts';
import { createVirtualClock } from '../../support/virtual-time/virtual-clock.ts';

type Options = { expected?: Record<string, string>; urls?: string[]; nodes?: string[] };

/** The account of its sender contains a call with other data. */
const DATA = Buffer.concat([Buffer.alloc(20_000, 0xab), Buffer.alloc(9)]);
const SUBMIT = Buffer.from(submitDataExtrinsic({ seed: 1, blockNumber: 7, txIndex: 2 }, DATA));
SUBMIT.set([29, 1, 4], 10);
const MORE_DATA = Buffer.from('more data');
const SUBMIT_MORE = submitDataExtrinsic({ seed: 1, blockNumber: 7, txIndex: 3 }, MORE_DATA);
const EXTRINSICS = [Buffer.from('0102', 'hex'), Buffer.alloc(30_000, 0xab), SUBMIT, SUBMIT_MORE];
const hashOf = (bytes: Uint8Array) => Buffer.from(blake2b(bytes, { dkLen: 32 })).toString('hex');
const [FIRST = '', SECOND = '', THIRD = '', FOURTH = ''] = EXTRINSICS.map(hashOf);
const DATA_HASH = `0x${hashOf(DATA)}`;
const KECCAK_HASH = `0x${Buffer.from(keccak_256(DATA)).toString('hex')}`;
const OTHER_HASH = `0x${'d'.repeat(64)}`;
const BLOCK = blockOf(7, EXTRINSICS, { data: [DATA, MORE_DATA] });
const HASH = BLOCK.hash;
/** What the upstream says about the data. */
const CLAIM = { tx_index: 2, tx_hash: `0x${THIRD}`, data_hash: DATA_HASH };
const CLAIM_MORE = { tx_index: 3, tx_hash: FOURTH, data_hash: `0x${hashOf(MORE_DATA)}` };
const PROVEN = { verdict: 'confirmed', reason: null, proof: expect.anything() };

/**
 * A verifier whose nodes have finalized block 7, which has four extrinsics. `expected`: the hash
 * of the data of a submission, by its id.
 */
function open(
  verify_data: boolean,
  respond: Respond = async (_, method) => (method === 'chain_getBlock' ? BLOCK.message : HASH),
  { expected = {}, urls = ['ws://node'], nodes = ['node'] }: Options = {},
) {
  const clock = createVirtualClock(1_760_000_000_000);
  const stub = stubChain(respond, nodes);
  const verifier = new ChainVerifier({
    chain: stub.chain,
    settings: { urls, verify: 'report', verify_data },
    clock,
    dataHashOf: (id) => expected[id] ?? null,
  });
  /** Returns what the report of a poll says. */
  const verify = async (data: object, blockNumber = 7, submissionId = 's') => {
    const claim = { block_hash: HASH, block_number: blockNumber, ...data };
    const observed = await verifier.observe({
      ...{ kind: 'finalized', submissionId, at: 0, durationMs: 1, state: 'Finalized' },
      ...{ error: null, envelope: JSON.stringify({ data: claim }), blockNumber },
    });
    return 'chain' in observed ? observed.chain : undefined;
  };
  return {
    ...{ ...stub, clock, verify, beginRound: () => verifier.beginRound() },
    /** Returns what is said after two rounds. */
    async settle(...claim: Parameters<typeof verify>) {
      await verify(...claim);
      verifier.beginRound();
      return verify(...claim);
    },
  };
}

it('compares hashes whatever their case and prefix', async () => {
  const { verify } = open(false);
  for (const block_hash of [HASH, HASH.slice(2), HASH.toUpperCase().replace('0X', '0x')])
    expect(await verify({ block_hash })).toEqual({ verdict: 'confirmed', reason: null });
});

it('asks once for a block', async () => {
  const { verify, calls, beginRound } = open(true);
  const claims = [CLAIM, CLAIM_MORE];
  const verifyAll = () => Promise.all([...claims, ...claims].map((claim) => verify(claim)));
  expect(await verifyAll()).toEqual(Array(4).fill(PROVEN));
  expect(calls).toEqual(['chain_getBlockHash', 'chain_getBlock']);
  // What is proven stays proven in later rounds.
  beginRound();
  expect(await verifyAll()).toEqual(Array(4).fill(PROVEN));
  expect(calls).toEqual(['chain_getBlockHash', 'chain_getBlock', 'chain_getBlockHash']);
});

it('asks once for a block during which a round begins', async () => {
  const asked = Promise.withResolvers<void>();
  const response = Promise.withResolvers<void>();
  const { verify, calls, beginRound } = open(true, async (_, method) => {
    if (method !== 'chain_getBlock') return HASH;
    asked.resolve();
    await response.promise;
    return BLOCK.message;
  });
  const first = verify(CLAIM);
  await asked.promise;
  beginRound();
  const second = verify(CLAIM_MORE);
  response.resolve();
  expect(await Promise.all([first, second])).toEqual([PROVEN, PROVEN]);
  expect(calls.filter((method) => method === 'chain_getBlock')).toHaveLength(1);
});

it('reads whole numbers in decimal digits, and names the type of others', async () => {
  const { verify } = open(true);
  const claim = { ...CLAIM, block_number: '7', tx_index: String(CLAIM.tx_index) };
  expect(await verify(claim)).toEqual(PROVEN);
  for (const [block_number, text] of [
    [[7], 'block_number must be a whole number, not a list'],
    [undefined, 'block_number is missing'],
    ['9007199254740993', 'block_number must be a whole number, not a string'],
  ])
    expect((await verify({ ...claim, block_number }))?.reason).toContain(text);
});

it.each([
  [{ tx_index: 1, tx_hash: `0x${FIRST}` }, 'contradicted', `it is 0x${SECOND}`],
  [{ tx_index: 4, tx_hash: `0x${FIRST}` }, 'contradicted', 'block 7 has none'],
  [{ tx_hash: `0x${FIRST}` }, 'unavailable', 'names no transaction'],
])(
  'does not confirm a transaction that the block does not prove: %o',
  async (data, verdict, text) => {
    const reason = expect.stringContaining(text);
    expect(await open(true).settle(data)).toMatchObject({ verdict, reason });
  },
);

it('delays the report of a poll by a second at most', async () => {
  const { verify, clock } = open(false, () => new Promise(() => undefined));
  const unanswered = verify({});
  await clock.advance(1_000);
  const reason = 'the block was not verified within 1 s';
  expect(await unanswered).toEqual({ verdict: 'unavailable', reason });
  const notFinal = verify({}, 8);
  await clock.advance(1_000);
  expect(await notFinal).toEqual({
    verdict: 'unavailable',
    reason: 'block 8 is not final on the chain: the nodes have announced blocks up to 7',
  });
});

it('asks at once if no node is connected', async () => {
  const problem = 'it closed the connection';
  const { verify, status } = open(false, () => Promise.reject(new ChainError('closed', problem)));
  for (const node of status.nodes) node.state = 'disconnected';
  expect(await verify({}, 8)).toEqual({ verdict: 'unavailable', reason: problem });
});

it('waits for the block to be announced', async () => {
  const { verify, announce } = open(false);
  const verdict = verify({}, 8);
  announce(8);
  expect(await verdict).toMatchObject({ verdict: 'confirmed' });
});

it.each([
  ['a block', null, BLOCK.message],
  ['its content', HASH, null],
])('asks another node if one lacks %s', async (_, hash, block) => {
  const respond: Respond = async (node, method) => {
    if (method === 'chain_getBlock') return node === 'late' ? block : BLOCK.message;
    return node === 'late' ? hash : HASH;
  };
  const { verify, settle } = open(true, respond, { nodes: ['late', 'other'] });
  expect(await verify(CLAIM)).toEqual(PROVEN);
  const wrong = { ...CLAIM, tx_hash: SECOND };
  expect(await verify(wrong)).toMatchObject({ verdict: 'unavailable' });
  expect(await settle(wrong)).toMatchObject({ verdict: 'contradicted' });
});

describe('a contradiction', () => {
  const FORK = `0x${'f'.repeat(64)}`;
  const reason = `block 7 is ${FORK} on the chain, not ${HASH}`;
  const unavailable = {
    verdict: 'unavailable',
    reason: `${reason}; this is one answer, and another one is awaited`,
  };
  const contradicted = { verdict: 'contradicted', reason };
  const confirmed = { verdict: 'confirmed', reason: null };
  const nodes = ['a', 'b'];

  it('of one node is believed in the next round', async () => {
    const { verify, beginRound } = open(false, async () => FORK);
    const siblings = () => Promise.all([verify({}), verify({}), verify({})]);
    expect(await siblings()).toEqual(Array(3).fill(unavailable));
    expect(await siblings()).toEqual(Array(3).fill(unavailable));
    beginRound();
    expect(await siblings()).toEqual(Array(3).fill(contradicted));
  });

  it('of a node that answered once from a fork is none, for all submissions of the block', async () => {
    let answers = 0;
    const { verify } = open(false, async () => (answers++ === 0 ? FORK : HASH));
    const siblings = Array.from({ length: 6 }, () => verify({}));
    expect(await Promise.all(siblings)).toEqual(Array(6).fill(confirmed));
    expect(answers).toBe(2);
  });

  it('of two nodes is believed at once', async () => {
    const { verify } = open(false, async () => FORK, { nodes });
    expect(await verify({})).toEqual(contradicted);
  });

  it('of one node is none if another one confirms', async () => {
    const { settle } = open(false, async (node) => (node === 'a' ? FORK : HASH), { nodes });
    expect(await settle({})).toEqual(confirmed);
  });

  it('needs two nodes with the same answer', async () => {
    const { verify } = open(false, async (node) => (node === 'a' ? FORK : OTHER_HASH), { nodes });
    expect(await verify({})).toEqual(unavailable);
  });
});

describe('data', () => {
  const expected = { s: DATA_HASH };
  const { data_hash: _, ...unnamed } = CLAIM;
  const named = (data_hash: string) => ({ ...CLAIM, data_hash });
  const submits = `transaction 2 of block 7 submits data with the hash ${DATA_HASH}`;
  const encrypted = `has the data that the upstream names, ${DATA_HASH}, not ${OTHER_HASH}`;

  it.each([
    ['that the upstream names', CLAIM, null, null],
    ['that it names without prefix', named(DATA_HASH.slice(2).toUpperCase()), null, null],
    ['that it names by their Keccak-256 hash', named(KECCAK_HASH), null, null],
    ['that only the caller names', unnamed, DATA_HASH, null],
    ['that both name, each by its hash', named(KECCAK_HASH), DATA_HASH, null],
    ['that nobody names', unnamed, null, 'neither the upstream nor the caller names a data_hash'],
    ['that an upstream has encrypted', CLAIM, OTHER_HASH, encrypted],
    ['of no direct call', { ...CLAIM, tx_index: 1, tx_hash: SECOND }, DATA_HASH, 'no direct call'],
  ])('are proven, or it is said why not: data %s', async (_, claim, dataHash, text) => {
    const { settle } = open(true, undefined, {
      expected: dataHash === null ? {} : { s: dataHash },
    });
    const reason = expect.stringContaining(text ?? '');
    expect(await settle(claim)).toEqual(
      text === null ? PROVEN : { verdict: 'unavailable', reason, isSettled: true },
    );
  });

  it.each([
    ['the upstream names others', named(OTHER_HASH), DATA_HASH],
    ['both name others', named(OTHER_HASH), OTHER_HASH],
    ['only the caller names some, which are others', unnamed, OTHER_HASH],
  ])('are contradicted if %s', async (_, claim, dataHash) => {
    const { settle } = open(true, undefined, { expected: { s: dataHash } });
    const reason = `${submits}, not ${OTHER_HASH}`;
    expect(await settle(claim)).toEqual({ verdict: 'contradicted', reason });
  });

  it('of a hash that changes meanwhile are verified again', async () => {
    const hashes = { s: DATA_HASH };
    const respond: Respond = async (_, method) => {
      hashes.s = OTHER_HASH;
      return method === 'chain_getBlock' ? BLOCK.message : HASH;
    };
    const reason = 'data_hash was changed';
    const { verify } = open(true, respond, { expected: hashes });
    expect(await verify(CLAIM)).toEqual({ verdict: 'unavailable', reason });
  });

  it('of an upstream that names another transaction are not confirmed', async () => {
    const { settle } = open(true, undefined, { expected });
    const { data_hash: _, ...other } = CLAIM_MORE;
    expect(await settle(other)).toMatchObject({ verdict: 'contradicted' });
  });

  it('are compared without a node, or without verify_data', async () => {
    const { verify, calls } = open(true, undefined, { expected, urls: [] });
    const reason = `data_hash is ${OTHER_HASH}, not ${DATA_HASH} that was expected`;
    expect(await verify(named(OTHER_HASH))).toEqual({ verdict: 'contradicted', reason });
    expect(await verify(CLAIM)).toBeUndefined();
    expect(calls).toEqual([]);
    const unread = open(false, undefined, { expected });
    expect(await unread.verify(named(OTHER_HASH))).toEqual({ verdict: 'contradicted', reason });
    expect(await unread.verify(unnamed)).toMatchObject({ verdict: 'unavailable' });
    expect(await unread.verify(CLAIM)).toEqual({ verdict: 'confirmed', reason: null });
  });

  it('are read again if they contradict, because a node may have sent others', async () => {
    const forged = Buffer.from(SUBMIT);
    forged.set([1], 20);
    const message = blockOf(7, [...EXTRINSICS.slice(0, 2), forged, SUBMIT_MORE], {
      data: [DATA, MORE_DATA],
    }).message;
    const answers = [message, BLOCK.message];
    const respond: Respond = async (_, method) =>
      method === 'chain_getBlock' ? answers.shift() : HASH;
    expect(await open(true, respond).settle(CLAIM)).toEqual(PROVEN);
  });
});

const bodyOf = (extrinsics: unknown[]) => ({
  block: {
    ...BLOCK.message.block,
    extrinsics: Buffer.from(JSON.stringify(extrinsics).slice(1, -1)),
  },
});

it.each([
  ['another block', blockOf(0, EXTRINSICS).message],
  ['extrinsics that are no texts', bodyOf([{ toString: 1, valueOf: 1 }])],
  ['more extrinsics than a block can have', bodyOf(Array(50_001).fill('0x'))],
])('takes no %s for the block that it asked for', async (_, block) => {
  const respond: Respond = async (_, method) => (method === 'chain_getBlock' ? block : HASH);
  expect(await open(true, respond).verify(CLAIM)).toMatchObject({
    verdict: 'unavailable',
    reason: 'the node lacks the body of block 7: it prunes',
  });
});

it('fetches one block at a time, and again if the node did not have it', async () => {
  let [fetching, most, isPruned] = [0, 0, true];
  const other = blockOf(6, EXTRINSICS, { data: [DATA, MORE_DATA] });
  const { verify, beginRound } = open(true, async (_, method, [block]) => {
    if (method !== 'chain_getBlock') return block === 7 ? HASH : other.hash;
    fetching += 1;
    most = Math.max(most, fetching);
    await new Promise(setImmediate);
    fetching -= 1;
    if (isPruned) return null;
    return block === HASH ? BLOCK.message : other.message;
  });
  const verifyBoth = () =>
    Promise.all([verify(CLAIM, 7), verify({ ...CLAIM, block_hash: other.hash }, 6)]);
  expect(await verifyBoth()).toMatchObject(Array(2).fill({ verdict: 'unavailable' }));
  isPruned = false;
  beginRound();
  expect(await verifyBoth()).toEqual(Array(2).fill(PROVEN));
  expect(most).toBe(1);
});

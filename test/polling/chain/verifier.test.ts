import { blake2b } from '@noble/hashes/blake2.js';
import { describe, expect, it } from 'vitest';
import { ChainError } from '../../../src/polling/chain/port.ts';
import { ChainVerifier } from '../../../src/polling/chain/verifier.ts';
import { submitDataExtrinsic } from '../../../src/sandbox/chain/extrinsics.ts';
import { type Respond, stubChain } from '../../support/chain/stub-chain.ts';
import { createVirtualClock } from '../../support/virtual-time/virtual-clock.ts';

const HASH = `0x${'a'.repeat(64)}`;
type Options = { expected?: Record<string, string>; urls?: string[]; nodes?: string[] };

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
 * A verifier whose nodes have finalized block 7, which has three extrinsics. `expected`: the hash
 * of the data of a submission, by its id.
 */
function open(
  verify_data: boolean,
  respond: Respond = async (_, method) => (method === 'chain_getBlock' ? blockOf(7) : HASH),
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
    expect(await open(true).settle(data)).toEqual({ verdict, reason });
  },
);

it('delays the report of a poll by a second at most', async () => {
  const { verify, clock } = open(false, () => new Promise(() => undefined));
  const unanswered = verify({});
  await clock.advance(1_000);
  const reason = 'no node responded within 1 s';
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
  ['a block', null, blockOf(7)],
  ['its content', HASH, null],
])('asks another node if one lacks %s', async (_, hash, block) => {
  const respond: Respond = async (node, method) => {
    if (method === 'chain_getBlock') return node === 'late' ? block : blockOf(7);
    return node === 'late' ? hash : HASH;
  };
  const { verify, settle } = open(true, respond, { nodes: ['late', 'other'] });
  expect(await verify({ tx_index: 0, tx_hash: FIRST })).toMatchObject({ verdict: 'confirmed' });
  const wrong = { tx_index: 0, tx_hash: SECOND };
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
    const { settle } = open(true, undefined, { expected });
    const reason = text === null ? null : expect.stringContaining(text);
    expect(await settle(data)).toEqual({ verdict, reason });
  });

  it('must be in the transaction, whatever the upstream says', async () => {
    const claimed = { s: OTHER_HASH };
    const verifyIn = (verify_data: boolean) =>
      open(verify_data, undefined, { expected: claimed }).settle(named(OTHER_HASH));
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
    const respond: Respond = async (_, method) => (method === 'chain_getBlock' ? block : HASH);
    const data_hash = `0x${hashOf(data)}`;
    const { verify } = open(true, respond, { expected: { s: data_hash } });
    const claim = { tx_hash: hashOf(extrinsic), tx_index: 0, data_hash };
    expect(await verify(claim)).toEqual({ verdict: 'confirmed', reason: null });
  });

  it('are compared without a node, which alone can confirm', async () => {
    const { verify, calls } = open(true, undefined, { expected, urls: [] });
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
  const respond: Respond = async (_, method) => (method === 'chain_getBlock' ? block : HASH);
  const { verify } = open(true, respond);
  expect(await verify({ tx_index: 0, tx_hash: `0x${FIRST}` })).toEqual({
    verdict: 'unavailable',
    reason: 'the node does not have the content of block 7',
  });
});

it('fetches one block at a time, and again if the node did not have it', async () => {
  let [fetching, most, isPruned] = [0, 0, true];
  const { verify, beginRound } = open(true, async (_, method, [block]) => {
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
  beginRound();
  expect(await verifyBoth()).toMatchObject(Array(2).fill({ verdict: 'confirmed' }));
  expect(most).toBe(1);
});

import { blake2b } from '@noble/hashes/blake2.js';
import { expect, it, onTestFinished } from 'vitest';
import {
  type Chain,
  ChainError,
  type ChainHead,
  type ChainStatus,
} from '../../../src/polling/chain/port.ts';
import { ChainVerifier } from '../../../src/polling/chain/verifier.ts';
import { createVirtualClock } from '../../support/virtual-time/virtual-clock.ts';

const HASH = `0x${'a'.repeat(64)}`;
const EXTRINSICS = ['0x0102', `0x${'ab'.repeat(300_000)}`];
const [FIRST, SECOND] = EXTRINSICS.map((hex) => {
  const bytes = Buffer.from(hex.slice(2), 'hex');
  return Buffer.from(blake2b(bytes, { dkLen: 32 })).toString('hex');
});

/** A verifier whose node has finalized block 7, which has two extrinsics. */
function open(
  verify_data: boolean,
  respond?: (method: string) => Promise<unknown>,
  verify: 'report' | 'require' = 'report',
) {
  const available: string[] = [];
  const clock = createVirtualClock(1_760_000_000_000);
  const calls: string[] = [];
  const heads = new Set<(head: ChainHead) => void>();
  const usual = async (method: string) =>
    method === 'chain_getBlock' ? { block: { extrinsics: EXTRINSICS } } : HASH;
  const status: ChainStatus = {
    ...{ host: 'node', isConnected: true, name: null, genesisHash: null },
    ...{ head: { number: 7, at: 0 }, reconnects: 0, problem: null },
  };
  const chain: Chain = {
    onHead: (listener) => {
      heads.add(listener);
      return () => heads.delete(listener);
    },
    finalizedAt: () => null,
    call: <T>(method: string) => {
      calls.push(method);
      return (respond ?? usual)(method) as Promise<T>;
    },
    status: () => status,
    useSettings: () => undefined,
    close: async () => undefined,
  };
  onTestFinished(() => heads.clear());
  const settings = { urls: ['ws://node'], verify, verify_data };
  const verifier = new ChainVerifier({
    chain,
    settings,
    clock,
    onAvailable: (id) => available.push(id),
  });
  const observe = async (data: object, blockNumber = 7) => {
    const envelope = JSON.stringify({ data: { block_hash: HASH, ...data } });
    const observed = await verifier.observe({
      ...{ kind: 'finalized', submissionId: 's', at: 0, durationMs: 1, state: 'Finalized' },
      ...{ error: null, envelope, blockNumber },
    });
    return 'chain' in observed ? observed.chain : undefined;
  };
  /** The node announces a final block. */
  const announce = async (number: number) => {
    status.head = { number, at: clock.now() };
    for (const listener of [...heads]) listener(status.head);
    await clock.advance(0);
  };
  return { clock, calls, verify: observe, announce, available };
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
  [{ tx_index: 2, tx_hash: `0x${FIRST}` }, 'contradicted', 'block 7 has none'],
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

it('does not confirm a block above the newest final one', async () => {
  const { verify, clock } = open(false);
  const result = verify({}, 8);
  await clock.advance(5_000);
  const reason = 'block 8 is not final on the chain: the node has announced blocks up to 7';
  expect(await result).toEqual({ verdict: 'unavailable', reason });
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

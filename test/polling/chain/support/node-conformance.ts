import { describe, expect, it, onTestFinished } from 'vitest';
import { openChain } from '../../../../src/polling/chain/chain.ts';
import type { ChainHead } from '../../../../src/polling/chain/port.ts';
import { ChainVerifier } from '../../../../src/polling/chain/verifier.ts';
import { eventually } from '../../../support/until.ts';
import { createVirtualClock } from '../../../support/virtual-time/virtual-clock.ts';

/** The place of a transaction as an upstream names it. */
export type Transaction = {
  block_number: number;
  block_hash: string;
  tx_index: number;
  tx_hash: string;
};
export type BuiltBlock = Pick<Transaction, 'block_number' | 'block_hash'>;

/** A node of a chain whose blocks are final as soon as they are built. */
export type NodeUnderTest = {
  url: string;
  /** What the node says about itself, and about a transaction. */
  name: string;
  genesisHash: string;
  transaction: Transaction;
  /** Builds blocks, and returns the newest. */
  build(count: number): Promise<BuiltBlock>;
  /** Replaces the newest block, and returns the other one. */
  replace(): Promise<BuiltBlock>;
};

/** The client of a node, in virtual time, until the test ends. */
export async function openClient(url: string) {
  const settings = { urls: [url], verify: 'report' as const, verify_data: true };
  const clock = createVirtualClock(1_760_000_000_000);
  const chain = openChain({ settings, clock, random: () => 1, version: '1.2.3' });
  onTestFinished(() => chain.close());
  const heads: ChainHead[] = [];
  chain.onHead((head) => heads.push(head));
  const verifier = new ChainVerifier({
    chain,
    settings,
    clock,
    dataHashOf: () => null,
  });
  const head = (number: number) =>
    eventually(async () => {
      await clock.advance(100);
      expect(heads.at(-1)?.number).toBe(number);
    });
  return {
    chain,
    clock,
    /** Waits until listeners have a block. */
    head,
    /** Waits until the node has announced a block, and returns its number. */
    newest: () =>
      eventually(() => {
        const announced = chain.status()?.head;
        if (!announced) throw new Error('the node has announced no block');
        return announced.number;
      }),
    /** Returns what two answers say about a final submission. */
    async verify(data: BuiltBlock & Partial<Transaction>) {
      const submission = { envelope: JSON.stringify({ data }), dataHash: null };
      await verifier.verify(submission);
      verifier.beginRound();
      return verifier.verify(submission);
    },
  };
}

/** What the client relies on in every node. */
export function describeNode(name: string, open: () => Promise<NodeUnderTest>): void {
  const setUp = async () => {
    const node = await open();
    return { node, ...(await openClient(node.url)) };
  };
  describe(name, () => {
    it('names its chain, and announces each final block, one or several at once', async () => {
      const { node, chain, head, newest } = await setUp();
      const first = await newest();
      const { name, genesisHash } = node;
      expect(chain.status()).toMatchObject({
        ...{ nodes: [{ state: 'used', problem: null }], name, genesisHash },
      });
      await head(first);
      expect(await node.build(1)).toMatchObject({ block_number: first + 1 });
      await head(first + 1);
      expect(await node.build(3)).toMatchObject({ block_number: first + 4 });
      await head(first + 4);
      for (const number of [first + 1, first + 3, first + 4])
        expect(chain.finalizedAt(number)).not.toBeNull();
    });

    it('has the transaction in its block, whose data only Avail proves', async () => {
      const { node, newest, verify } = await setUp();
      const { transaction } = node;
      const { block_number, tx_index, tx_hash } = transaction;
      await newest();
      expect(await verify(transaction)).toMatchObject({
        verdict: 'unavailable',
        reason: `the header of block ${block_number} has no V3 extension`,
      });
      const other = `0x${'0'.repeat(64)}`;
      for (const [claim, text] of [
        [{ tx_hash: other }, `it is ${tx_hash}`],
        [{ tx_index: 99 }, `block ${block_number} has none`],
        [{ tx_index: tx_index - 1 }, `is not ${tx_hash}: it is 0x`],
        [{ block_hash: other }, `is ${transaction.block_hash} on the chain, not ${other}`],
      ] as const) {
        const expected = { verdict: 'contradicted', reason: expect.stringContaining(text) };
        expect(await verify({ ...transaction, ...claim })).toEqual(expected);
      }
    });

    it('has no block above the newest one', async () => {
      const { node, chain, newest, verify } = await setUp();
      const number = (await newest()) + 1;
      expect((await chain.call('chain_getBlockHash', [number])).result).toBeNull();
      const reason = `the nodes have announced blocks up to ${number - 1}`;
      expect(await verify({ ...node.transaction, block_number: number })).toEqual({
        verdict: 'unavailable',
        reason: `block ${number} is not final on the chain: ${reason}`,
      });
    });

    it('contradicts a block that was replaced', async () => {
      const { node, head, newest, verify } = await setUp();
      await newest();
      await node.build(1);
      const built = await node.build(3);
      await head(built.block_number);
      const { block_number, block_hash } = await node.replace();
      expect(block_number).toBe(built.block_number);
      expect(await verify(built)).toEqual({
        verdict: 'contradicted',
        reason: `block ${block_number} is ${block_hash} on the chain, not ${built.block_hash}`,
      });
    });

    it('refuses a method that it does not have', async () => {
      const { chain } = await setUp();
      await eventually(() => expect(chain.status()?.nodes[0]?.state).toBe('used'));
      await expect(chain.call('eth_blockNumber', [])).rejects.toMatchObject({
        reason: 'method_not_found',
      });
    });
  });
}

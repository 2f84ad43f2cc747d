import type { UpstreamClock } from '../clock.ts';
import type { SandboxOptions } from '../options.ts';
import { type Block, type BlockSource, createBlockSource } from './blocks.ts';

/** Where a transaction is on the chain. */
export type Placement = { blockNumber: number; txIndex: number };

/** Transactions that became final at one moment (epoch ms), those of one block. */
export type FinalBlock<T> = { finalMs: number; transactions: T[] };

/**
 * Blocks with their transactions, and when they are final. A finality round finalizes a chain, not a block: the round that
 * block C starts finalizes the block finalityGap before it and all its ancestors. Times are epoch ms and never go back.
 */
export type Chain<T> = {
  /** Puts a transaction sent at sentMs into the first block that is produced after that. */
  include(sentMs: number, transaction: T): Placement;
  /** Puts a transaction nobody waits for into the block after another one that is not final yet. */
  includeAfter(blockNumber: number): Placement & { finalMs: number };
  /** When the oldest block with transactions becomes final, as the finality gap is now; undefined: there is none. */
  nextFinalAt(): number | undefined;
  /** Takes out the oldest block with transactions, when it is final at nowMs. */
  takeFinal(nowMs: number): FinalBlock<T> | undefined;
  /** Blocks produced after atMs start rounds with another gap. */
  setFinalityGap(blocks: number, atMs: number): void;
};

type OpenBlock<T> = Block & { transactionCount: number; transactions: T[] };

export function createChain<T>(options: SandboxOptions, clock: UpstreamClock): Chain<T> {
  const roundMinMs = clock.seconds(options.roundMinS);
  const gaps = [{ fromMs: Number.NEGATIVE_INFINITY, blocks: options.finalityGap }];
  /** From the oldest block that is waited for, or can still take transactions, to the newest one that was needed. */
  const open: OpenBlock<T>[] = [];
  let source: BlockSource | undefined;
  let next: { block: OpenBlock<T>; finalMs: number } | undefined;

  function blockAt(index: number): OpenBlock<T> {
    for (;;) {
      const block = open[index];
      if (block !== undefined) return block;
      if (source === undefined) throw new Error('a chain begins with its first transaction');
      open.push({ ...source(), transactionCount: 0, transactions: [] });
    }
  }

  function dropUnused(nowMs: number): void {
    while (blockAt(0).producedMs <= nowMs && blockAt(0).transactions.length === 0) open.shift();
  }

  function place(block: OpenBlock<T>): Placement {
    block.transactionCount += 1;
    return { blockNumber: block.number, txIndex: block.transactionCount - 1 };
  }

  function gapAt(atMs: number): number {
    return gaps.findLast(({ fromMs }) => fromMs < atMs)?.blocks ?? 0;
  }

  /** The first completion among all rounds that finalize it; a later round may overtake an earlier one. */
  function finalAt({ number }: Block): number {
    let finalMs = Number.POSITIVE_INFINITY;
    for (let index = number - blockAt(0).number; ; index++) {
      const { number: head, producedMs, roundCompletedMs } = blockAt(index);
      if (producedMs + roundMinMs >= finalMs) return finalMs;
      if (head - gapAt(producedMs) >= number) finalMs = Math.min(finalMs, roundCompletedMs);
    }
  }

  function findNext(): void {
    const block = open.find(({ transactions }) => transactions.length > 0);
    next = block && { block, finalMs: finalAt(block) };
  }

  return {
    include(sentMs, transaction) {
      source ??= createBlockSource(options, clock, sentMs);
      dropUnused(sentMs);
      let index = 0;
      while (blockAt(index).producedMs <= sentMs) index += 1;
      const block = blockAt(index);
      block.transactions.push(transaction);
      if (next === undefined) findNext();
      return place(block);
    },
    includeAfter(blockNumber) {
      const block = blockAt(blockNumber + 1 - blockAt(0).number);
      return { ...place(block), finalMs: finalAt(block) };
    },
    nextFinalAt: () => next?.finalMs,
    takeFinal(nowMs) {
      if (next === undefined || next.finalMs > nowMs) return undefined;
      const { block, finalMs } = next;
      const { transactions } = block;
      block.transactions = [];
      findNext();
      return { finalMs, transactions };
    },
    setFinalityGap(blocks, atMs) {
      gaps.push({ fromMs: atMs, blocks });
      findNext();
    },
  };
}

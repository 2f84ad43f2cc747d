import type { UpstreamClock } from '../clock.ts';
import type { SandboxOptions } from '../options.ts';
import { type Block, type BlockSource, createBlockSource } from './blocks.ts';

/** Position of a transaction on the chain. */
export type Placement = { blockNumber: number; txIndex: number };

type OpenBlock<T> = Block & { transactionCount: number; transactions: T[] };

/** The transactions of a block and the time at which they became final (epoch ms). */
export type FinalBlock<T> = { finalMs: number; transactions: T[] };

/**
 * Blocks with their transactions and finality times. A finality round finalizes a chain, not a
 * block: the round that block C starts finalizes the block finalityGap before it and all its
 * ancestors. Times are epoch ms and must not decrease.
 */
export function createChain<T>(options: SandboxOptions, clock: UpstreamClock) {
  const roundMinMs = clock.seconds(options.roundMinS);
  const gaps = [{ fromMs: Number.NEGATIVE_INFINITY, blocks: options.finalityGap }];
  /**
   * From the oldest block with pending transactions, or that can still include some, to the newest
   * block produced.
   */
  const open: OpenBlock<T>[] = [];
  let source: BlockSource | undefined;
  let next: { block: OpenBlock<T>; finalMs: number } | undefined;

  function blockAt(index: number): OpenBlock<T> {
    for (;;) {
      const block = open[index];
      if (block !== undefined) return block;
      if (source === undefined) throw new Error('the chain has no transaction yet');
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

  /**
   * Returns the earliest completion of all rounds that finalize the block. A later round may
   * complete before an earlier one.
   */
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
    /** Adds a transaction sent at sentMs to the first block produced after that time. */
    include(sentMs: number, transaction: T): Placement {
      source ??= createBlockSource(options, clock, sentMs);
      dropUnused(sentMs);
      let index = 0;
      while (blockAt(index).producedMs <= sentMs) index += 1;
      const block = blockAt(index);
      block.transactions.push(transaction);
      if (next === undefined) findNext();
      return place(block);
    },
    /**
     * Adds a transaction that is not tracked to the block after another block, which must not be
     * final yet.
     */
    includeAfter(blockNumber: number): Placement & { finalMs: number } {
      const block = blockAt(blockNumber + 1 - blockAt(0).number);
      return { ...place(block), finalMs: finalAt(block) };
    },
    /**
     * Returns when the oldest block with transactions becomes final with the current finality gap;
     * undefined without such a block.
     */
    nextFinalAt: () => next?.finalMs,
    /** Removes and returns the oldest block with transactions if it is final at nowMs. */
    takeFinal(nowMs: number): FinalBlock<T> | undefined {
      if (next === undefined || next.finalMs > nowMs) return undefined;
      const { block, finalMs } = next;
      const { transactions } = block;
      block.transactions = [];
      findNext();
      return { finalMs, transactions };
    },
    /** Sets the gap of rounds started by blocks produced after atMs. */
    setFinalityGap(blocks: number, atMs: number): void {
      gaps.push({ fromMs: atMs, blocks });
      findNext();
    },
  };
}

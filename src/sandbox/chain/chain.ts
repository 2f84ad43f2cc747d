import type { UpstreamClock } from '../clock.ts';
import type { SandboxOptions } from '../options.ts';
import { type Block, type BlockSource, createBlockSource } from './blocks.ts';
import { firstIndexOf, type Placement } from './bodies.ts';

type OpenBlock<T> = Block & { nextIndex: number; transactions: T[] };

/** The transactions of a block and the time at which they became final (epoch ms). */
export type FinalBlock<T> = { finalMs: number; transactions: T[] };

/** A block that is final. Times are epoch ms; several blocks may become final at one moment. */
export type Head = { number: number; producedMs: number; finalMs: number };

/** Numbers of the newest blocks, and when there will be the next ones (epoch ms). */
export type Heights = { best: number; nextBestMs: number; final: number; nextFinalMs: number };

/** Newest final blocks whose times are kept. */
const KEPT_HEADS = 1_000;

/**
 * Blocks with their transactions and finality times. A finality round finalizes a chain, not a
 * block: the round that block C starts finalizes the block finalityGap before it and all its
 * ancestors. Times are epoch ms and must not decrease.
 */
export function createChain<T>(options: SandboxOptions, clock: UpstreamClock) {
  const roundMinMs = clock.seconds(options.roundMinS);
  const gaps = [{ fromMs: Number.NEGATIVE_INFINITY, blocks: options.finalityGap }];
  /**
   * From the oldest block that is not final, or whose transactions were not taken, to the newest
   * block that was needed so far.
   */
  const open: OpenBlock<T>[] = [];
  /** Newest final blocks, oldest first. */
  const heads: Head[] = [];
  let source: BlockSource | undefined;
  let firstNumber: number | undefined;
  /** The oldest block with transactions. */
  let next: { block: OpenBlock<T>; finalMs: number } | undefined;
  /** When `open[0]` becomes final; undefined: not determined yet. */
  let headFinalMs: number | undefined;

  function start(nowMs: number): void {
    source ??= createBlockSource(options, clock, nowMs);
  }

  function blockAt(index: number): OpenBlock<T> {
    for (;;) {
      const block = open[index];
      if (block !== undefined) return block;
      if (source === undefined) throw new Error('the chain has not started yet');
      const next = source();
      firstNumber ??= next.number;
      const nextIndex = firstIndexOf(options.seed, next.number);
      open.push({ ...next, nextIndex, transactions: [] });
    }
  }

  /** Moves the blocks that are final at nowMs to the heads, up to one with transactions. */
  function settle(nowMs: number): void {
    for (;;) {
      const block = blockAt(0);
      headFinalMs ??= finalAt(block);
      if (headFinalMs > nowMs || block.transactions.length > 0) return;
      const { number, producedMs } = block;
      heads.push({ number, producedMs, finalMs: headFinalMs });
      if (heads.length > KEPT_HEADS) heads.shift();
      open.shift();
      headFinalMs = undefined;
    }
  }

  function place(block: OpenBlock<T>): Placement {
    block.nextIndex += 1;
    return { blockNumber: block.number, txIndex: block.nextIndex - 1 };
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
      start(sentMs);
      settle(sentMs);
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
    /** Removes and returns the oldest transactions if their block is final at nowMs. */
    takeFinal(nowMs: number): FinalBlock<T> | undefined {
      if (next === undefined || next.finalMs > nowMs) return undefined;
      const { block, finalMs } = next;
      const { transactions } = block;
      block.transactions = [];
      findNext();
      return { finalMs, transactions };
    },
    /**
     * Returns the final blocks above a number, oldest first, with and without transactions: at most
     * the newest 1,000. Starts the chain if no transaction has; no block before that is listed.
     * Transactions that are final must have been taken.
     */
    heads(above: number, nowMs: number): Head[] {
      start(nowMs);
      settle(nowMs);
      return heads.slice(heads.findLastIndex(({ number }) => number <= above) + 1);
    },
    /** Returns when the next block becomes final after nowMs, with the current finality gap. */
    nextHeadAt(nowMs: number): number {
      start(nowMs);
      settle(nowMs);
      headFinalMs ??= finalAt(blockAt(0));
      return headFinalMs;
    },
    /** Returns the newest blocks as a node that is lagMs behind sees them. */
    heights(nowMs: number, lagMs: number): Heights {
      start(nowMs);
      settle(nowMs);
      headFinalMs ??= finalAt(blockAt(0));
      let index = 0;
      while (blockAt(index).producedMs <= nowMs) index += 1;
      const seenMs = nowMs - lagMs;
      const blocks = [...heads, ...open];
      const nextBest = blocks.find(({ producedMs }) => producedMs > seenMs) ?? blockAt(index);
      const nextFinal = heads.find(({ finalMs }) => finalMs > seenMs);
      return {
        best: nextBest.number - 1,
        nextBestMs: nextBest.producedMs + lagMs,
        final: (nextFinal ?? blockAt(0)).number - 1,
        nextFinalMs: (nextFinal?.finalMs ?? headFinalMs) + lagMs,
      };
    },
    /** Returns the number of the first block; undefined before the chain has started. */
    firstNumber: () => firstNumber,
    /** Returns when a block was produced; undefined if it is none of the newest. */
    producedAt: (blockNumber: number) =>
      [...heads, ...open].find(({ number }) => number === blockNumber)?.producedMs,
    /** Sets the gap of rounds started by blocks produced after atMs. */
    setFinalityGap(blocks: number, atMs: number): void {
      gaps.push({ fromMs: atMs, blocks });
      headFinalMs = undefined;
      findNext();
    },
  };
}

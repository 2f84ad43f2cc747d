import { nextTick, type UpstreamClock } from './clock.ts';

/** Where a transaction ends up, and from when on that is final (epoch ms). */
export type Placement = { blockNumber: number; txIndex: number; finalMs: number };

/** Blocks are made at multiples of the block time since the epoch; a block's number is that multiple. */
type Chain = {
  /** Puts a transaction sent at sentMs into the next block. */
  include(sentMs: number): Placement;
  /** Puts a transaction into one certain block that is not made yet. */
  includeIn(blockNumber: number): Placement;
};

export function createChain({ blockMs, finalityMs }: UpstreamClock): Chain {
  const transactions = new Map<number, number>();

  function includeIn(blockNumber: number): Placement {
    const txIndex = transactions.get(blockNumber) ?? 0;
    transactions.set(blockNumber, txIndex + 1);
    return { blockNumber, txIndex, finalMs: blockNumber * blockMs + finalityMs };
  }

  return {
    include(sentMs) {
      const blockNumber = nextTick(sentMs, blockMs);
      // A block that was made takes no more transactions; its counter would only be kept for ever.
      if (!transactions.has(blockNumber)) {
        for (const made of transactions.keys()) if (made < blockNumber) transactions.delete(made);
      }
      return includeIn(blockNumber);
    },
    includeIn,
  };
}

import { digest } from './digest.ts';
import {
  blake2b256,
  submitDataExtrinsic,
  timestampExtrinsic,
  transferExtrinsic,
} from './extrinsics.ts';

/** Position of a transaction on the chain. */
export type Placement = { blockNumber: number; txIndex: number };

/** Most bytes of submitted data that are kept; the oldest blocks are pruned first. */
const MAX_BYTES = 64 * 1024 * 1024;
/** Memory of a transaction beside its data, estimated. */
const TRANSACTION_BYTES = 300;
const MAX_TRANSFERS = 3;

/**
 * Returns the index of the first submission in a block: the extrinsic that sets the time, and 0 to
 * 3 transactions of others precede it.
 */
export function firstIndexOf(seed: number, blockNumber: number): number {
  const draw = Number.parseInt(digest('transfers', seed, blockNumber).slice(0, 8), 16);
  return 1 + (draw % (MAX_TRANSFERS + 1));
}

/** The submitted data of the newest blocks, from which their extrinsics are made on request. */
export function createBodies(seed: number, maxBytes = MAX_BYTES) {
  /** By block, in ascending order; the data of one block in the order of its transactions. */
  const blocks = new Map<number, Uint8Array[]>();
  let keptBytes = 0;
  let prunedNumber = Number.NEGATIVE_INFINITY;

  const bytesOf = (data: Uint8Array) => data.length + TRANSACTION_BYTES;

  function prune(): void {
    for (const [number, transactions] of blocks) {
      if (keptBytes <= maxBytes) return;
      blocks.delete(number);
      prunedNumber = number;
      for (const data of transactions) keptBytes -= bytesOf(data);
    }
  }

  return {
    /** Adds the next transaction of its block, and returns its hash: 64 hex digits. */
    add({ blockNumber, txIndex }: Placement, data: Uint8Array): string {
      if (blockNumber > prunedNumber) {
        const transactions = blocks.get(blockNumber) ?? [];
        transactions.push(data);
        blocks.set(blockNumber, transactions);
        keptBytes += bytesOf(data);
        prune();
      }
      return blake2b256(submitDataExtrinsic({ seed, blockNumber, txIndex }, data));
    },
    /** Returns the encoded extrinsics of a block; undefined if its data is no longer kept. */
    extrinsicsOf(blockNumber: number, producedMs: number): Uint8Array[] | undefined {
      if (blockNumber <= prunedNumber) return undefined;
      const firstIndex = firstIndexOf(seed, blockNumber);
      const position = (txIndex: number) => ({ seed, blockNumber, txIndex });
      const transfers = Array.from({ length: firstIndex - 1 }, (_, index) =>
        transferExtrinsic(position(index + 1)),
      );
      const submissions = (blocks.get(blockNumber) ?? []).map((data, index) =>
        submitDataExtrinsic(position(firstIndex + index), data),
      );
      return [timestampExtrinsic(producedMs), ...transfers, ...submissions];
    },
  };
}

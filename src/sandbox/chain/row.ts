import type { Placement } from './bodies.ts';
import { digest, feesOf } from './digest.ts';
import { blake2b256 } from './extrinsics.ts';

export const ROW_STATE = { pending: 'Pending', finalized: 'Finalized', error: 'Error' } as const;
export type RowState = (typeof ROW_STATE)[keyof typeof ROW_STATE];

/** A row of the upstream's table. Hashes are 64 hex digits without a prefix. */
export type Row = {
  submissionId: string;
  state: RowState;
  /** Set in state Error only. */
  error: string | null;
  createdAtMs: number;
  amountBytes: number;
  /** Set in state Finalized only. */
  block?: { number: number; hash: string; txHash: string; txIndex: number };
  /** Set in state Finalized only; decimal integers, too large for a number. */
  bill?: { fees: string; dataBilled: string; dataHash: string };
};

export type Contents = { amountBytes: number; dataHash: string };

export function contentsOf(data: Uint8Array): Contents {
  return { amountBytes: data.length, dataHash: blake2b256(data) };
}

/** A transaction on the chain; its hash is 64 hex digits. */
export type Included = Placement & { txHash: string };

/**
 * Returns the chain data of a finalized transaction. Computed on demand, because most reads are of
 * pending submissions.
 */
export function chainDataOf(
  { seed, submissionId, blockHash }: { seed: number; submissionId: string; blockHash: string },
  { blockNumber, txIndex, txHash }: Included,
  { amountBytes, dataHash }: Contents,
): Required<Pick<Row, 'block' | 'bill'>> {
  return {
    block: { number: blockNumber, hash: blockHash, txHash, txIndex },
    bill: {
      fees: feesOf(digest('fees', seed, submissionId)),
      dataBilled: String(amountBytes),
      dataHash,
    },
  };
}

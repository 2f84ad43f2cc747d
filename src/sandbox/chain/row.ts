import type { Placement } from './chain.ts';
import { digest, feesOf } from './digest.ts';

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
  /** Sending attempts so far. */
  attempts: number;
  /** Set in state Finalized only. */
  block?: { number: number; hash: string; txHash: string; txIndex: number };
  /** Set in state Finalized only; decimal integers, too large for a number. */
  bill?: { fees: string; dataBilled: string; dataHash: string };
};

export type Contents = { amountBytes: number; dataHash: string };

export function contentsOf(data: string): Contents {
  return { amountBytes: Buffer.byteLength(data), dataHash: digest(data) };
}

/**
 * Returns the chain data of a finalized transaction. Computed on demand, because most reads are of
 * pending submissions.
 */
export function chainDataOf(
  { seed, submissionId, attempts }: { seed: number; submissionId: string; attempts: number },
  { blockNumber, txIndex }: Placement,
  { amountBytes, dataHash }: Contents,
): Required<Pick<Row, 'block' | 'bill'>> {
  const txHash = digest('transaction', seed, submissionId, attempts);
  return {
    block: { number: blockNumber, hash: digest('block', seed, blockNumber), txHash, txIndex },
    bill: {
      fees: feesOf(digest('fees', seed, submissionId)),
      dataBilled: String(amountBytes),
      dataHash,
    },
  };
}

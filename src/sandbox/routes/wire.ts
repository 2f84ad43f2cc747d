import { ROW_STATE, type Row } from '../chain/row.ts';

const UNITS = ['B', 'KB', 'MB', 'GB'] as const;

/** Returns `4.00 B`, `1.20 KB` and so on, with units of 1024. */
function formatAmount(amountBytes: number): string {
  const step = amountBytes < 1 ? 0 : Math.floor(Math.log2(amountBytes) / 10);
  const unitIndex = Math.min(step, UNITS.length - 1);
  return `${(amountBytes / 1024 ** unitIndex).toFixed(2)} ${UNITS[unitIndex] ?? 'B'}`;
}

/** Returns the response body of get_submission_info. */
export function submissionBody(row: Row, userId: string): object {
  return {
    id: row.submissionId,
    state: row.state,
    error: row.error,
    data: row.state === ROW_STATE.error ? null : metadata(row, userId),
  };
}

function metadata({ block, bill, ...row }: Row, userId: string): object {
  return {
    amount_data: formatAmount(row.amountBytes),
    block_hash: prefixed(block?.hash),
    block_number: block?.number ?? null,
    created_at: new Date(row.createdAtMs).toISOString(),
    data_billed: bill?.dataBilled ?? null,
    data_hash: prefixed(bill?.dataHash),
    fees: bill?.fees ?? null,
    tx_hash: prefixed(block?.txHash),
    tx_index: block?.txIndex ?? null,
    user_id: userId,
  };
}

function prefixed(hash: string | undefined): string | null {
  return hash === undefined ? null : `0x${hash}`;
}

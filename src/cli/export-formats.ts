import { toHistoryBody, toSubmissionBody } from '../http/shapes.ts';
import type { Exported } from '../ledger/export.ts';
import { iso } from '../monitor/iso.ts';
import { toCsvLine } from './csv.ts';

export type ExportFormat = { head: string; line: (exported: Exported) => string };

const COLUMNS = [
  'submission_id',
  'upstream',
  'status',
  'upstream_state',
  'error',
  'tracked_at',
  'finalized_at',
  'changed_at',
  'deadline_at',
  'polls',
  'block_number',
  'block_hash',
  'tx_hash',
  'metadata',
  'data',
] as const;

/** ndjson: what `GET /v1/submissions/{id}` answers, history and all. csv: a line each, for spreadsheets. */
export const EXPORT_FORMATS: Record<'ndjson' | 'csv', ExportFormat> = {
  ndjson: {
    head: '',
    line: ({ submission, deadlineAt, history }) =>
      `${JSON.stringify({ ...toSubmissionBody(submission, deadlineAt), history: history.map(toHistoryBody) })}\n`,
  },
  csv: { head: toCsvLine(COLUMNS), line: toRow },
};

function toRow({ submission, deadlineAt, changedAt }: Exported): string {
  const { data, metadata, ...body } = toSubmissionBody(submission, deadlineAt);
  const cells: Record<(typeof COLUMNS)[number], string | number | null> = {
    ...body,
    changed_at: iso(changedAt),
    block_number: plain(data?.block_number),
    block_hash: plain(data?.block_hash),
    tx_hash: plain(data?.tx_hash),
    metadata: metadata && JSON.stringify(metadata),
    data: data && JSON.stringify(data),
  };
  return toCsvLine(COLUMNS.map((name) => cells[name]));
}

function plain(value: unknown): string | number | null {
  return typeof value === 'string' || typeof value === 'number' ? value : null;
}

import { toCsvLine } from '../../domain/reports/csv.ts';
import { iso } from '../../domain/timestamps.ts';
import { toHistoryBody, toSubmissionBody } from '../../http/routes/submission-body.ts';
import type { ExportedSubmission } from '../../ledger/submissions/export.ts';
import { toJson } from './json.ts';

type LineOptions = {
  /** Whether the output is a terminal, so that control characters must be escaped. */
  isTerminal: boolean;
};
export type ExportFormat = { head: string; line: (exported: ExportedSubmission, options: LineOptions) => string };

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
  'last_polled_at',
  'not_found_since',
  'unknown_grace_s',
  'stuck_after_s',
  'callback_url',
] as const;

/** ndjson: the response of `GET /v1/submissions/{id}` without `next_poll_at`. csv: one line per submission, for spreadsheets. */
export const EXPORT_FORMATS: Record<'ndjson' | 'csv', ExportFormat> = {
  ndjson: {
    head: '',
    line({ submission, deadlineAt, history: entries }) {
      const { callbackUrl } = submission;
      const body = {
        ...toSubmissionBody(submission, { deadlineAt, callbackUrl }),
        history: entries.map(toHistoryBody),
      };
      return `${toJson(body)}\n`;
    },
  },
  csv: { head: toCsvLine(COLUMNS), line: toRow },
};

function toRow({ submission, deadlineAt, changedAt }: ExportedSubmission, { isTerminal }: LineOptions): string {
  const { callbackUrl } = submission;
  const { data, metadata, ...body } = toSubmissionBody(submission, { deadlineAt, callbackUrl });
  const cells: Record<(typeof COLUMNS)[number], string | number | null> = {
    ...body,
    changed_at: iso(changedAt),
    block_number: plain(data?.block_number),
    block_hash: plain(data?.block_hash),
    tx_hash: plain(data?.tx_hash),
    metadata: metadata && JSON.stringify(metadata),
    data: data && JSON.stringify(data),
  };
  return toCsvLine(
    COLUMNS.map((name) => cells[name]),
    { isTerminal },
  );
}

function plain(value: unknown): string | number | null {
  return typeof value === 'string' || typeof value === 'number' ? value : null;
}

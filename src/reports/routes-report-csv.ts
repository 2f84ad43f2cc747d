import { toCsvLine } from '../lib/csv.ts';
import { FINAL_STATUSES } from '../submissions/submission.ts';
import type { ReportBody } from './routes-report-body.ts';

type Row = ReportBody['rows'][number];
type Cell = string | number | null;

const PERCENTILES = ['count', 'p50', 'p90', 'p99'] as const;
const unit = (name: string) => (name === 'count' ? '' : '_s');

const COLUMNS: readonly (readonly [name: string, of: (row: Row) => Cell])[] = [
  ['start', ({ start }) => start],
  ['group', ({ group }) => group],
  ['credential_id', (row) => row.credential_id],
  ['other', ({ other }) => String(other)],
  ...FINAL_STATUSES.map(
    (status) => [status, ({ submissions }: Row): Cell => submissions[status]] as const,
  ),
  ['corrected', ({ corrected }) => corrected],
  ['requests', ({ requests }) => requests],
  ...(['time_to_finality', 'detection_lag'] as const).flatMap((name) =>
    PERCENTILES.map(
      (percentile) =>
        [
          `${name}_${percentile}${unit(percentile)}`,
          (row: Row): Cell => row[`${name}_s`]?.[percentile] ?? null,
        ] as const,
    ),
  ),
  ['fees', ({ fees }) => fees],
  ['data_billed', (row) => row.data_billed],
  ['without_billing', (row) => row.without_billing],
  ['objective_good', ({ objective }) => objective?.good ?? null],
  ['objective_bad', ({ objective }) => objective?.bad ?? null],
];

type Options = { isTerminal?: boolean };

/** The header line. */
export const CSV_HEADER = toCsvLine(COLUMNS.map(([name]) => name));

/** Returns a row of a report as a line of CSV. `isTerminal`: also escapes control characters. */
export function toCsvRow(row: Row, options: Options = {}): string {
  return toCsvLine(
    COLUMNS.map(([, of]) => of(row)),
    options,
  );
}

/** Returns the rows of a report as CSV with a header line. */
export function toReportCsv({ rows }: Pick<ReportBody, 'rows'>, options: Options = {}): string {
  return [CSV_HEADER, ...rows.map((row) => toCsvRow(row, options))].join('');
}

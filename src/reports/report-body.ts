import { z } from 'zod';
import { CONFIGURED_CREDENTIALS } from '../access/access.ts';
import type { CredentialRecord } from '../access/credentials-store.ts';
import { timeSchema } from '../http/query.ts';
import { toCsvLine } from '../lib/csv.ts';
import type { DurationHistogram } from '../lib/duration-histogram.ts';
import { iso } from '../lib/timestamps.ts';
import {
  attained,
  BURN_WINDOW_NAMES,
  type BurnWindow,
  budgetLeft,
  burnRate,
  type ObjectiveStatus,
} from '../submissions/objective.ts';
import { FINAL_STATUSES } from '../submissions/submission.ts';
import type { ReportLine, ReportQuery, ReportSums } from './report.ts';
import { REPORT_UNITS } from './reports-store.ts';
import type { FinalStatus } from './roll-up.ts';

export const intervalSchema = z
  .enum(['hour', 'day', 'total'])
  .describe('Length of the periods of a report')
  .meta({ id: 'ReportInterval' });
export const groupingSchema = z
  .enum(['none', 'upstream', 'credential', 'metadata'])
  .describe('What the rows of a report have in common')
  .meta({ id: 'ReportGrouping' });
const count = z.int();
const seconds = z.number().describe('Seconds, exact to 5 %');
const amount = z
  .string()
  .regex(/^-?\d+$/)
  .describe('A decimal integer of any length');

const quantiles = { p50: seconds, p90: seconds, p99: seconds };
const known = count.describe('Number of submissions for which it is known');
const percentiles = z
  .object({ count: known, ...quantiles })
  .describe('Seconds, exact to 5 %')
  .meta({ id: 'ReportPercentiles' });
const lagPercentiles = z
  .object({
    count: known,
    from_chain: count.describe(
      'Those of them whose time of finality a node of the chain announced; the others are estimates',
    ),
    ...quantiles,
  })
  .describe('Seconds, exact to 5 %')
  .meta({ id: 'ReportDetectionLag' });

const endedSchema = z
  .object(
    Object.fromEntries(FINAL_STATUSES.map((status) => [status, count])) as Record<
      FinalStatus,
      typeof count
    >,
  )
  .describe('Submissions that ended, by final status')
  .meta({ id: 'EndedSubmissions' });

const countsSchema = z
  .object({
    good: count.describe('Known as final in time'),
    bad: count.describe('Not known as final in time'),
  })
  .describe('Submissions by whether they were known as final in time')
  .meta({ id: 'ObjectiveCounts' });

const sums = {
  submissions: endedSchema.describe(
    'Submissions that ended in the period, by final status. One that was tracked again counts once for each end',
  ),
  corrected: count.describe('Changes of finalized submissions by the upstream'),
  requests: count.describe(
    'Polls of these submissions until they ended; rechecks count with the correction that they find',
  ),
  time_to_finality_s: percentiles
    .nullable()
    .describe('From tracking until found final; null if none was'),
  detection_lag_s: lagPercentiles
    .nullable()
    .describe(
      'Time from finality to its detection, known from a node of the chain or estimated; submissions found final before anything was learned have no estimate',
    ),
  fees: amount,
  data_billed: amount,
  without_billing: count.describe(
    'Finalized submissions whose `data` has no integers there; they count as 0',
  ),
  objective: countsSchema
    .nullable()
    .describe(
      'By whether finality was known by the time that the objective requires; null without an objective, and for groups by credential or metadata',
    ),
};

const rowSchema = z
  .object({
    start: timeSchema.describe('Start of the period'),
    group: z
      .string()
      .nullable()
      .describe(
        'Upstream, name of the credential, or value of the metadata key; null: all, none, or the rest of the values',
      ),
    credential_id: count
      .nullable()
      .describe('Id of the credential in `dawatch token list`, where the rows are credentials'),
    other: z.boolean().describe('Whether these are the values beyond the first 100 of a day'),
    ...sums,
  })
  .describe('Sums over the submissions of one period and group')
  .meta({ id: 'ReportRow' });

const totalSchema = z.object(sums).describe('Of all rows').meta({ id: 'ReportSums' });

const objectiveSchema = z
  .object({
    upstream: z.string(),
    target_percent: z.number(),
    within_s: z.number(),
    good: count.describe('Known as final in time, in the last 30 days'),
    bad: count,
    attained_percent: z.number().nullable().describe('null if no submission was counted'),
    error_budget_left: z
      .number()
      .describe('Unspent share of the error budget of 30 days; negative if more than all is spent'),
    burn_rates: z
      .object(
        Object.fromEntries(
          BURN_WINDOW_NAMES.map((name) => [name, z.number().nullable()]),
        ) as Record<BurnWindow, z.ZodNullable<z.ZodNumber>>,
      )
      .describe(
        'Speed at which the budget is spent, in the last 5 minutes to 3 days; 1 spends it exactly in 30 days',
      ),
  })
  .describe('A service level objective and its error budget')
  .meta({ id: 'Objective' });

const SUMS_EXAMPLE = {
  submissions: { finalized: 7_201, failed: 1, unknown: 0, rejected: 0, expired: 0, cancelled: 2 },
  corrected: 0,
  requests: 10_842,
  time_to_finality_s: { count: 7_201, p50: 52.6, p90: 63.6, p99: 70 },
  detection_lag_s: { count: 7_201, from_chain: 7_180, p50: 0.31, p90: 0.67, p99: 1.09 },
  fees: '895525217508269327417',
  data_billed: '29544704',
  without_billing: 0,
  objective: { good: 7_195, bad: 7 },
};

export const reportSchema = z
  .object({
    from: z.iso.date(),
    to: z.iso.date(),
    interval: intervalSchema,
    group_by: groupingSchema,
    metadata_key: z.string().nullable().describe('`reports.metadata_key`'),
    rows: z
      .array(rowSchema)
      .describe('By start and group. Periods and groups without submissions have no row'),
    total: totalSchema,
    objectives: z
      .array(objectiveSchema)
      .describe('The service level objectives now, whatever the period of the report'),
  })
  .describe('Sums over the submissions that ended')
  .meta({
    id: 'Report',
    examples: [
      {
        from: '2026-01-02',
        to: '2026-01-02',
        interval: 'day',
        group_by: 'upstream',
        metadata_key: null,
        rows: [
          {
            start: '2026-01-02T00:00:00.000Z',
            group: 'default',
            credential_id: null,
            other: false,
            ...SUMS_EXAMPLE,
          },
        ],
        total: SUMS_EXAMPLE,
        objectives: [
          {
            upstream: 'default',
            target_percent: 99,
            within_s: 120,
            good: 211_020,
            bad: 633,
            attained_percent: 99.701,
            error_budget_left: 0.701,
            burn_rates: { '5m': 0, '30m': 0.4, '1h': 0.2, '6h': 0.3, '3d': 0.28 },
          },
        ],
      },
    ],
  });
export type ReportBody = z.output<typeof reportSchema>;

/** Returns the body of a response without its rows. */
export function toReportFrame(
  total: ReportSums,
  context: {
    query: ReportQuery;
    metadataKey: string | null;
    objectives: readonly ObjectiveStatus[];
  },
): {
  before: Omit<ReportBody, 'rows' | 'total' | 'objectives'>;
  after: { total: ReportBody['total']; objectives: ReportBody['objectives'] };
} {
  const { query, metadataKey, objectives } = context;
  return {
    before: {
      from: dayOf(query.from),
      to: dayOf(query.until - REPORT_UNITS.day),
      interval: query.interval,
      group_by: query.groupBy,
      metadata_key: metadataKey,
    },
    after: { total: toSums(total), objectives: objectives.map(toObjectiveBody) },
  };
}

/** Returns a function that converts a line to a row of the body. */
export function rowWriter(
  { groupBy }: ReportQuery,
  credentials: readonly CredentialRecord[],
): (line: ReportLine) => ReportBody['rows'][number] {
  const names = new Map(credentials.map(({ id, name }) => [String(id), name]));
  names.set(String(CONFIGURED_CREDENTIALS.service), 'DAWATCH_API_KEY');
  names.set(String(CONFIGURED_CREDENTIALS.admin), 'DAWATCH_ADMIN_TOKEN');
  return ({ start, group, ...line }) => {
    const value = group.kind === 'value' ? group.value : null;
    const isCredential = groupBy === 'credential' && value !== null;
    return {
      start: iso(start),
      group: isCredential ? (names.get(value) ?? value) : value,
      credential_id: isCredential && Number(value) > 0 ? Number(value) : null,
      other: group.kind === 'other',
      ...toSums(line),
    };
  };
}

function toSums({ sums: { ended, timeToFinality, lag, ...others }, counts }: ReportSums) {
  const lags = toPercentiles(lag);
  return {
    submissions: ended,
    corrected: others.corrected,
    requests: others.requests,
    time_to_finality_s: toPercentiles(timeToFinality),
    detection_lag_s: lags && { ...lags, from_chain: others.lagsByChain },
    fees: String(others.fees),
    data_billed: String(others.dataBilled),
    without_billing: others.unbilled,
    objective: counts,
  };
}

function toPercentiles(histogram: DurationHistogram) {
  const at = (share: number) => rounded((histogram.percentile(share) ?? 0) / 1_000);
  return histogram.count === 0
    ? null
    : { count: histogram.count, p50: at(0.5), p90: at(0.9), p99: at(0.99) };
}

function toObjectiveBody({ upstream, objective, budget, windows }: ObjectiveStatus) {
  const share = attained(budget);
  const rates = BURN_WINDOW_NAMES.map((name) => {
    const rate = burnRate(windows[name], objective);
    return [name, rate === null ? null : rounded(rate)];
  });
  return {
    upstream,
    target_percent: Number((100 * objective.target).toFixed(6)),
    within_s: objective.withinMs / 1_000,
    ...budget,
    attained_percent: share === null ? null : Number((100 * share).toFixed(3)),
    error_budget_left: Number(budgetLeft(budget, objective).toFixed(4)),
    burn_rates: Object.fromEntries(rates) as Record<BurnWindow, number | null>,
  };
}

/** Rounds to digits that are significant at a precision of 5 %. */
function rounded(value: number): number {
  return Number(value.toPrecision(3));
}

function dayOf(ms: number): string {
  return iso(ms).slice(0, 10);
}

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
  ['detection_lag_from_chain', (row) => row.detection_lag_s?.from_chain ?? null],
];

type Options = { isTerminal?: boolean };

const HEADER_LINE = toCsvLine(COLUMNS.map(([name]) => name));
/** The header line of a file. Spreadsheets read UTF-8 only after a byte order mark. */
export const CSV_HEADER = `\ufeff${HEADER_LINE}`;

/** Returns a row of a report as a line of CSV. `isTerminal`: also escapes control characters. */
export function toCsvRow(row: Row, options: Options = {}): string {
  return toCsvLine(
    COLUMNS.map(([, of]) => of(row)),
    options,
  );
}

/** Returns the rows of a report as CSV with a header line. */
export function toReportCsv({ rows }: { rows: readonly Row[] }, options: Options = {}): string {
  const header = options.isTerminal ? HEADER_LINE : CSV_HEADER;
  return [header, ...rows.map((row) => toCsvRow(row, options))].join('');
}

import { z } from 'zod';
import type { ReportQuery } from './report.ts';
import { REPORT_UNITS } from './report-rows-store.ts';

const DAY_MS = REPORT_UNITS.day;
const DEFAULT_DAYS = 30;
const MAX_DAYS = { hour: 8, day: 400, total: 400 } as const;
/** Limit for reports with a row for each day and group, because a day may have a hundred groups. */
const MAX_DAYS_OF_GROUPS = 92;

export const intervalSchema = z
  .enum(['hour', 'day', 'total'])
  .describe('Length of the periods of a report')
  .meta({ id: 'ReportInterval' });
export const groupingSchema = z
  .enum(['none', 'upstream', 'credential', 'metadata'])
  .describe('What the rows of a report have in common')
  .meta({ id: 'ReportGrouping' });
const formatSchema = z
  .enum(['json', 'csv'])
  .describe('Format of a report')
  .meta({ id: 'ReportFormat' });

const day = z.iso.date('must be a day like 2026-01-31');

export const reportQuerySchema = z.strictObject({
  from: day
    .optional()
    .describe('First day (UTC), such as 2026-01-01; default: 29 days before the last')
    .meta({ examples: ['2026-01-01'] }),
  to: day
    .optional()
    .describe('Last day (UTC), included; default: today')
    .meta({ examples: ['2026-01-31'] }),
  interval: intervalSchema
    .default('day')
    .describe(
      'Length of the periods: hours (of the last 8 days; not with credential or metadata), days, or one for everything',
    ),
  group_by: groupingSchema
    .default('upstream')
    .describe(
      'One row per period and upstream, credential (needs the scope operations:read), value of `reports.metadata_key`, or one for all',
    ),
  upstream: z
    .string()
    .max(32)
    .optional()
    .describe('Only submissions of this upstream')
    .meta({ examples: ['default'] }),
  format: formatSchema.optional().describe('Default: by the Accept header, else json'),
});
type ReportParameters = z.output<typeof reportQuerySchema>;

/** Returns the query of valid parameters, or the invalid parameter and the reason. */
export function toReportQuery(
  parameters: ReportParameters,
  now: number,
): { query: ReportQuery } | { invalid: string; reason: string } {
  const { interval, group_by: groupBy, upstream } = parameters;
  const until =
    (parameters.to === undefined ? Math.floor(now / DAY_MS) * DAY_MS : Date.parse(parameters.to)) +
    DAY_MS;
  const isGrouped = groupBy === 'credential' || groupBy === 'metadata';
  const maxDays = isGrouped && interval === 'day' ? MAX_DAYS_OF_GROUPS : MAX_DAYS[interval];
  const defaultDays = Math.min(DEFAULT_DAYS, maxDays);
  const from =
    parameters.from === undefined ? until - defaultDays * DAY_MS : Date.parse(parameters.from);
  if (from >= until) return { invalid: 'to', reason: 'must not be before from' };
  if (interval === 'hour' && isGrouped)
    return { invalid: 'interval', reason: `hours cannot be grouped by ${groupBy}` };
  if (until - from > maxDays * DAY_MS)
    return {
      invalid: 'from',
      reason: `must be at most ${maxDays} days before to, with this interval and group_by`,
    };
  return { query: { from, until, interval, groupBy, upstream } };
}

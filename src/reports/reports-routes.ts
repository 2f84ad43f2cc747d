import { Readable } from 'node:stream';
import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import type { CredentialRecord } from '../access/credentials-store.ts';
import { operations, sendProblem } from '../http/problems.ts';
import type { TypedServer } from '../http/typed-server.ts';
import { jsonStream, textOf } from '../http/write-in-turns.ts';
import type { Clock } from '../lib/clock.ts';
import { buildReport, type ReportQuery } from './report.ts';
import {
  CSV_HEADER,
  groupingSchema,
  intervalSchema,
  reportSchema,
  rowWriter,
  toCsvRow,
  toReportFrame,
} from './report-body.ts';
import { REPORT_UNITS, type Reports } from './reports-store.ts';

const DAY_MS = REPORT_UNITS.day;
const DEFAULT_DAYS = 30;
const MAX_DAYS = { hour: 8, day: 400, total: 400 } as const;
/** Limit for reports with a row for each day and group, because a day may have a hundred groups. */
const MAX_DAYS_OF_GROUPS = 92;

const formatSchema = z
  .enum(['json', 'csv'])
  .describe('Format of a report')
  .meta({ id: 'ReportFormat' });

const day = z.iso.date('must be a day like 2026-01-31');

const reportQuerySchema = z.strictObject({
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
function toReportQuery(
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

const csvSchema = z
  .string()
  .describe('The rows without the total, with a header line (RFC 4180)')
  .meta({
    examples: [
      'start,group,credential_id,other,finalized,…\r\n2026-01-02T00:00:00.000Z,default,,false,7201,…\r\n',
    ],
  });

const OPERATIONS = operations('operations', {
  getReport: {
    summary: 'Get sums over the submissions that ended, by day',
    description:
      'Days are UTC days and are kept for 400 days. Sums of amounts are exact decimal texts. See docs/reports.md for the ' +
      'definition of each number.',
    querystring: reportQuerySchema,
    response: {
      200: {
        description: 'The report',
        content: {
          'application/json': { schema: reportSchema },
          'text/csv': { schema: csvSchema },
        },
      },
    },
  },
});

export function registerReports(
  app: TypedServer,
  {
    reports,
    clock,
    credentials,
  }: {
    reports: Reports;
    clock: Clock;
    /** Names the credentials that tracked submissions. */
    credentials: { list(): CredentialRecord[] };
  },
): void {
  const { metadataKey } = reports.settings;
  const config = { isLong: true, scopes: ['submissions:read'] } as const;
  app.get('/v1/reports', { config, schema: OPERATIONS.getReport }, async (request, reply) => {
    const now = clock.now();
    const parsed = toReportQuery(request.query, now);
    const refuse = (parameter: string, reason: string) =>
      sendProblem(reply, {
        status: 400,
        detail: `query ${parameter}: ${reason}`,
        errors: [{ pointer: parameter, detail: reason }],
      });
    if ('invalid' in parsed) return refuse(parsed.invalid, parsed.reason);
    const { query } = parsed;
    if (query.groupBy === 'metadata' && metadataKey === null)
      return refuse('group_by', 'metadata needs the setting reports.metadata_key');
    if (query.groupBy === 'credential' && !request.caller?.scopes.has('operations:read')) {
      const detail = 'group_by=credential needs the scope operations:read';
      return sendProblem(reply, { status: 403, detail });
    }
    const table = await buildReport(reports, query);
    const { before, after } = toReportFrame(table.total, {
      query,
      metadataKey,
      objectives: reports.objectiveStatus(now),
    });
    const rowOf = rowWriter(query, query.groupBy === 'credential' ? credentials.list() : []);
    if (wantsCsv(request, request.query.format)) {
      reply.header(
        'content-disposition',
        `attachment; filename="dawatch-${before.from}-${before.to}.csv"`,
      );
      const lines = textOf(CSV_HEADER, table.lines(), (line) => toCsvRow(rowOf(line)));
      return reply.type('text/csv; charset=utf-8').send(Readable.from(lines) as never);
    }
    const rows = jsonStream(before, ['rows', table.lines(), rowOf], after);
    return reply.type('application/json; charset=utf-8').send(rows as never);
  });
}

function wantsCsv({ headers }: FastifyRequest, format: 'json' | 'csv' | undefined): boolean {
  const { accept = '' } = headers;
  return format === undefined
    ? /\btext\/csv\b/i.test(accept) && !/\bjson\b/i.test(accept)
    : format === 'csv';
}

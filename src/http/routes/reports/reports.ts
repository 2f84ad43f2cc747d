import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import type { Clock } from '../../../domain/clock.ts';
import type { Objective } from '../../../domain/reports/objective.ts';
import type { Ledger } from '../../../ledger/ledger.ts';
import type { TypedServer } from '../../ports.ts';
import { operations, sendProblem } from '../../problems.ts';
import { buildReport, inTurns } from './build-report.ts';
import { reportSchema, toReportBody } from './report-body.ts';
import { CSV_HEADER, toCsvRow } from './report-csv.ts';
import { reportQuerySchema, toReportQuery } from './report-query.ts';

const csvSchema = z
  .string()
  .describe('The rows without the total, with a header line (RFC 4180)')
  .meta({
    examples: ['start,group,credential_id,other,finalized,…\r\n2026-01-02T00:00:00.000Z,default,,false,7201,…\r\n'],
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
        content: { 'application/json': { schema: reportSchema }, 'text/csv': { schema: csvSchema } },
      },
    },
  },
});

export function registerReports(
  app: TypedServer,
  deps: {
    ledger: Ledger;
    clock: Clock;
    metadataKey: string | null;
    objectives: ReadonlyMap<string, Objective>;
  },
): void {
  const { ledger, clock, metadataKey, objectives } = deps;
  app.get('/v1/reports', { config: { isExpensive: true }, schema: OPERATIONS.getReport }, async (request, reply) => {
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
    if (query.groupBy === 'credential' && request.caller?.role !== 'admin') {
      const detail = `group_by=credential needs the role admin, yours is ${request.caller?.role}`;
      return sendProblem(reply, { status: 403, detail });
    }
    const countedUntil = ledger.reports.countedUntil() ?? now;
    const body = await toReportBody(await buildReport(ledger, query, { metadataKey, objectives }), {
      query,
      metadataKey,
      countedUntil: Math.min(countedUntil, now),
      credentials: query.groupBy === 'credential' ? ledger.credentials.list() : [],
      objectives: ledger.objectives.status(objectives, now),
    });
    if (!wantsCsv(request, request.query.format)) return body;
    const lines = await inTurns(body.rows, (row) => toCsvRow(row));
    return reply
      .type('text/csv; charset=utf-8')
      .header('content-disposition', `attachment; filename="dawatch-${body.from}-${body.to}.csv"`)
      .serializer((text: unknown) => text as string)
      .send([CSV_HEADER, ...lines].join('') as never);
  });
}

function wantsCsv({ headers }: FastifyRequest, format: 'json' | 'csv' | undefined): boolean {
  const { accept = '' } = headers;
  return format === undefined ? /\btext\/csv\b/i.test(accept) && !/\bjson\b/i.test(accept) : format === 'csv';
}

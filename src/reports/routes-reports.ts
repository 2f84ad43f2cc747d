import { Readable } from 'node:stream';
import { setImmediate } from 'node:timers/promises';
import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import type { CredentialRecord } from '../access/credentials-store.ts';
import { operations, sendProblem } from '../http/problems.ts';
import type { TypedServer } from '../http/typed-server.ts';
import { jsonStream, textOf } from '../http/write-in-turns.ts';
import type { Clock } from '../lib/clock.ts';
import { buildReport } from './report.ts';
import type { Reports } from './reports.ts';
import { reportSchema, rowWriter, toReportFrame } from './routes-report-body.ts';
import { CSV_HEADER, toCsvRow } from './routes-report-csv.ts';
import { reportQuerySchema, toReportQuery } from './routes-report-query.ts';

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
  const config = { isExpensive: true, scopes: ['submissions:read'] } as const;
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
    const table = await inTurns(buildReport(reports, query));
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

/** Runs the steps of `work`, and other work between them. */
async function inTurns<Result>(work: Generator<void, Result>): Promise<Result> {
  for (;;) {
    const step = work.next();
    if (step.done) return step.value;
    await setImmediate();
  }
}

function wantsCsv({ headers }: FastifyRequest, format: 'json' | 'csv' | undefined): boolean {
  const { accept = '' } = headers;
  return format === undefined
    ? /\btext\/csv\b/i.test(accept) && !/\bjson\b/i.test(accept)
    : format === 'csv';
}

import { type Command, InvalidArgumentError, Option } from 'commander';
import { z } from 'zod';
import { type ConnectOptions, connect, requestAsOperator, withServer } from '../cli/connect.ts';
import { CommandError, ExitCode } from '../cli/exit.ts';
import { table, toJson } from '../cli/output.ts';
import type { Report, ReportQuery, ReportSums } from '../client/index.ts';
import { escapeText } from '../lib/text.ts';
import { toReportCsv } from './report-body.ts';

type Options = ConnectOptions & {
  from?: string;
  to?: string;
  interval: NonNullable<ReportQuery['interval']>;
  by: NonNullable<ReportQuery['group_by']>;
  upstream?: string;
  json?: boolean;
  csv?: boolean;
};

export function addReport(program: Command): void {
  withServer(program.command('report'))
    .description(
      'Show sums over the submissions that ended: statuses, time to finality, detection lag, requests, fees; and the service level objectives.',
    )
    .option(
      '--from <day>',
      'first day (UTC), such as 2026-01-01; default: 29 days before the last',
      parseDay,
    )
    .option('--to <day>', 'last day (UTC), included; default: today', parseDay)
    .addOption(
      new Option('--interval <interval>', 'length of the periods; hours are kept for 8 days')
        .choices(['hour', 'day', 'total'])
        .default('day'),
    )
    .addOption(
      new Option(
        '--by <group>',
        'one row per group; credential needs the role operator or admin, metadata the setting reports.metadata_key',
      )
        .choices(['none', 'upstream', 'credential', 'metadata'])
        .default('upstream'),
    )
    .option('--upstream <name>', 'only submissions of this upstream')
    .option('--json', 'print JSON, as returned by the HTTP interface')
    .option('--csv', 'print CSV with a header line')
    .addHelpText(
      'after',
      '\nWith --by credential, a token with the role operator or admin is read from DAWATCH_ADMIN_TOKEN.\n' +
        '\nExamples:\n  dawatch report --interval total --by metadata\n  dawatch report --from 2026-01-01 --to 2026-01-31 --csv > january.csv',
    )
    .action(async (options: Options) => {
      if (options.json && options.csv)
        throw new CommandError('give either --json or --csv', ExitCode.usage);
      const { from, to, interval, by: group_by, upstream } = options;
      const given = Object.entries({ from, to, interval, group_by, upstream }).filter(
        ([, value]) => value !== undefined,
      );
      const query = Object.fromEntries(given) as ReportQuery;
      const report = await (group_by === 'credential'
        ? requestAsOperator(options, (client) => client.report(query))
        : connect(options).report(query));
      process.stdout.write(textOf(report, options));
    });
}

function textOf(report: Report, { json, csv }: Options): string {
  if (json) return `${toJson(report)}\n`;
  if (csv) return toReportCsv(report, { isTerminal: process.stdout.isTTY === true });
  const empty =
    report.rows.length === 0
      ? `no submission ended from ${report.from} to ${report.to} (UTC)\n`
      : '';
  return `${empty || tableOf(report)}${objectiveLines(report)}`;
}

const COLUMNS: readonly (readonly [title: string, of: (sums: ReportSums) => string | number])[] = [
  ['finalized', ({ submissions }) => submissions.finalized],
  ['failed', ({ submissions }) => submissions.failed],
  ['expired', ({ submissions }) => submissions.expired],
  ['unknown', ({ submissions }) => submissions.unknown],
  ['rejected', ({ submissions }) => submissions.rejected],
  ['cancelled', ({ submissions }) => submissions.cancelled],
  ['corrected', ({ corrected }) => corrected],
  ['requests', ({ requests }) => requests],
  ['finality p50', ({ time_to_finality_s: time }) => seconds(time?.p50)],
  ['p99', ({ time_to_finality_s: time }) => seconds(time?.p99)],
  ['lag p50', ({ detection_lag_s: lag }) => seconds(lag?.p50)],
  ['p99', ({ detection_lag_s: lag }) => seconds(lag?.p99)],
  ['from chain', ({ detection_lag_s: lag }) => lag?.from_chain ?? '-'],
  ['fees', ({ fees }) => fees],
  ['billed', ({ data_billed }) => data_billed],
];

function tableOf({ rows, total, interval, group_by, metadata_key }: Report): string {
  const groupTitle = group_by === 'metadata' ? `metadata.${metadata_key}` : group_by;
  const named = (start: string, group: string, sums: ReportSums) => [
    start,
    ...(group_by === 'none' ? [] : [escapeText(group)]),
    ...COLUMNS.map(([, of]) => String(of(sums))),
  ];
  const startOf = (start: string) =>
    interval === 'hour' ? start.slice(0, 16) : interval === 'day' ? start.slice(0, 10) : 'total';
  return table([
    [
      interval === 'total' ? '' : `${interval} (UTC)`,
      ...(group_by === 'none' ? [] : [escapeText(groupTitle)]),
      ...COLUMNS.map(([title]) => title),
    ],
    ...rows.map(({ start, group, credential_id, other, ...sums }) => {
      const id = credential_id === null ? '' : ` (${credential_id})`;
      return named(startOf(start), other ? 'others' : group === null ? '-' : `${group}${id}`, sums);
    }),
    ...(rows.length > 1 ? [named('total', '', total)] : []),
  ]);
}

function objectiveLines({ objectives }: Report): string {
  return objectives
    .map(
      ({
        upstream,
        target_percent,
        within_s,
        good,
        bad,
        attained_percent,
        error_budget_left,
        burn_rates,
      }) => {
        const counted =
          attained_percent === null ? 'none counted yet' : `${attained_percent} % of ${good + bad}`;
        const rates = Object.entries(burn_rates).map(
          ([window, rate]) => `${window} ${rate ?? '-'}`,
        );
        return (
          `\nobjective of ${escapeText(upstream)}: ${target_percent} % known as final within ${within_s} s\n` +
          `  last 30 days  ${counted}, ${Math.round(100 * error_budget_left)} % of the error budget left\n` +
          `  burn rates    ${rates.join(', ')} (1 spends the budget in 30 days)\n`
        );
      },
    )
    .join('');
}

function seconds(value: number | undefined): string {
  return value === undefined ? '-' : `${value} s`;
}

function parseDay(text: string): string {
  if (z.iso.date().safeParse(text).success) return text;
  throw new InvalidArgumentError('Expected a day like 2026-01-31.');
}

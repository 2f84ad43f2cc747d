import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { parse, stringify } from 'yaml';
import { isPromtoolMissing, promtool } from '../support/app/metrics.ts';
import { tempFolder } from '../support/temp-folder.ts';

const RULES = 'config/prometheus/alerts.yml';
const parsed = parse(readFileSync(RULES, 'utf8')) as {
  groups: { rules: { alert?: string }[] }[];
};
const names = parsed.groups.flatMap(({ rules }) => rules.map(({ alert }) => alert));

/**
 * Samples once a minute, in the notation of promtool: `a+bxn` is a, followed by n increments of b.
 */
type Series = Record<string, string>;

const is = (name: string, value: number): Series => ({ [name]: `${value}+0x180` });
/** A counter that has increased by this number at the end of the second hour. */
const grew = (name: string, by: number): Series => ({ [name]: `0+0x119 ${by}+0x60` });
/** A histogram with all values below `bound` seconds, at 60 a minute. */
const below = (name: string, bound: string, labels: string): Series => ({
  [`${name}_bucket{${labels}le="${bound}"}`]: '0+60x180',
  [`${name}_bucket{${labels}le="300"}`]: '0+60x180',
  [`${name}_bucket{${labels}le="+Inf"}`]: '0+60x180',
});
const above = (name: string, bound: string, labels: string): Series => ({
  ...below(name, bound, labels),
  [`${name}_bucket{${labels}le="${bound}"}`]: '0+0x180',
});

const ENDED = 'dawatch_submissions_ended_total{instance="a",status=';
const DEAD = 'dawatch_dead_letters_total{instance="a",kind="webhook",reason="attempts_used_up"}';
const HELD = 'dawatch_pacing_next_request_delayed{upstream="default"}';
const HTTP = 'dawatch_http_requests_total{instance="a",method="GET",';
const UPSTREAM = 'upstream="default",';
const LAG = `source="chain",${UPSTREAM}`;
const FOUND = 'dawatch_time_to_finality_seconds';
/** Submissions of which `inTime` are found final within the 120 s of the objective. */
const found = (inTime: string): Series => ({
  ...below(FOUND, '120', UPSTREAM),
  [`${FOUND}_bucket{${UPSTREAM}le="120"}`]: inTime,
});

const disk = (free: number, size: number): Series => ({
  ...is('dawatch_ledger_disk_free_bytes', free),
  ...is('dawatch_ledger_disk_size_bytes', size),
});

/** Rules that compare more than one value with a constant; promtool checks the syntax of all. */
const CASES: Record<string, { fires: Series[]; isQuiet: Series[] }> = {
  DawatchUpstreamDown: {
    fires: [is(`dawatch_upstream_state{${UPSTREAM}state="down"}`, 1)],
    isQuiet: [is(`dawatch_upstream_state{${UPSTREAM}state="up"}`, 1)],
  },
  DawatchDiskLow: {
    fires: [disk(0.9e9, 1e12)],
    isQuiet: [disk(1.1e9, 1e12), disk(0.5e9, 1e9)],
  },
  DawatchSubmissionsFail: {
    fires: [
      grew(`${ENDED}"failed"}`, 12),
      {
        ...grew(`${ENDED}"unknown"}`, 4),
        ...grew(`${ENDED}"rejected"}`, 4),
        ...grew(`${ENDED}"expired"}`, 4),
      },
      // The process restarted within the hour.
      { [`${ENDED}"failed"}`]: '100+0x110 0+0x8 12+0x60' },
    ],
    isQuiet: [
      grew(`${ENDED}"failed"}`, 8),
      grew(`${ENDED}"finalized"}`, 1_000),
      is(`${ENDED}"failed"}`, 1_000),
      { [`${ENDED}"failed"}`]: '100+0x110 0+0x70' },
    ],
  },
  DawatchFinalityNoticedLate: {
    fires: [above('dawatch_detection_lag_seconds', '60', LAG)],
    isQuiet: [below('dawatch_detection_lag_seconds', '60', LAG)],
  },
  DawatchErrorBudgetBurnsFast: {
    // Of the last case, 8 % are late for hours.
    fires: [found('0+0x180'), found('0+60x100 6060+0x80'), found('0+55x180')],
    isQuiet: [found('0+60x180'), found('0+0x80 0+60x100'), found('0+58x180')],
  },
  DawatchErrorBudgetBurns: {
    fires: [found('0+58x180')],
    isQuiet: [found('0+60x180'), found('0+59.7x180')],
  },
  DawatchBudgetTooSmall: {
    fires: [is(HELD, 1)],
    isQuiet: [is(HELD, 0), { [HELD]: '0 1 '.repeat(90).trim() }],
  },
  DawatchDeadLetters: {
    fires: [
      grew(DEAD, 1),
      // The same number was replayed or discarded meanwhile, or the process restarted.
      { ...grew(DEAD, 3), ...is('dawatch_deliveries_dead', 0) },
      { [DEAD]: '5+0x110 0+0x8 1+0x60' },
    ],
    isQuiet: [is(DEAD, 0), is(DEAD, 7), { [DEAD]: '5+0x110 0+0x70' }],
  },
  DawatchNoWorkers: {
    fires: [{ dawatch_workers: '1+0x100 0+0x80', ...is('dawatch_redis_up', 1) }],
    isQuiet: [
      // Redis is used for queues only.
      { ...is('dawatch_workers', 0), ...is('dawatch_redis_up', 1) },
      { ...is('dawatch_workers', 1), ...is('dawatch_redis_up', 1) },
      { dawatch_workers: '1+0x100 0+0x80', ...is('dawatch_redis_up', 0) },
    ],
  },
  DawatchCommitsSlow: {
    fires: [above('dawatch_ledger_commit_duration_seconds', '0.25', 'instance="a",')],
    isQuiet: [below('dawatch_ledger_commit_duration_seconds', '0.25', 'instance="a",')],
  },
  DawatchHttpErrors: {
    fires: [{ [`${HTTP}route="/v1/submissions",status="503"}`]: '0+10x180' }],
    isQuiet: [
      { [`${HTTP}route="/v1/submissions",status="503"}`]: '0+5x180' },
      { [`${HTTP}route="/v1/get_submission_info",status="502"}`]: '0+600x180' },
    ],
  },
};

it('the cases are about rules that exist', () => {
  expect(names).toEqual(expect.arrayContaining(Object.keys(CASES)));
});

/**
 * Writes a test of one rule after two hours and ten minutes; the longest duration of an alert rule
 * is 30 minutes. All rules would take ten times as long.
 */
function testFile(folder: string, alert: string, cases: { fires: Series[]; isQuiet: Series[] }) {
  const [rules, file] = [join(folder, `${alert}.rules.yml`), join(folder, `${alert}.yml`)];
  const hasRecords = alert.startsWith('DawatchErrorBudget');
  const groups = parsed.groups.map((group) => ({
    ...group,
    rules: group.rules.filter((rule) => rule.alert === alert || (hasRecords && 'record' in rule)),
  }));
  writeFileSync(rules, stringify({ groups }));
  const test = (series: Series, exp_samples: object[]) => ({
    interval: '1m',
    input_series: Object.entries(series).map(([name, values]) => ({ series: name, values })),
    promql_expr_test: [
      {
        expr: `count(ALERTS{alertname="${alert}",alertstate="firing"})`,
        eval_time: '130m',
        exp_samples,
      },
    ],
  });
  const document = {
    rule_files: [rules],
    evaluation_interval: '5m',
    tests: [
      ...cases.fires.map((series) => test(series, [{ labels: '{}', value: 1 }])),
      ...cases.isQuiet.map((series) => test(series, [])),
    ],
  };
  writeFileSync(file, stringify(document));
  return file;
}

it.skipIf(isPromtoolMissing())('each rule fires in its failing cases only', () => {
  const folder = tempFolder();
  const files = Object.entries(CASES).map(([alert, cases]) => testFile(folder, alert, cases));
  const { status, output } = promtool(['test', 'rules', ...files]);
  expect(status, output).toBe(0);
});

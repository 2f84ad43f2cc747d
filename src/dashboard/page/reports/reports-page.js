import { withQuery } from '../data/api.js';
import { useDashboard, useLoad, useWhileVisible } from '../data/context.js';
import {
  amount,
  count,
  decimal,
  duration,
  lagSource,
  utcDayOf,
  utcMinuteOf,
  wholeDuration,
} from '../parts/format.js';
import { html } from '../parts/html.js';
import { Facts, Loadable, PageHeader, Tabs } from '../parts/parts.js';
import { Plot } from '../parts/plot.js';
import { hrefTo } from '../router.js';
import { endedBetween, FINAL_STATUSES } from '../submissions/submission-table.js';

/** @import { Objective as ObjectiveOfUpstream, ObjectiveCounts, Overview, Report as ReportOfPeriod, ReportPercentiles, ReportRow, ReportSums } from '../../../client/api.ts' */

const EVERY_MS = 60_000;

/**
 * Sums over the submissions of one upstream that ended in a day, a week or 90 days. @param {{
 * query: URLSearchParams }} props
 */
export function ReportsPage({ query }) {
  const { api } = useDashboard();
  const upstreams = useLoad((signal) => api.get('v1/overview', { signal }), 'upstreams');
  const name = query.get('period') ?? 'week';
  const upstream = query.get('upstream') ?? undefined;
  return html`<${PageHeader} title="Reports">
      <${Tabs}
        label="Period"
        of=${Object.entries(PERIODS).map(([one, { title }]) => ({ label: title, href: hrefTo('reports', undefined, { upstream, period: one }), isCurrent: one === name }))}
      />
    <//>
    <${Loadable} loaded=${upstreams}>
      ${(/** @type {Overview} */ overview) => {
        const names = overview.upstreams.map(({ name }) => name);
        return html`<${Report} upstream=${upstream ?? names[0] ?? 'default'} names=${names} name=${name} query=${query} />`;
      }}
    <//>`;
}

/**
 * @param {{ upstream: string, names: readonly string[], name: string, query: URLSearchParams }} props
 *   `name`: of the period
 */
function Report({ upstream, names, name, query }) {
  const { api } = useDashboard();
  const period = periodOf(name, query.get('to') ?? '', Date.now());
  const { from, to, interval } = period;
  const path = withQuery('v1/reports', { from, to, interval, upstream, group_by: 'upstream' });
  const loaded = useLoad((signal) => api.get(path, { signal }), path);
  useWhileVisible(loaded.reload, EVERY_MS);
  const link = (/** @type {Record<string, string | undefined>} */ change) =>
    hrefTo('reports', undefined, {
      upstream,
      period: name,
      to: query.get('to') ?? undefined,
      ...change,
    });
  return html`<div class="bar">
      <a class="button" href=${link({ to: period.earlier })}>Earlier</a>
      <span>${from === to ? from : `${from} to ${to}`} <span class="muted">UTC</span></span>
      ${period.later !== undefined && html`<a class="button" href=${link({ to: period.later })}>Later</a>`}
    </div>
    ${names.length > 1 && html`<${Tabs} label="Upstream" of=${names.map((one) => ({ label: one, href: link({ upstream: one }), isCurrent: one === upstream }))} />`}
    <${Loadable} loaded=${loaded}>
      ${(/** @type {ReportOfPeriod} */ report) => html`
        <${Charts} key=${`${report.from} ${report.to} ${report.interval}`} report=${report} upstream=${upstream} />
        <div class="columns">
          <${Totals} report=${report} upstream=${upstream} />
          ${report.objectives
            .filter((one) => one.upstream === upstream)
            .map(
              (objective) =>
                html`<${Objective} objective=${objective} counts=${report.total.objective} />`,
            )}
        </div>
      `}
    <//>`;
}

/** @param {{ report: ReportOfPeriod, upstream: string }} props */
function Charts({ report, upstream }) {
  const { at, rows } = everyRow(report, Date.now());
  const times = timesOf(report.interval);
  const valuesOf = (/** @type {(row: ReportRow) => number | undefined} */ of) =>
    rows.map((row) => (row && of(row)) ?? null);
  const quantiles = (/** @type {'time_to_finality_s' | 'detection_lag_s'} */ name) =>
    /** @type {const} */ ([
      ['p50', '--plot-1'],
      ['p99', '--plot-2'],
    ]).map(([quantile, color]) => ({
      label: quantile,
      values: valuesOf((row) => row[name]?.[quantile]),
      color,
    }));
  const { total } = report;
  const stepMs = stepMsOf(report.interval);
  const linkTo = (/** @type {number} */ index, /** @type {string} */ status) => {
    const start = (at[index] ?? 0) * 1_000;
    return endedBetween(start, start + stepMs, { upstream, status });
  };
  const endedOf = (/** @type {number} */ index) => (rows[index] ? linkTo(index, '') : undefined);
  const finalizedOf = (/** @type {number} */ index) =>
    rows[index]?.submissions.finalized ? linkTo(index, 'finalized') : undefined;
  return html`<h2>Submissions of ${upstream}</h2>
    <div class="plots">
      <${Plot}
        title="Ended"
        summary=${`${count(total.submissions.finalized)} finalized, ${count(othersOf(total))} ended otherwise.`}
        at=${at}
        series=${[
          {
            label: 'finalized',
            values: rows.map((row) => row?.submissions.finalized ?? 0),
            color: '--plot-1',
            isBars: true,
          },
          {
            label: 'others',
            values: rows.map((row) => (row && othersOf(row)) || null),
            color: '--plot-2',
          },
        ]}
        format=${count}
        unit=""
        times=${times}
        hrefOf=${endedOf}
      />
      <${Plot}
        title="Time to finality"
        summary=${summaryOf(total.time_to_finality_s)}
        at=${at}
        series=${quantiles('time_to_finality_s')}
        format=${duration}
        unit=" s"
        times=${times}
        hrefOf=${finalizedOf}
      />
      <${Plot}
        title="Detection lag"
        summary=${`${summaryOf(total.detection_lag_s)} ${lagSource(total.detection_lag_s)}`}
        at=${at}
        series=${quantiles('detection_lag_s')}
        format=${duration}
        unit=" s"
        times=${times}
        hrefOf=${finalizedOf}
      />
    </div>`;
}

/** @param {ReportSums} sums */
function othersOf({ submissions }) {
  return Object.entries(submissions).reduce(
    (sum, [status, number]) => sum + (status === 'finalized' ? 0 : number),
    0,
  );
}

/** @param {ReportPercentiles | null} spread */
function summaryOf(spread) {
  if (spread === null) return 'No data.';
  return `p50 ${duration(spread.p50)}, p90 ${duration(spread.p90)}, p99 ${duration(spread.p99)}.`;
}

/** @param {{ report: ReportOfPeriod, upstream: string }} props */
function Totals({ report, upstream }) {
  const { total, from, to } = report;
  const ended = Object.values(total.submissions).reduce((sum, number) => sum + number, 0);
  const linked = (/** @type {string} */ status) => {
    const number = new Map(Object.entries(total.submissions)).get(status) ?? 0;
    if (number === 0) return '0';
    return html`<a href=${endedBetween(Date.parse(from), Date.parse(to) + DAY_MS, { upstream, status })}>${count(number)}</a>`;
  };
  return html`<section aria-labelledby="report-totals">
    <h2 id="report-totals">Totals</h2>
    <${Facts}
      of=${[
        ...FINAL_STATUSES.map((status) => [status, linked(status)]),
        ['corrected', count(total.corrected)],
        ['Requests', count(total.requests)],
        ['Requests per submission', ended === 0 ? null : decimal(total.requests / ended, 2)],
        ['Fees', html`<span class="hash">${amount(total.fees)}</span>`],
        ['Data billed', html`<span class="hash">${amount(total.data_billed)}</span>`],
        ...(total.without_billing > 0
          ? [['Without readable amounts', count(total.without_billing)]]
          : []),
      ]}
    />
  </section>`;
}

/**
 * The service level objective of an upstream and its error budget.
 * @param {{ objective: ObjectiveOfUpstream, counts: ObjectiveCounts | null }} props `counts`: of the period
 */
function Objective({ objective, counts }) {
  const { target_percent, within_s, good, bad, attained_percent, error_budget_left, burn_rates } =
    objective;
  return html`<section aria-labelledby="report-objective">
    <h2 id="report-objective">Objective: ${target_percent} % known within ${wholeDuration(within_s)}</h2>
    <${Facts}
      of=${[
        ['In this period', counts && shareOf(counts)],
        [
          'Last 30 days',
          attained_percent === null ? null : `${attained_percent} % of ${count(good + bad)}`,
        ],
        [
          'Error budget left',
          html`<span class=${error_budget_left < 0 ? 'wrong' : ''}>${decimal(100 * error_budget_left)} %</span>`,
        ],
        ...Object.entries(burn_rates).map(([window, rate]) => [
          `Burn rate, last ${window}`,
          rate === null ? null : decimal(rate, 2),
        ]),
      ]}
    />
    <p class="muted">A burn rate of 1 spends the error budget in exactly 30 days.</p>
  </section>`;
}

/** @param {ObjectiveCounts} counts */
function shareOf({ good, bad }) {
  if (good + bad === 0) return null;
  return `${decimal((100 * good) / (good + bad), 2)} %, ${count(bad)} late`;
}

const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;
/** Days for which the server keeps hours. */
const HOURLY_DAYS = 8;

/**
 * The lengths of a report by their names in the URL. @type {Record<string, { title: string, days:
 * number }>}
 */
const PERIODS = {
  day: { title: 'Day', days: 1 },
  week: { title: 'Week', days: 7 },
  quarter: { title: '90 days', days: 90 },
};

/**
 * The first and the last day of a period that ends with the day `to`, or today.
 * @param {string} name @param {string} to "2026-01-31", or "" @param {number} now
 */
export function periodOf(name, to, now) {
  const { days, title } = PERIODS[name] ?? { days: 7, title: 'Week' };
  const today = Math.floor(now / DAY_MS) * DAY_MS;
  const last = Math.min(today, Number.isNaN(Date.parse(to)) ? today : Date.parse(to));
  const first = last - (days - 1) * DAY_MS;
  const isHourly = days < 90 && first > today - HOURLY_DAYS * DAY_MS;
  return {
    title,
    from: dayText(first),
    to: dayText(last),
    interval: isHourly ? 'hour' : 'day',
    earlier: dayText(first - DAY_MS),
    /** Undefined for the newest period. */
    later: last < today ? dayText(Math.min(today, last + days * DAY_MS)) : undefined,
  };
}

/** @param {number} ms */
export function dayText(ms) {
  return new Date(ms).toISOString().slice(0, 10);
}

/** @param {string} interval */
function stepMsOf(interval) {
  return interval === 'hour' ? HOUR_MS : DAY_MS;
}

/**
 * Returns one row of a report for each hour or day up to now; undefined where no submission ended.
 * @template {{ start: string }} Row
 * @param {{ from: string, to: string, interval: string, rows: readonly Row[] }} report
 * @param {number} now
 * @returns {{ at: number[], rows: (Row | undefined)[] }} `at`: seconds since the epoch
 */
export function everyRow({ from, to, interval, rows }, now) {
  const stepMs = stepMsOf(interval);
  const byStart = new Map(rows.map((row) => [Date.parse(row.start), row]));
  const end = Math.min(Date.parse(to) + DAY_MS, now + 1);
  const at = [];
  for (let start = Date.parse(from); start < end; start += stepMs) at.push(start);
  return { at: at.map((start) => start / 1_000), rows: at.map((start) => byStart.get(start)) };
}

/** @param {string} interval @returns {import('../parts/plot.js').Times} */
function timesOf(interval) {
  const empty = 'No data in this period.';
  if (interval === 'day') return { title: 'Day', name: utcDayOf, mark: utcDayOf, empty };
  const name = (/** @type {number} */ at) => `${utcDayOf(at)} ${utcMinuteOf(at)}`;
  const mark = (/** @type {number} */ at) => (at % DAY_MS === 0 ? utcDayOf(at) : utcMinuteOf(at));
  return { title: 'Hour', name, mark, empty };
}

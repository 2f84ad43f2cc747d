import { Problems } from '../alerts/problems.js';
import { withQuery } from '../data/api.js';
import {
  maySeeOperations,
  useDashboard,
  useLiveData,
  useLoad,
  useWhileVisible,
} from '../data/context.js';
import { count, decimal, duration, lagSource, utcDayOf, utcMinuteOf } from '../parts/format.js';
import { html } from '../parts/html.js';
import { Empty, Loadable, PageHeader, Tabs, Time } from '../parts/parts.js';
import { Plot } from '../parts/plot.js';
import { hrefTo } from '../router.js';
import { endedBetween, STATUSES, TrackHint } from '../submissions/submission-table.js';

/** @import { Overview } from '../../../client/api.ts' */

/**
 * What the charts can show, by the name in the address. Hours and days are those of UTC.
 * @type {Record<Overview['range'], { label: string, unit: 'minute' | 'hour' | 'day' }>}
 */
const RANGES = {
  '15m': { label: '15 min', unit: 'minute' },
  '1h': { label: '1 h', unit: 'minute' },
  '24h': { label: '24 h', unit: 'hour' },
  '7d': { label: '7 d', unit: 'hour' },
  '30d': { label: '30 d', unit: 'day' },
  '90d': { label: '90 d', unit: 'day' },
};

const STEP_MS = { minute: 60_000, hour: 3_600_000, day: 86_400_000 };

const REFRESH_MS = 60_000;
/** A delivery that waits longer counts as backlog, as in the alert. */
const LATE_MS = 60_000;
/** That of the overview which all pages share. */
const DEFAULT_RANGE = '1h';

export function OverviewPage({ query }) {
  const { overview: loaded } = useLiveData();
  const asked = query.get('range') ?? DEFAULT_RANGE;
  const range = /** @type {Overview['range']} */ (
    Object.hasOwn(RANGES, asked) ? asked : DEFAULT_RANGE
  );

  return html`<${PageHeader} title="Overview" />
    <${Problems} />
    <${Loadable} loaded=${loaded}>
      ${(/** @type {Overview} */ overview) => html`
        ${Object.values(overview.submissions).every((number) => number === 0) && html`<${Empty} title="No submissions tracked yet."><${TrackHint} /><//>`}
        <${Counts} overview=${overview} />
        <${Tabs}
          label="Range of the charts"
          of=${Object.entries(RANGES).map(([one, { label }]) => ({ label, href: hrefTo('overview', undefined, { range: one }), isCurrent: one === range }))}
        />
        ${
          range === DEFAULT_RANGE
            ? html`<${Charts} key=${range} overview=${overview} />`
            : html`<${OtherRange} key=${range} range=${range} />`
        }
      `}
    <//>`;
}

/** @param {{ range: Overview['range'] }} props */
function OtherRange({ range }) {
  const { api } = useDashboard();
  const path = withQuery('v1/overview', { range });
  const loaded = useLoad((signal) => api.get(path, { signal }), path);
  useWhileVisible(loaded.reload, REFRESH_MS);
  return html`<${Loadable} loaded=${loaded}>
    ${(/** @type {Overview} */ overview) => html`<${Charts} overview=${overview} />`}
  <//>`;
}

/** From the first finalization in the range on. @param {{ overview: Overview }} props */
function Charts({ overview: { range, steps: all, total } }) {
  const { unit, label } = RANGES[range];
  const first = all.findIndex(({ finalized }) => finalized > 0);
  if (first === -1) return html`<p class="muted">Nothing became final in the last ${label}.</p>`;
  const steps = all.slice(first);
  const hrefOf = (index) => {
    const step = steps[index];
    if (!step?.finalized) return undefined;
    const from = Date.parse(step.at);
    return endedBetween(from, from + STEP_MS[unit], { status: 'finalized' });
  };
  const common = {
    at: steps.map((step) => Date.parse(step.at) / 1_000),
    times: timesOf(unit),
    hrefOf,
  };
  const times = (/** @type {'time_to_finality_s' | 'detection_lag_s'} */ name) => ({
    ...common,
    series: /** @type {const} */ (['p50', 'p99']).map((share, index) => ({
      label: share,
      total: total[name] ? duration(total[name][share]) : undefined,
      values: steps.map((step) => step[name]?.[share] ?? null),
      color: index === 0 ? '--accent' : '--muted',
    })),
    format: duration,
    unit: ' s',
    isLogarithmic: true,
  });
  const requests = total.requests_per_submission;
  const finalized = {
    label: 'finalized',
    total: count(total.finalized),
    values: steps.map((step) => step.finalized),
    color: '--accent',
    isBars: true,
  };
  return html`<div class="plots">
    <${Plot}
      ...${common}
      title=${`Finalized per ${unit}`}
      about=${requests !== null && `${decimal(requests, 2)} requests per submission`}
      series=${[finalized]}
      format=${count}
      unit=""
    />
    <${Plot} ...${times('time_to_finality_s')} title="Time to finality" />
    <${Plot} ...${times('detection_lag_s')} title="Detection lag" about=${lagSource(total.detection_lag_s)} />
  </div>`;
}

function timesOf(unit) {
  if (unit === 'minute') return { title: 'Minute', name: utcMinuteOf, mark: utcMinuteOf };
  if (unit === 'day') return { title: 'Day', name: utcDayOf, mark: utcDayOf };
  const name = (ms) => `${utcDayOf(ms)} ${utcMinuteOf(ms)}`;
  const mark = (ms) => (ms % STEP_MS.day === 0 ? utcDayOf(ms) : utcMinuteOf(ms));
  return { title: 'Hour', name, mark };
}

/** Submissions by status, and undelivered deliveries. @param {{ overview: Overview }} props */
function Counts({ overview: { at, submissions, deliveries } }) {
  const { session } = useDashboard();
  const counts = new Map(Object.entries(submissions));
  const oldest = deliveries.oldest_waiting_at;
  const isLate = oldest !== null && Date.parse(at) - Date.parse(oldest) > LATE_MS;
  const toDeliveries = (state) =>
    maySeeOperations(session) ? hrefTo('deliveries', undefined, { state }) : undefined;
  const all = [
    ...STATUSES.map((status) => ({
      name: status,
      state: status,
      number: counts.get(status) ?? 0,
      href: hrefTo('submissions', undefined, { status }),
    })),
    {
      name: deliveries.waiting === 1 ? 'delivery waiting' : 'deliveries waiting',
      state: isLate ? 'failing' : 'waiting',
      number: deliveries.waiting,
      href: toDeliveries('waiting'),
      note: isLate && html`<span class="muted">oldest <${Time} at=${oldest} /></span>`,
    },
    {
      name: deliveries.dead === 1 ? 'dead letter' : 'dead letters',
      state: 'dead',
      number: deliveries.dead,
      href: toDeliveries('dead'),
    },
  ];
  return html`<ul class="counts" aria-label="Submissions by status, and deliveries">
    ${all
      .filter(({ number }) => number > 0)
      .map(
        ({ name, state, number, href, note }) => html`<li key=${name} class=${state}>
          <a href=${href}><strong>${count(number)}</strong> <span>${name}</span></a> ${note}
        </li>`,
      )}
  </ul>`;
}

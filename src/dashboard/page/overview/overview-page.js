import { useState } from 'preact/hooks';
import { withQuery } from '../data/api.js';
import {
  maySeeOperations,
  useDashboard,
  useFeed,
  useLiveData,
  useLoad,
  useWhileVisible,
} from '../data/context.js';
import {
  count,
  decimal,
  duration,
  lagSource,
  utcDayOf,
  utcMinuteOf,
  wholeDuration,
} from '../parts/format.js';
import { html } from '../parts/html.js';
import { Badge, Empty, Loadable, PageHeader, Tabs, Time } from '../parts/parts.js';
import { Plot } from '../parts/plot.js';
import { Table } from '../parts/table.js';
import { hrefTo } from '../router.js';
import {
  endedBetween,
  FINAL_STATUSES,
  OPEN_STATUSES,
  submissionId,
  submissionLink,
  TrackHint,
} from '../submissions/submission-table.js';

/** @import { Alert, Overview } from '../../../client/api.ts' */

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
/** That of the overview which all pages share. */
const DEFAULT_RANGE = '1h';

export function OverviewPage({ query }) {
  const { overview: loaded, alerts } = useLiveData();
  const asked = query.get('range') ?? DEFAULT_RANGE;
  const range = /** @type {Overview['range']} */ (
    Object.hasOwn(RANGES, asked) ? asked : DEFAULT_RANGE
  );

  return html`<${PageHeader} title="Overview">
      <${Tabs}
        label="Range of the charts"
        of=${Object.entries(RANGES).map(([one, { label }]) => ({ label, href: hrefTo('overview', undefined, { range: one }), isCurrent: one === range }))}
      />
    <//>
    <${Loadable} loaded=${loaded}>
      ${(/** @type {Overview} */ overview) => html`
        <${Headline} overview=${overview} alerts=${alerts.data?.alerts ?? []} />
        ${Object.values(overview.submissions).every((number) => number === 0) && html`<${Empty} title="No submissions tracked yet."><${TrackHint} /><//>`}
        <${StatusCounts} submissions=${overview.submissions} />
        ${
          range === DEFAULT_RANGE
            ? html`<${Charts} key=${range} overview=${overview} />`
            : html`<${OtherRange} key=${range} range=${range} />`
        }
        <${Upstreams} upstreams=${overview.upstreams} readers=${overview.readers} workers=${overview.workers} />
        <${OldestOpen} oldest=${overview.oldest_open} />
        <${LatestEvents} />
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

/** The numbers of a range and its charts. @param {{ overview: Overview }} props */
function Charts({ overview }) {
  const { steps, total } = overview;
  const { unit } = RANGES[overview.range];
  const at = steps.map((step) => Date.parse(step.at) / 1_000);
  const hrefOf = (index) => {
    const step = steps[index];
    if (!step?.finalized) return undefined;
    const from = Date.parse(step.at);
    return endedBetween(from, from + STEP_MS[unit], { status: 'finalized' });
  };
  const common = { at, times: timesOf(unit), hrefOf };
  const spread = (/** @type {'time_to_finality_s' | 'detection_lag_s'} */ name) => [
    { label: 'p50', values: steps.map((step) => step[name]?.p50 ?? null), color: '--plot-1' },
    { label: 'p99', values: steps.map((step) => step[name]?.p99 ?? null), color: '--plot-2' },
  ];
  const most = Math.max(0, ...steps.map(({ finalized }) => finalized));
  const summary = (/** @type {'time_to_finality_s' | 'detection_lag_s'} */ name) =>
    total[name]
      ? `p50 ${duration(total[name].p50)}.`
      : 'No estimate yet: too few submissions were found final.';
  return html`<${Numbers} overview=${overview} />
    <div class="plots">
      <${Plot}
        ...${common}
        title=${`Finalizations per ${unit}`}
        summary=${`${count(total.finalized)} became final; at most ${count(most)} in one ${unit}.`}
        series=${[{ label: 'finalized', values: steps.map(({ finalized }) => finalized), color: '--plot-1', isBars: true }]}
        format=${count}
        unit=""
      />
      <${Plot} ...${common} title="Time to finality" summary=${summary('time_to_finality_s')} series=${spread('time_to_finality_s')} format=${duration} unit=" s" />
      <${Plot} ...${common} title="Detection lag" summary=${`${summary('detection_lag_s')} ${lagSource(total.detection_lag_s)}`} series=${spread('detection_lag_s')} format=${duration} unit=" s" />
    </div>`;
}

function timesOf(unit) {
  if (unit === 'minute') return { title: 'Minute', name: utcMinuteOf, mark: utcMinuteOf };
  if (unit === 'day') return { title: 'Day', name: utcDayOf, mark: utcDayOf };
  const name = (ms) => `${utcDayOf(ms)} ${utcMinuteOf(ms)}`;
  const mark = (ms) => (ms % STEP_MS.day === 0 ? utcDayOf(ms) : utcMinuteOf(ms));
  return { title: 'Hour', name, mark };
}

/** @param {{ overview: Overview }} props */
function Numbers({ overview: { range, total, deliveries } }) {
  const { session } = useDashboard();
  const seesDeliveries = maySeeOperations(session);
  const { label } = RANGES[range];
  const spread = (/** @type {import('../../../client/api.ts').Spread | null} */ found) => ({
    value: found ? duration(found.p50) : 'unknown',
    note: found && `99 % within ${duration(found.p99)}`,
  });
  return html`<section class="numbers" aria-label="Numbers">
    <${Figure} name=${`Finalized in ${label}`} value=${count(total.finalized)} />
    <${Figure} name="Time to finality, p50" ...${spread(total.time_to_finality_s)} />
    <${Figure} name="Detection lag, p50" ...${spread(total.detection_lag_s)} />
    <${Figure}
      name="Requests per submission"
      value=${total.requests_per_submission === null ? 'unknown' : decimal(total.requests_per_submission, 2)}
      note=${total.requests_per_submission === null && 'too few submissions'}
    />
    <${Figure}
      name="Deliveries waiting"
      value=${count(deliveries.waiting)}
      href=${seesDeliveries && hrefTo('deliveries', undefined, { state: 'waiting' })}
      note=${deliveries.oldest_waiting_at === null ? 'none is late' : html`oldest: <${Time} at=${deliveries.oldest_waiting_at} />`}
    />
    <${Figure}
      name="Dead letters"
      value=${count(deliveries.dead)}
      isBad=${deliveries.dead > 0}
      href=${seesDeliveries && hrefTo('deliveries', undefined, { state: 'dead' })}
      note=${deliveries.dead > 0 ? 'can be replayed' : 'everything was delivered'}
    />
  </section>`;
}

function Figure({ name, value, note, href, isBad }) {
  const figure = html`<strong class=${isBad ? 'wrong' : ''}>${value}</strong>`;
  return html`<div>
    <span class="muted">${name}</span>
    ${href ? html`<a href=${href}>${figure}</a>` : figure}
    <span class="muted">${note}</span>
  </div>`;
}

function StatusCounts({ submissions }) {
  return html`<ul class="counts" aria-label="Submissions by status">
    ${[...OPEN_STATUSES, ...FINAL_STATUSES].map((status) => {
      const number = submissions[status] ?? 0;
      return html`<li key=${status} class=${`${status}${number === 0 ? ' none' : ''}`}>
        <a href=${hrefTo('submissions', undefined, { status })}><strong>${count(number)}</strong> <span>${status}</span></a>
      </li>`;
    })}
  </ul>`;
}

/** @type {Record<string, string>} */
const STATES = { unauthorized: 'key refused' };

/** @type {readonly import('../parts/table.js').Column<Overview['upstreams'][number]>[]} */
const UPSTREAM_COLUMNS = [
  { title: 'Upstream', cell: ({ name }) => name },
  {
    title: 'State',
    width: 7,
    cell: ({ state }) => html`<${Badge} state=${state} label=${STATES[state] ?? state} />`,
  },
  {
    title: 'Tracked',
    cell: ({ name, tracked }) =>
      html`<a href=${hrefTo('submissions', undefined, { upstream: name, status: OPEN_STATUSES.join() })}>${count(tracked)}</a>`,
    class: 'number',
    width: 5,
  },
  {
    title: 'In flight',
    cell: ({ in_flight }) => count(in_flight),
    class: 'number from-m',
    width: 6,
  },
  {
    title: 'Budget used',
    width: 16,
    cell: ({ name, budget: { used, limit, window_ms } }) => html`
      <meter min="0" max=${limit} value=${used} aria-label=${`Budget used at ${name}`}></meter>
      ${` ${count(used)} of ${count(limit)} per ${wholeDuration(window_ms / 1_000)}`}
    `,
  },
];

/** @param {{ upstreams: Overview['upstreams'], readers: number, workers: number | null }} props */
function Upstreams({ upstreams, readers, workers }) {
  return html`<section aria-labelledby="upstreams">
    <h2 id="upstreams">Upstreams</h2>
    <${Table} caption="Upstreams, their health and their budgets" hidesCaption columns=${UPSTREAM_COLUMNS} rows=${upstreams} />
    <p class="muted">
      ${readers === 1 ? '1 reader of the live feed' : `${count(readers)} readers of the live feed`}${workers !== null && ` · ${count(workers)} ${workers === 1 ? 'worker' : 'workers'}`}
    </p>
  </section>`;
}

const SHOWN = 10;

function LatestEvents() {
  const [events, setEvents] = useState(
    /** @type {readonly import('../data/feed.js').FeedEvent[]} */ ([]),
  );
  useFeed((batch) => {
    if (batch.events.length > 0)
      setEvents((before) => [...batch.events.toReversed(), ...before].slice(0, SHOWN));
  });
  return html`<section aria-labelledby="events">
    <h2 id="events">Latest events</h2>
    ${
      events.length === 0
        ? html`<p class="muted">None since you came. They appear here as they happen.</p>`
        : html`<ol class="events">
            ${events.map(
              (event) => html`<li key=${event.id}>
                <span class="muted"><${Time} at=${event.timestamp} /></span> ${event.type} <${About} event=${event} />
              </li>`,
            )}
          </ol>`
    }
  </section>`;
}

/** @param {{ event: import('../data/feed.js').FeedEvent }} props */
function About({ event: { data } }) {
  if ('submission' in data) return submissionLink(data.submission);
  if ('alert' in data) return html`<span>${data.alert.summary}</span>`;
  if ('upstream' in data) return html`<span>${data.upstream}</span>`;
  return html`<span>${'channel' in data ? data.channel : data.webhook_id}</span>`;
}

/** @type {readonly import('../parts/table.js').Column<Overview['oldest_open'][number]>[]} */
const OPEN_COLUMNS = [
  { title: 'Submission', cell: submissionLink },
  { title: 'Status', width: 8, cell: ({ status }) => html`<${Badge} state=${status} />` },
  { title: 'Upstream', class: 'from-m', cell: ({ upstream }) => upstream },
  { title: 'Age', width: 8, cell: ({ age_s }) => wholeDuration(age_s), class: 'number' },
];

/** @param {{ oldest: Overview['oldest_open'] }} props */
function OldestOpen({ oldest }) {
  return html`<section aria-labelledby="oldest">
    <h2 id="oldest">Oldest open submissions</h2>
    ${
      oldest.length === 0
        ? html`<p class="muted">No open submissions: every tracked submission is final.</p>`
        : html`<${Table} caption="Oldest open submissions, oldest first" hidesCaption columns=${OPEN_COLUMNS} rows=${oldest} keyOf=${submissionId} />`
    }
  </section>`;
}

/**
 * Whether everything is all right, in one sentence.
 * @param {Overview} overview @param {readonly Alert[]} alerts the firing ones
 * @returns {{ state: 'good' | 'bad', text: string }}
 */
export function headlineOf({ at, upstreams, submissions, total }, alerts) {
  const counts = new Map(Object.entries(submissions));
  const open = OPEN_STATUSES.reduce((sum, status) => sum + (counts.get(status) ?? 0), 0);
  const failing = upstreams.filter(({ state }) => state !== 'up');
  if (failing.length > 0) {
    const waiting = failing.reduce((sum, { tracked }) => sum + tracked, 0);
    const begins = alerts
      .filter(
        ({ rule, subject }) =>
          /^(?:upstream_down|upstream_paused|credentials_refused)$/.test(rule) &&
          failing.some(({ name }) => name === subject),
      )
      .map(({ since }) => Date.parse(since));
    const since =
      begins.length > 0 ? ` for ${duration((Date.parse(at) - Math.min(...begins)) / 1_000)}` : '';
    const are = (expected) => failing.every(({ state }) => state === expected);
    const what = are('unauthorized')
      ? `${upstreamsOf(failing.length, 'refuses', 'refuse')} the API key`
      : are('paused')
        ? `${upstreamsOf(failing.length, 'asks', 'ask')} for a pause`
        : `${upstreamsOf(failing.length, 'is', 'are')} down`;
    return {
      state: 'bad',
      text: `${what}${since}; ${submissionsOf(waiting)} ${waiting === 1 ? 'waits' : 'wait'}.`,
    };
  }
  const unhandled = alerts.filter(({ muted_until }) => muted_until === null);
  const now = `${submissionsOf(open)} ${open === 1 ? 'is' : 'are'} open, ${count(total.finalized)} became final in the last hour.`;
  if (unhandled.length === 0) return { state: 'good', text: `All healthy: ${now}` };
  const firing =
    unhandled.length === 1 ? '1 alert is firing' : `${count(unhandled.length)} alerts are firing`;
  return { state: 'bad', text: `${firing}; ${now}` };
}

function upstreamsOf(number, one, many) {
  return number === 1 ? `1 upstream ${one}` : `${count(number)} upstreams ${many}`;
}

function submissionsOf(number) {
  return number === 1 ? '1 submission' : `${count(number)} submissions`;
}

/** @param {{ overview: Overview, alerts: readonly Alert[] }} props */
function Headline({ overview, alerts }) {
  const { state, text } = headlineOf(overview, alerts);
  return html`<p class=${`headline ${state}`}>${text}</p>`;
}

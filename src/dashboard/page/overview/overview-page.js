import { useState } from 'preact/hooks';
import { maySeeNotifications, useDashboard, useFeed, useLive, useLoad } from '../data/context.js';
import { count, decimal, duration, lagSource, percent, wholeDuration } from '../parts/format.js';
import { html } from '../parts/html.js';
import { Badge, Empty, Facts, Loadable, Time } from '../parts/parts.js';
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

/** @import { Overview, OverviewMinute, Spread } from '../../../client/api.ts' */

/** Reload interval: ages and budgets change without an event. */
const IDLE_MS = 10_000;

export function OverviewPage() {
  const { api } = useDashboard();
  const loaded = useLoad((signal) => api.get('v1/overview', { signal }), 'v1/overview');
  useLive(loaded.reload, IDLE_MS);

  return html`<h1 tabindex="-1">Overview</h1>
    <${Loadable} loaded=${loaded}>
      ${(/** @type {Overview} */ overview) => html`
        ${isUnused(overview) && html`<${Empty} title="No submissions tracked yet."><${TrackHint} /><//>`}
        <${StatusCounts} submissions=${overview.submissions} />
        <${Plots} minutes=${overview.per_minute} lastHour=${overview.last_hour} />
        <div class="columns">
          <${RequestStats} lastHour=${overview.last_hour} />
          <${DeliveryStats} deliveries=${overview.deliveries} />
          <${Upstreams} upstreams=${overview.upstreams} readers=${overview.readers} workers=${overview.workers} />
          <${LatestEvents} />
        </div>
        <${OldestOpen} oldest=${overview.oldest_open} />
        <p class="muted">As of <${Time} at=${overview.at} />, server time.</p>
      `}
    <//>`;
}

/** @param {{ submissions: Record<string, number> }} overview */
function isUnused({ submissions }) {
  return Object.values(submissions).every((number) => number === 0);
}

/** @typedef {Exclude<keyof OverviewMinute, 'at'>} Series */

const MINUTE_MS = 60_000;

/**
 * The last hour, minute by minute.
 * @param {{ minutes: readonly OverviewMinute[], lastHour: Overview['last_hour'] }} props
 */
function Plots({ minutes, lastHour }) {
  const at = minutes.map((minute) => Date.parse(minute.at) / 1_000);
  const valuesOf = (/** @type {Series} */ name) => minutes.map((minute) => minute[name]);
  const perMinute = minutes.map(({ finalized }) => finalized);
  const hrefOf = (/** @type {number} */ index) => {
    const { finalized, at } = minutes[index] ?? { finalized: 0, at: '' };
    const start = Date.parse(at);
    return finalized === 0
      ? undefined
      : endedBetween(start, start + MINUTE_MS, { status: 'finalized' });
  };
  return html`<section aria-labelledby="plots">
    <h2 id="plots">The last hour</h2>
    <div class="plots">
      <${Plot}
        title="Finalizations per minute"
        summary=${`${count(lastHour.finalized)} became final; at most ${count(Math.max(0, ...perMinute))} in one minute.`}
        at=${at}
        series=${[{ label: 'finalized', values: perMinute, color: '--plot-1', isBars: true }]}
        format=${count}
        unit=""
        hrefOf=${hrefOf}
      />
      <${Plot}
        title="Time to finality"
        summary=${summaryOf(lastHour.time_to_finality_s)}
        at=${at}
        series=${quantiles(valuesOf, 'time_to_finality')}
        format=${duration}
        unit=" s"
        hrefOf=${hrefOf}
      />
      <${Plot}
        title="Detection lag"
        summary=${lastHour.finalized > 0 && lastHour.detection_lag_s === null ? 'No estimate yet: too few submissions were found final.' : `${summaryOf(lastHour.detection_lag_s)} ${lagSource(lastHour.detection_lag_chain_share)}`}
        at=${at}
        series=${quantiles(valuesOf, 'detection_lag')}
        format=${duration}
        unit=" s"
        hrefOf=${hrefOf}
      />
    </div>
  </section>`;
}

/**
 * @param {(name: Series) => readonly (number | null)[]} valuesOf
 * @param {'time_to_finality' | 'detection_lag'} name
 */
function quantiles(valuesOf, name) {
  return [
    { label: 'p50', values: valuesOf(`${name}_p50_s`), color: '--plot-1' },
    { label: 'p99', values: valuesOf(`${name}_p99_s`), color: '--plot-2' },
  ];
}

/** @param {Spread | null} spread */
function summaryOf(spread) {
  if (spread === null) return 'No data yet.';
  return `Mean ${duration(spread.mean)}, p50 ${duration(spread.p50)}, p90 ${duration(spread.p90)}, p99 ${duration(spread.p99)}.`;
}

/** Number of submissions by status. @param {{ submissions: Record<string, number> }} props */
function StatusCounts({ submissions }) {
  return html`<section aria-labelledby="counts">
    <h2 id="counts">Submissions</h2>
    <div class="counts">
      <${Group} title="Open" statuses=${OPEN_STATUSES} submissions=${submissions} />
      <${Group} title="Final" statuses=${FINAL_STATUSES} submissions=${submissions} />
    </div>
  </section>`;
}

/**
 * @param {{ title: string, statuses: readonly string[], submissions: Record<string, number> }}
 * props
 */
function Group({ title, statuses, submissions }) {
  return html`<div>
    <h3>${title}</h3>
    <ul>
      ${statuses.map((status) => {
        const number = submissions[status] ?? 0;
        return html`<li key=${status} class=${`${status}${number === 0 ? ' none' : ''}`}>
          <a href=${hrefTo('submissions', undefined, { status })}><strong>${count(number)}</strong> <span>${status}</span></a>
        </li>`;
      })}
    </ul>
  </div>`;
}

/**
 * Requests per submission, compared with polling every 5 s.
 * @param {{ lastHour: Overview['last_hour'] }} props
 */
function RequestStats({ lastHour }) {
  const { polls_per_submission: polls, fixed_5s_polls_per_submission: fixed } = lastHour;
  const isKnown = polls !== null && fixed !== null;
  return html`<section aria-labelledby="requests">
    <h2 id="requests">Requests per submission</h2>
    ${
      isKnown
        ? html`<${Facts}
            of=${[
              ['dawatch', decimal(polls)],
              ['polling every 5 s', decimal(fixed)],
              ['fewer', fixed > polls ? percent(1 - polls / fixed) : null],
            ]}
          />`
        : html`<p class="muted">Available after the first submission of the last hour becomes final.</p>`
    }
  </section>`;
}

/**
 * @param {{ deliveries: Overview['deliveries'] }} props
 */
function DeliveryStats({ deliveries }) {
  const { session } = useDashboard();
  const linked = (/** @type {string} */ state, /** @type {number} */ number) =>
    maySeeNotifications(session)
      ? html`<a href=${hrefTo('deliveries', undefined, { state })}>${count(number)}</a>`
      : count(number);
  return html`<section aria-labelledby="delivery-stats">
    <h2 id="delivery-stats">Deliveries</h2>
    <${Facts}
      of=${[
        ['Waiting', linked('waiting', deliveries.waiting)],
        ['The oldest waits since', html`<${Time} at=${deliveries.oldest_waiting_at} />`],
        [
          'Dead letters',
          html`<span class=${deliveries.dead > 0 ? 'wrong' : ''}>${linked('dead', deliveries.dead)}</span>`,
        ],
      ]}
    />
  </section>`;
}

/** @type {Record<string, string>} */
const STATES = { unauthorized: 'key refused' };

/** @type {readonly import('../parts/table.js').Column<Overview['upstreams'][number]>[]} */
const UPSTREAM_COLUMNS = [
  { title: 'Upstream', cell: ({ name }) => name },
  {
    title: 'State',
    cell: ({ state }) => html`<${Badge} state=${state} label=${STATES[state] ?? state} />`,
  },
  {
    title: 'Tracked',
    cell: ({ name, tracked }) =>
      html`<a href=${hrefTo('submissions', undefined, { upstream: name, status: OPEN_STATUSES.join() })}>${count(tracked)}</a>`,
    class: 'number',
  },
  { title: 'In flight', cell: ({ in_flight }) => count(in_flight), class: 'number' },
  {
    title: 'Budget used',
    cell: ({ name, budget: { used, limit, window_ms } }) => html`
      <meter min="0" max=${limit} value=${used} aria-label=${`Budget used at ${name}`}></meter>
      ${` ${count(used)} of ${count(limit)} per ${wholeDuration(window_ms / 1_000)}`}
    `,
  },
];

/**
 * State and used budget of each upstream.
 * @param {{ upstreams: Overview['upstreams'], readers: number, workers: number | null }} props
 */
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

/** Events since the page was opened. */
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
  { title: 'Status', cell: ({ status }) => html`<${Badge} state=${status} />` },
  { title: 'Upstream', cell: ({ upstream }) => upstream },
  { title: 'Tracked', cell: ({ tracked_at }) => html`<${Time} at=${tracked_at} />` },
  { title: 'Age', cell: ({ age_s }) => wholeDuration(age_s), class: 'number' },
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

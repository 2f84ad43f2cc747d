import { useState } from 'preact/hooks';
import { useDashboard, useFeed } from '../data/context.js';
import { count, decimal, wholeDuration } from '../parts/format.js';
import { html } from '../parts/html.js';
import { Badge, Facts, Time } from '../parts/parts.js';
import { Table } from '../parts/table.js';
import { hrefTo } from '../router.js';
import { maySeeNotifications } from '../session/access.js';
import {
  FINAL_STATUSES,
  OPEN_STATUSES,
  submissionId,
  submissionLink,
} from '../submissions/submission-table.js';

/** Number of submissions by status. @param {{ submissions: Record<string, number> }} props */
export function StatusCounts({ submissions }) {
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

/** Requests per submission, compared with polling every 5 s. @param {{ lastHour: any }} props */
export function RequestStats({ lastHour }) {
  const { polls_per_submission: polls, fixed_5s_polls_per_submission: fixed } = lastHour;
  const isKnown = polls !== null && fixed !== null;
  return html`<section aria-labelledby="requests">
    <h2 id="requests">Requests per submission</h2>
    ${
      isKnown
        ? html`<dl class="bars">
              <${Bar} name="dawatch" value=${polls} of=${Math.max(polls, fixed)} />
              <${Bar} name="polling every 5 s" value=${fixed} of=${Math.max(polls, fixed)} />
            </dl>
            ${fixed > polls && html`<p class="muted">${decimal((1 - polls / fixed) * 100, 0)} % fewer in the last hour.</p>`}`
        : html`<p class="muted">Available after the first submission of the last hour becomes final.</p>`
    }
  </section>`;
}

/** @param {{ name: string, value: number, of: number }} props */
function Bar({ name, value, of }) {
  return html`<div>
    <dt>${name}</dt>
    <dd><span class="bar" aria-hidden="true" style=${{ inlineSize: `${(70 * value) / of}%` }}></span> ${decimal(value)}</dd>
  </div>`;
}

/**
 * @param {{ deliveries: { waiting: number, dead: number, oldest_waiting_at: string | null } }}
 * props
 */
export function DeliveryStats({ deliveries }) {
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
const STATES = { closed: 'up', down: 'down', unauthorized: 'key refused' };

/** @type {readonly import('../parts/table.js').Column[]} */
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
 * State and used budget of each upstream. @param {{ upstreams: readonly any[], readers: number,
 * workers: any }} props
 */
export function Upstreams({ upstreams, readers, workers }) {
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
export function LatestEvents() {
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
  if (data.submission) return submissionLink(data.submission);
  return html`<span>${data.alert?.summary ?? data.upstream ?? data.channel ?? data.webhook_id}</span>`;
}

/** @type {readonly import('../parts/table.js').Column[]} */
const OPEN_COLUMNS = [
  { title: 'Submission', cell: submissionLink },
  { title: 'Status', cell: ({ status }) => html`<${Badge} state=${status} />` },
  { title: 'Upstream', cell: ({ upstream }) => upstream },
  { title: 'Tracked', cell: ({ tracked_at }) => html`<${Time} at=${tracked_at} />` },
  { title: 'Age', cell: ({ age_s }) => wholeDuration(age_s), class: 'number' },
];

/** @param {{ oldest: readonly any[] }} props */
export function OldestOpen({ oldest }) {
  return html`<section aria-labelledby="oldest">
    <h2 id="oldest">Oldest open submissions</h2>
    ${
      oldest.length === 0
        ? html`<p class="muted">No open submissions: every tracked submission is final.</p>`
        : html`<${Table} caption="Oldest open submissions, oldest first" hidesCaption columns=${OPEN_COLUMNS} rows=${oldest} keyOf=${submissionId} />`
    }
  </section>`;
}

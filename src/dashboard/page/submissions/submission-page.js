import { useState } from 'preact/hooks';
import { ApiError, withQuery } from '../data/api.js';
import { useDashboard, useFeed } from '../data/context.js';
import { useLoad, useWhileVisible } from '../data/use-load.js';
import { DeliveryTable } from '../notifications/delivery-table.js';
import { CopyButton } from '../parts/copy-button.js';
import { between, text } from '../parts/format.js';
import { html } from '../parts/html.js';
import { Badge, Empty, Facts, Loadable, Time } from '../parts/parts.js';
import { maySeeNotifications } from '../session/access.js';
import { FINAL_STATUSES, TrackHint } from './submission-table.js';

const DELIVERIES = 100;
const REFRESH_MS = 2_000;

/** One submission, from its tracking on. @param {{ id: string }} props */
export function SubmissionPage({ id }) {
  const { api, session, announce } = useDashboard();
  const loaded = useLoad((signal) => api.get(`v1/submissions/${encodeURIComponent(id)}`, { signal }), id);
  // The URL may contain the UUID in upper case.
  const shownId = loaded.data?.submission_id ?? id;
  // Not every event is a change; "stuck" is not.
  const [news, setNews] = useState(0);
  useFeed(({ events, isWhole }) => {
    const mine = events.filter(({ data }) => data.submission?.submission_id === shownId);
    const newest = mine.at(-1);
    if (newest) announce(`This submission is ${newest.data.submission.status}.`);
    if (mine.length === 0 && isWhole) return;
    loaded.reload();
    setNews((count) => count + 1);
  });
  // Not every change is an event; the first appearance at the upstream is not.
  useWhileVisible(
    loaded.refresh,
    REFRESH_MS,
    loaded.data !== undefined && !FINAL_STATUSES.includes(loaded.data.status),
  );

  if (loaded.error instanceof ApiError && loaded.error.status === 404)
    return html`<h1 tabindex="-1" class="id">${id}</h1>
      <${Empty} title="This submission is not tracked."><${TrackHint} id=${id} /><//>`;
  return html`<div class="title"><h1 tabindex="-1" class="id">${shownId}</h1><${CopyButton} text=${shownId} name="the id" /></div>
    <${Loadable} loaded=${loaded}>${(/** @type {any} */ one) => html`<${Details} one=${one} />`}<//>
    ${maySeeNotifications(session) && html`<${Deliveries} id=${id} version=${`${loaded.data?.history.length} ${news}`} />`}`;
}

/** @param {{ one: any }} props */
function Details({ one }) {
  const final = one.finalized_at;
  const facts = [
    ['Status', html`<${Badge} state=${one.status} />`],
    ['Upstream', one.upstream],
    ['Upstream state', one.upstream_state],
    ['Error', one.error],
    ['Tracked', html`<${Time} at=${one.tracked_at} />`],
    ['Final', html`<${Time} at=${final} />`],
    ['Time to finality', final === null ? null : between(one.tracked_at, final)],
    ['Deadline', html`<${Time} at=${one.deadline_at} />`],
    ['Requests', String(one.polls)],
    ...(one.unreadable ? [['Unreadable fields', one.unreadable.join(', ')]] : []),
  ];
  return html`<section aria-label="Summary"><${Facts} of=${facts} /></section>
    <div class="columns">
      <section aria-labelledby="history">
        <h2 id="history">History</h2>
        <${Timeline} entries=${one.history} />
      </section>
      <div>
        <${Values} id="data" title="Data of the upstream" values=${one.data} nothing="No data from the upstream yet." />
        <${Values} id="metadata" title="Metadata" values=${one.metadata} nothing="No metadata." />
      </div>
    </div>`;
}

/** @param {{ id: string, title: string, values: Record<string, unknown> | null, nothing: string }} props */
function Values({ id, title, values, nothing }) {
  return html`<section aria-labelledby=${id}>
    <h2 id=${id}>${title}</h2>
    ${
      values === null
        ? html`<p class="muted">${nothing}</p>`
        : html`<${Facts} of=${Object.entries(values).map(([name, value]) => [name, html`<span class="value">${text(value)}</span>`])} />`
    }
  </section>`;
}

/** @param {{ id: string, version: string }} props `version`: changes when there may be new ones */
function Deliveries({ id, version }) {
  const { api } = useDashboard();
  const path = withQuery('v1/deliveries', { submission_id: id, limit: DELIVERIES });
  const loaded = useLoad((signal) => api.get(path, { signal }), path, version);
  const isWaiting = loaded.data?.deliveries.some((/** @type {any} */ { state }) => state === 'waiting');
  useWhileVisible(loaded.refresh, REFRESH_MS, isWaiting === true);
  return html`<section aria-labelledby="deliveries">
    <h2 id="deliveries">Deliveries</h2>
    <${Loadable} loaded=${loaded}>
      ${(/** @type {any} */ { deliveries, next_cursor }) =>
        deliveries.length === 0
          ? html`<p class="muted">No deliveries: no event yet, or no webhook subscribes to it.</p>`
          : html`<${DeliveryTable}
                deliveries=${deliveries}
                caption="Deliveries of this submission, newest first"
                hidden=${['submission']}
                onReplayed=${loaded.reload}
              />
              ${next_cursor !== null && html`<p class="muted">These are the newest ${DELIVERIES}; there are more.</p>`}`}
    <//>
  </section>`;
}

/** Every change, oldest first. @param {{ entries: readonly any[] }} props */
function Timeline({ entries }) {
  const begin = entries[0]?.at ?? '';
  return html`<ol class="timeline">
    ${entries.map((entry, index) => html`<${Entry} key=${entry.seq} entry=${entry} before=${entries[index - 1]} begin=${begin} />`)}
  </ol>`;
}

/** @param {{ entry: any, before: any, begin: string }} props */
function Entry({ entry, before, begin }) {
  const changes = changedIn(before?.data ?? {}, entry.data ?? {});
  return html`<li class=${entry.status}>
    <p>
      <${Badge} state=${entry.status} />
      ${entry.previous_status === entry.status && html` <span class="muted">data changed</span>`}
    </p>
    <p class="muted"><${Time} at=${entry.at} />${before && ` · ${between(begin, entry.at)} after it was tracked`}</p>
    ${entry.upstream_state && entry.upstream_state !== before?.upstream_state && html`<p>The upstream says ${entry.upstream_state}</p>`}
    ${entry.error && html`<p class="wrong">${entry.error}</p>`}
    ${
      changes.length > 0 &&
      html`<details>
        <summary>${changes.length === 1 ? '1 field of its data' : `${changes.length} fields of its data`}</summary>
        <dl class="changes">
          ${changes.map(([name, value]) => html`<div key=${name}><dt>${name}</dt><dd class="value">${text(value)}</dd></div>`)}
        </dl>
      </details>`
    }
  </li>`;
}

/** Fields that were added or changed. @param {Record<string, unknown>} before @param {Record<string, unknown>} now */
function changedIn(before, now) {
  return Object.entries(now).filter(([name, value]) => value !== null && text(before[name]) !== text(value));
}

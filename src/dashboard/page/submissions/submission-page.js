import { useState } from 'preact/hooks';
import { ApiError, withQuery } from '../data/api.js';
import {
  mayChangeSubmissions,
  maySeeOperations,
  useDashboard,
  useFeed,
  useLoad,
  useWhileVisible,
} from '../data/context.js';
import { submissionOf } from '../data/feed.js';
import { DeliveryTable } from '../notifications/deliveries-page.js';
import { between, count, duration, relativeTime, text, wholeDuration } from '../parts/format.js';
import { html, Icon } from '../parts/html.js';
import { Badge, CopyButton, Empty, Facts, Loadable, PageHeader, Time } from '../parts/parts.js';
import { pathOf, SubmissionActions } from './submission-actions.js';
import { FINAL_STATUSES, OPEN_STATUSES, TrackHint } from './submission-table.js';

/** @import { Delivery, DeliveryPage, HistoryEntry, SubmissionWithHistory } from '../../../client/api.ts' */

const DELIVERIES = 100;
const REFRESH_MS = 2_000;

export function SubmissionPage({ id }) {
  const { api, session, announce } = useDashboard();
  const loaded = useLoad((signal) => api.get(pathOf(id), { signal }), id);
  // The URL may contain the UUID in upper case.
  const shownId = loaded.data?.submission_id ?? id;
  // Not every event is a change; "stuck" is not.
  const [news, setNews] = useState(0);
  useFeed(({ events, isWhole }) => {
    const mine = events.map(submissionOf).filter((one) => one?.submission_id === shownId);
    const newest = mine.at(-1);
    if (newest) announce(`This submission is ${newest.status}.`);
    if (mine.length === 0 && isWhole) return;
    loaded.reload();
    setNews((count) => count + 1);
  });
  // Not every change is an event; the first appearance at the upstream is not.
  useWhileVisible(
    loaded.reload,
    REFRESH_MS,
    loaded.data !== undefined && !FINAL_STATUSES.includes(loaded.data.status),
  );

  if (loaded.error instanceof ApiError && loaded.error.status === 404)
    return html`<${PageHeader} title=${id} id=${id} />
      <${Empty} title="This submission is not tracked."><${TrackHint} id=${id} /><//>`;
  const one = loaded.data;
  return html`<${PageHeader} title=${shownId} id=${shownId}>
      ${one && mayChangeSubmissions(session) && html`<${SubmissionActions} one=${one} onChanged=${loaded.reload} />`}
    <//>
    <${Loadable} loaded=${loaded}>
      ${(/** @type {SubmissionWithHistory} */ one) =>
        maySeeOperations(session)
          ? html`<${WithDeliveries} one=${one} version=${`${one.history.length} ${news}`} />`
          : html`<${Details} one=${one} deliveries=${[]} />`}
    <//>`;
}

/**
 * @param {{ one: SubmissionWithHistory, version: string }} props `version`: changes when there may be new deliveries
 */
function WithDeliveries({ one, version }) {
  const { api } = useDashboard();
  const query = { submission_id: one.submission_id, limit: DELIVERIES };
  const path = withQuery('v1/deliveries', query);
  const loaded = useLoad((signal) => api.get(path, { signal }), path, version);
  /** @type {readonly Delivery[]} */
  const deliveries = loaded.data?.deliveries ?? [];
  const isWaiting = deliveries.some(({ state }) => state === 'waiting');
  useWhileVisible(loaded.reload, REFRESH_MS, isWaiting);
  return html`<${Details} one=${one} deliveries=${deliveries}>
    <section aria-labelledby="deliveries">
      <h2 id="deliveries">Deliveries</h2>
      <${Loadable} loaded=${loaded}>
        ${(/** @type {DeliveryPage} */ { deliveries, next_cursor }) =>
          deliveries.length === 0
            ? html`<p class="muted">No deliveries: no event yet, or no webhook subscribes to it.</p>`
            : html`<${DeliveryTable} deliveries=${deliveries} onReplayed=${loaded.reload} />
                ${next_cursor !== null && html`<p class="muted">These are the newest ${DELIVERIES}; there are more.</p>`}`}
      <//>
    </section>
  <//>`;
}

/**
 * @param {{ one: SubmissionWithHistory, deliveries: readonly Delivery[], children?: any }} props
 */
function Details({ one, deliveries, children }) {
  return html`<section aria-label="Summary">
      <p class=${`headline ${one.status}`}>${sentenceOf(one, deliveries, Date.now())}</p>
      ${one.data_root && html`<${Proof} one=${one} />`}
      <${Facts} of=${factsOf(one)} />
      <details open=${!FINAL_STATUSES.includes(one.status)}>
        <summary>Options</summary>
        <${Facts} of=${optionsOf(one)} />
      </details>
    </section>
    <${Values} id="data" title="Data of the upstream" values=${one.data} nothing="No data from the upstream yet." shownOf=${short} />
    <${Values} id="metadata" title="Metadata" values=${one.metadata} nothing="No metadata." />
    ${children}
    <section aria-labelledby="history">
      <h2 id="history">History</h2>
      <ol class="timeline">
        ${one.history.map((entry, index) => html`<${Entry} key=${entry.seq} entry=${entry} before=${one.history[index - 1]} begin=${one.history[0]?.at} />`)}
      </ol>
    </section>`;
}

/** @param {SubmissionWithHistory} one @returns {[string, any][]} */
function factsOf(one) {
  const { finalized_at: final, explorer_url: explorer } = one;
  return [
    ['Status', html`<${Badge} state=${one.status} />`],
    ['Upstream', one.upstream],
    ['Upstream state', one.upstream_state],
    ['Chain', one.chain && [one.chain, one.chain_reason].filter(Boolean).join(': ')],
    [
      'Explorer',
      explorer &&
        html`<a href=${explorer} target="_blank" rel="noreferrer">${new URL(explorer).host} <${Icon} name="link" /></a>`,
    ],
    ['Tracked', html`<${Time} at=${one.tracked_at} />`],
    ['Final', final && html`<${Time} at=${final} />`],
    ['Detection lag', lagOf(one)],
    [
      'Last response',
      one.last_polled_at === null ? 'not polled yet' : html`<${Time} at=${one.last_polled_at} />`,
    ],
    ['Next poll', one.next_poll_at && html`<${Time} at=${one.next_poll_at} />`],
    ['Not found since', one.not_found_since && html`<${Time} at=${one.not_found_since} />`],
  ];
}

/** @param {SubmissionWithHistory} one @returns {[string, any][]} */
function optionsOf(one) {
  return [
    ['Deadline', html`<${Time} at=${one.deadline_at} />`],
    ['Not-found grace', wholeDuration(one.unknown_grace_s)],
    ['Stuck after', wholeDuration(one.stuck_after_s)],
    [
      'Callback URL',
      one.callback_url && html`<${Copied} value=${one.callback_url} name="the callback URL" />`,
    ],
    ['Data hash', one.data_hash && html`<${Copied} value=${one.data_hash} name="the data hash" />`],
  ];
}

function Proof({ one: { submission_id: id, data, data_root: root } }) {
  return html`<p>The data are in block ${text(data?.block_number)}, data root <${Copied} value=${root} name="the data root" />
    <a class="button" href=${`${pathOf(id)}/proof`} download=${`proof-${id}.json`}>Download the proof</a></p>`;
}

/** The time of finality and the lag; null: unknown. @param {SubmissionWithHistory} one */
function lagOf({ finalized_at, finality_at, finality_source }) {
  if (finalized_at === null || finality_at === null) return null;
  const lag = between(finality_at, finalized_at);
  return finality_source === 'estimate'
    ? `about ${lag} (estimate)`
    : html`${lag}, final <${Time} at=${finality_at} /> (chain)`;
}

function Copied({ value, name, shownOf = text }) {
  return html`<span class="value" title=${text(value)}>${shownOf(value)}</span> <${CopyButton} text=${text(value)} name=${name} />`;
}

function Values({ id, title, values, nothing, shownOf }) {
  return html`<section aria-labelledby=${id}>
    <div class="actions">
      <h2 id=${id}>${title}</h2>
      ${values !== null && html`<${CopyButton} text=${JSON.stringify(values, null, 2)} name=${`${title} as JSON`} label="JSON" />`}
    </div>
    ${
      values === null
        ? html`<p class="muted">${nothing}</p>`
        : html`<${Facts} of=${Object.entries(values).map(([name, value]) => [name, value === null ? '–' : html`<${Copied} value=${value} name=${name} shownOf=${shownOf} />`])} />`
    }
  </section>`;
}

/** @param {{ entry: HistoryEntry, before: HistoryEntry | undefined, begin: string }} props */
function Entry({ entry, before, begin }) {
  const changes = Object.entries(entry.data ?? {}).filter(
    ([name, value]) => value !== null && text(before?.data?.[name]) !== text(value),
  );
  return html`<li class=${entry.status}>
    <p>
      <${Badge} state=${entry.status} />
      ${entry.previous_status === entry.status && html` <span class="muted">${entry.changes ? 'options changed' : 'data changed'}</span>`}
    </p>
    <p class="muted"><${Time} at=${entry.at} />${before && ` · ${between(begin, entry.at)} after it was tracked`}</p>
    ${entry.upstream_state && entry.upstream_state !== before?.upstream_state && html`<p>The upstream reports ${entry.upstream_state}</p>`}
    ${entry.error && html`<p class="wrong">${entry.error}</p>`}
    ${entry.chain_reason && entry.chain_reason !== before?.chain_reason && html`<p class="wrong">${entry.chain} by the chain: ${entry.chain_reason}</p>`}
    ${entry.changes && html`<${Facts} of=${optionChanges(entry.changes)} />`}
    ${
      changes.length > 0 &&
      html`<details>
        <summary>${changes.length === 1 ? '1 field of its data' : `${changes.length} fields of its data`}</summary>
        <${Facts} of=${changes.map(([name, value]) => [name, html`<span class="value">${text(value)}</span>`])} />
      </details>`
    }
  </li>`;
}

/** The options that a client changed, with their previous values. */
function optionChanges(changes) {
  return Object.entries(changes).map(([name, { from, to }]) => [
    name,
    name.endsWith('_at')
      ? html`<${Time} at=${from} /> → <${Time} at=${to} />`
      : html`<span class="value">${text(from)} → ${text(to)}</span>`,
  ]);
}

/**
 * What happened to a submission, in one sentence.
 * @param {SubmissionWithHistory} one @param {readonly Delivery[]} deliveries of its events
 * @param {number} now epoch milliseconds
 */
export function sentenceOf(one, deliveries, now) {
  const since = duration((now - Date.parse(one.tracked_at)) / 1_000);
  const requests = one.polls === 1 ? '1 request' : `${count(one.polls)} requests`;
  if (OPEN_STATUSES.includes(one.status)) {
    const next =
      one.next_poll_at === null ? '' : `; next poll ${relativeTime(one.next_poll_at, now)}`;
    /** @type {Record<string, string>} */
    const states = {
      tracking: `Tracked ${since} ago, not yet seen by the upstream`,
      pending: `Pending, tracked ${since} ago`,
      failing: `Failing: ${one.error ?? 'the upstream reports an error'}, tracked ${since} ago`,
    };
    return `${states[one.status]}, with ${requests} so far${next}.`;
  }
  const end =
    one.finalized_at ?? one.history.findLast((entry) => entry.previous_status !== entry.status)?.at;
  const after = end === undefined ? '' : ` after ${between(one.tracked_at, end)}`;
  const about = one.finality_source === 'estimate' ? 'about ' : '';
  const lag =
    one.finalized_at === null || one.finality_at === null
      ? ''
      : `; detection lag ${about}${between(one.finality_at, one.finalized_at)}`;
  const block = one.status === 'finalized' ? (one.data?.block_number ?? undefined) : undefined;
  const place = block === undefined ? '' : ` in block ${text(block)}`;
  const chain =
    one.chain === 'confirmed' || one.chain === 'contradicted' ? `, ${one.chain} by the chain` : '';
  const error = one.error ? `: ${one.error}` : '';
  const arrived = deliveries.filter(({ state }) => state === 'delivered').length;
  const delivered =
    deliveries.length === 0
      ? ''
      : `; ${count(arrived)} of ${count(deliveries.length)} deliveries arrived`;
  const status = `${one.status.charAt(0).toUpperCase()}${one.status.slice(1)}`;
  return `${status}${after}${place}${chain}${error}${lag}; ${requests}${delivered}.`;
}

/** An integer of more than 15 digits, such as fees in the smallest unit, as 2.548 × 10^22. */
export function short(value) {
  const whole = text(value);
  if (!/^[1-9]\d{15,}$/.test(whole)) return whole;
  return `${whole[0]}.${whole.slice(1, 4)} × 10^${whole.length - 1}`;
}

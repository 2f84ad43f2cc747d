import { useState } from 'preact/hooks';
import { withQuery } from '../data/api.js';
import { useDashboard } from '../data/context.js';
import { useLoad } from '../data/use-load.js';
import { html } from '../parts/html.js';
import { Action, Badge, Command, Loadable, Time } from '../parts/parts.js';
import { hrefTo } from '../router.js';
import { mayChangeNotifications } from '../session/access.js';

/** @type {Record<string, string>} */
const REASONS = {
  attempts_used_up: 'every attempt failed',
  endpoint_gone: 'its receiver is gone',
  endpoint_disabled: 'it was disabled',
  not_configured: 'it is no longer configured',
  undeliverable: 'its event cannot be read or written',
};

/**
 * @param {{ deliveries: readonly any[], caption: string, hidden?: readonly string[], onReplayed: () => void }} props
 *   `hidden`: the columns that would have the same value in every row
 */
export function DeliveryTable({ deliveries, caption, hidden: hiddenHere = [], onReplayed }) {
  const { session } = useDashboard();
  const hidden = mayChangeNotifications(session) ? hiddenHere : [...hiddenHere, 'action'];
  const names = useWebhookNames(
    hidden.includes('destination') ? [] : deliveries.map(({ destination }) => destination),
  );
  return html`<div class="wide" tabindex="0" role="region" aria-label=${caption}>
    <table>
      <caption>${caption}</caption>
      <thead>
        <tr>
          <th scope="col">Delivery</th>
          <th scope="col">State</th>
          <th scope="col">Event</th>
          ${!hidden.includes('submission') && html`<th scope="col">Submission</th>`}
          ${!hidden.includes('destination') && html`<th scope="col">To</th>`}
          <th scope="col" class="number secondary">Attempts</th>
          <th scope="col">Last response</th>
          <th scope="col">Ended or next attempt</th>
          ${!hidden.includes('action') && html`<th scope="col">Action</th>`}
        </tr>
      </thead>
      <tbody>
        ${deliveries.map((one) => html`<${Row} key=${one.id} one=${one} hidden=${hidden} names=${names} onReplayed=${onReplayed} />`)}
      </tbody>
    </table>
  </div>`;
}

/**
 * @param {{ one: any, hidden: readonly string[], names: ReadonlyMap<string, string>, onReplayed: ()
 * => void }} props
 */
function Row({ one, hidden, names, onReplayed }) {
  const { api } = useDashboard();
  const [isOpen, setIsOpen] = useState(false);
  const isWaiting = one.state === 'waiting';
  const replay = async () => {
    await api.post(`v1/deliveries/${one.id}/replay`);
    onReplayed();
    return `Delivery ${one.id} waits to be sent again.`;
  };
  const reason = REASONS[one.dead_reason];
  return html`<tr>
      <th scope="row">
        <button type="button" class="plain" aria-expanded=${isOpen} onClick=${() => setIsOpen(!isOpen)}>
          <span aria-hidden="true">${isOpen ? '▾' : '▸'}</span> <span class="unseen">Delivery </span>${one.id}<span class="unseen">: attempts</span>
        </button>
      </th>
      <td data-title="State"><${Badge} state=${one.state} />${reason && html` <span class="muted">${reason}</span>`}</td>
      <td data-title="Event">${one.event_type}</td>
      ${!hidden.includes('submission') && html`<td data-title="Submission"><${SubmissionLink} id=${one.submission_id} /></td>`}
      ${!hidden.includes('destination') && html`<td data-title="To"><${Destination} to=${one.destination} names=${names} /></td>`}
      <td class="number secondary">${one.attempts_made}</td>
      <td data-title="Last response"><${LastResponse} status=${one.last_http_status} error=${one.last_error} /></td>
      <td data-title=${isWaiting ? 'Next attempt' : 'Ended'}>${isWaiting && html`<span class="muted">next </span>`}<${Time} at=${isWaiting ? one.next_at : one.ended_at} /></td>
      ${
        !hidden.includes('action') &&
        html`<td>
          ${
            one.state === 'discarded'
              ? html`<span class="muted">–</span>`
              : html`<${Action} label=${isWaiting ? 'Try now' : 'Replay'} name=${`${isWaiting ? 'Try now' : 'Replay'}: delivery ${one.id}`} act=${replay} />`
          }
        </td>`
      }
    </tr>
    ${isOpen && html`<tr><td colspan=${9 - hidden.length}><${Attempts} id=${one.id} version=${`${one.state} ${one.attempts_made}`} /></td></tr>`}`;
}

/**
 * Of the newest attempt; a channel without HTTP has an error at most. @param {{ status: number |
 * null, error: string | null }} props
 */
function LastResponse({ status, error }) {
  if (status === null && error === null) return html`<span class="muted">–</span>`;
  const text = status === null ? error : `HTTP ${status}`;
  return error === null ? text : html`<span class="wrong" title=${error}>${text}</span>`;
}

/** @param {{ id: string | null }} props */
function SubmissionLink({ id }) {
  if (id === null) return html`<span class="muted">–</span>`;
  return html`<a class="id" href=${hrefTo('submissions', id)}>${id}</a>`;
}

/**
 * Descriptions of webhooks by their ids, of those that have one, among the newest thousand. Loaded
 * again for other destinations.
 * @param {readonly string[]} destinations
 */
function useWebhookNames(destinations) {
  const { api } = useDashboard();
  const ids = new Set(destinations.map((to) => /^webhook:(.+)$/.exec(to)?.[1]));
  ids.delete(undefined);
  const shown = [...ids].sort().join(' ');
  const load = async (/** @type {AbortSignal} */ signal) => {
    const names = new Map();
    let missing = ids.size;
    /** @type {string | undefined} */
    let cursor;
    for (let page = 0; missing > 0 && page < MAX_WEBHOOK_PAGES; page++) {
      const { webhooks, next_cursor: next } = await api.get(
        withQuery('v1/webhooks', { limit: 100, cursor }),
        {
          signal,
        },
      );
      for (const { id, description } of webhooks) {
        if (ids.has(id)) missing -= 1;
        if (description !== '') names.set(id, description);
      }
      if (next === null) break;
      cursor = next;
    }
    return names;
  };
  return useLoad(load, 'names', shown).data ?? NO_NAMES;
}

/** @type {ReadonlyMap<string, string>} */
const NO_NAMES = new Map();
const MAX_WEBHOOK_PAGES = 10;

/**
 * webhook:<id>, channel:<name>, or callback:<origin>. @param {{ to: string, names:
 * ReadonlyMap<string, string> }} props
 */
function Destination({ to, names }) {
  const webhook = /^webhook:(.+)$/.exec(to)?.[1];
  const href = webhook
    ? hrefTo('webhooks', webhook)
    : hrefTo('deliveries', undefined, { destination: to });
  const name = webhook && names.get(webhook);
  return name
    ? html`<a href=${href} title=${webhook}>${name}</a>`
    : html`<a class="id" href=${href}>${webhook ?? to}</a>`;
}

/**
 * The body that was sent, and the result of each attempt. @param {{ id: number, version: string }}
 * props `version`: changes when there are new ones
 */
function Attempts({ id, version }) {
  const { api } = useDashboard();
  const loaded = useLoad(
    (signal) => api.get(`v1/deliveries/${id}`, { signal }),
    String(id),
    version,
  );
  return html`<${Loadable} loaded=${loaded}>
    ${(/** @type {any} */ { attempts, event }) => html`
      ${attempts.length === 0 && html`<p class="muted">No attempt yet.</p>`}
      <ol class="attempts">
        ${attempts.map(
          (/** @type {any} */ attempt) => html`<li key=${attempt.at}>
            <${Time} at=${attempt.at} /> · ${attempt.duration_ms} ms ·
            ${attempt.http_status === null ? 'no response' : `HTTP ${attempt.http_status}`} ·
            ${attempt.error === null ? 'delivered' : html`<span class="wrong">${attempt.error}</span>`}
            ${attempt.response && html`<${Command}>${attempt.response}<//>`}
          </li>`,
        )}
      </ol>
      <details>
        <summary>Request body</summary>
        <${Command}>${JSON.stringify(event, null, 2)}<//>
      </details>
    `}
  <//>`;
}

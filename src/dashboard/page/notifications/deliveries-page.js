import { useState } from 'preact/hooks';
import { withQuery } from '../data/api.js';
import { mayChangeNotifications, useDashboard, useLoad, useWhileVisible } from '../data/context.js';
import {
  ChoiceFilter,
  conditionsIn,
  Filters,
  Suggestions,
  TextFilter,
  TimeFilter,
  UnknownFilters,
  Zone,
} from '../parts/filters.js';
import { ConfirmDialog } from '../parts/form.js';
import { absoluteTime, count } from '../parts/format.js';
import { html } from '../parts/html.js';
import { Action, Badge, Command, Empty, Facts, Loadable, Time } from '../parts/parts.js';
import { Pager } from '../parts/table.js';
import { hrefTo, parseRoute } from '../router.js';
import { TYPES } from './webhooks-page.js';

/** @import { Delivery, DeliveryDetails, DeliveryPage, DeliveryState } from '../../../client/api.ts' */

const PER_PAGE = 50;
const REFRESH_MS = 2_000;
/** @type {readonly DeliveryState[]} */
const STATES = ['waiting', 'delivered', 'dead', 'discarded'];
/** The conditions, as in the address of the page and as the server names them. */
const CONDITIONS = /** @type {const} */ ([
  'state',
  'event_type',
  'submission_id',
  'destination',
  'since',
  'until',
]);
/** @typedef {Record<typeof CONDITIONS[number], string>} Conditions empty: no condition */
/** @typedef {(query: Record<string, string | undefined>) => string} HrefOf */

/**
 * A page of deliveries: all, or those of one webhook.
 * @param {{ webhookId?: string, version?: number, onReplayed?: () => void, query: URLSearchParams, hrefOf: HrefOf }} props
 *   `version`: changes when there may be new ones; `hrefOf`: the address of this log with other
 *   conditions or another page
 */
export function DeliveryLog({ webhookId, version, onReplayed, query, hrefOf }) {
  const { api, session } = useDashboard();
  const names = CONDITIONS.filter((name) => webhookId === undefined || name !== 'destination');
  const { given: conditions, cursor, unknown } = conditionsIn(query, names);
  const given = { ...conditions, destination: conditions.destination ?? '' };
  const path = withQuery('v1/deliveries', {
    webhook_id: webhookId,
    ...given,
    cursor,
    limit: PER_PAGE,
  });
  const loaded = useLoad((signal) => api.get(path, { signal }), path, version);
  const [isReplayed, setIsReplayed] = useState(false);
  const isWaiting = loaded.data?.deliveries.some(
    (/** @type {any} */ one) => one.state === 'waiting',
  );
  useWhileVisible(loaded.refresh, REFRESH_MS, isWaiting === true || isReplayed);
  const replayed = () => {
    setIsReplayed(true);
    loaded.reload();
    onReplayed?.();
  };
  const destination = webhookId === undefined ? given.destination : `webhook:${webhookId}`;
  const mayReplay = mayChangeNotifications(session);
  if (unknown.length > 0) return html`<${UnknownFilters} names=${unknown} href=${hrefOf(given)} />`;
  return html`<${Filter}
      given=${given}
      destinations=${webhookId === undefined ? (loaded.data?.deliveries ?? []).map((/** @type {any} */ one) => one.destination) : undefined}
      hrefOf=${hrefOf}
      reload=${loaded.reload}
    />
    ${
      mayReplay &&
      html`<div class="actions">
        ${
          destination === ''
            ? html`<span class="muted">To replay all dead letters of a destination, enter it above.</span>`
            : html`<${BulkReplay} key=${destination} filter=${{ ...given, destination }} onReplayed=${replayed} />`
        }
      </div>`
    }
    <${Loadable} loaded=${loaded}>
      ${(/** @type {DeliveryPage} */ { deliveries, next_cursor: next }) => html`
        ${
          deliveries.length === 0
            ? html`<${Nothing} given=${given} isEnd=${next === null} />`
            : html`<${DeliveryTable}
                deliveries=${deliveries}
                caption=${`Deliveries${given.state ? ` that are ${given.state}` : ''}, newest first`}
                hidden=${webhookId === undefined ? [] : ['destination']}
                onReplayed=${replayed}
              />`
        }
        <${Pager}
          key=${JSON.stringify(given)}
          cursor=${cursor}
          next=${next}
          to=${(/** @type {string | undefined} */ place) => hrefOf({ ...given, cursor: place })}
        />
      `}
    <//>`;
}

/** @param {{ given: Conditions, isEnd: boolean }} props */
function Nothing({ given, isEnd }) {
  if (!isEnd)
    return html`<${Empty} title="No match among the deliveries searched so far."><p>The search continues on the next page.</p><//>`;
  const { state, ...others } = given;
  const title = Object.values(others).some(Boolean)
    ? 'No delivery matches.'
    : state
      ? `No delivery is ${state}.`
      : 'No deliveries yet.';
  return html`<${Empty} title=${title}>
    <p>${state === 'dead' ? 'Dead letters are deliveries whose attempts are used up, or whose webhook is disabled. They can be replayed.' : 'Each event becomes a delivery per matching destination. Ended deliveries are kept for deliveries.keep_s.'}</p>
  <//>`;
}

/**
 * @param {{ given: Conditions, destinations: readonly string[] | undefined, hrefOf: HrefOf, reload:
 * () => void }} props `destinations`: suggestions; undefined: there is one
 */
function Filter({ given, destinations, hrefOf, reload }) {
  const apply = (/** @type {keyof Conditions} */ name) => (/** @type {string} */ value) => {
    // The address may already contain a later change that is not shown yet.
    const now = conditionsIn(parseRoute(location.hash).query, CONDITIONS).given;
    location.hash = hrefOf({ ...now, [name]: value });
  };
  return html`<${Filters} label="Deliveries" given=${given}>
    <${ChoiceFilter} label="State" value=${given.state} values=${STATES} apply=${apply('state')} />
    <${TextFilter} label="Event types" value=${given.event_type} placeholder="submission.*" list="delivery-types" apply=${apply('event_type')} />
    <${Suggestions} id="delivery-types" of=${TYPES} />
    <${TextFilter} label="Submission ID" value=${given.submission_id} maxlength="128" apply=${apply('submission_id')} />
    ${
      destinations &&
      html`<${Suggestions} id="delivery-destinations" of=${destinations} />
        <${TextFilter} label="Destination" value=${given.destination} list="delivery-destinations" placeholder="webhook:…, channel:…, callback:…" maxlength="300" apply=${apply('destination')} />`
    }
    <${TimeFilter} label="Events since" value=${given.since} apply=${apply('since')} />
    <${TimeFilter} label="Events until" value=${given.until} apply=${apply('until')} />
    <${Zone} />
    <button type="button" onClick=${reload}>Refresh</button>
    ${Object.values(given).some(Boolean) && html`<a href=${hrefOf({})}>Clear filters</a>`}
  <//>`;
}

/** @param {{ query: URLSearchParams }} props */
export function DeliveriesPage({ query }) {
  return html`<h1 tabindex="-1">Deliveries</h1>
    <${DeliveryLog} query=${query} hrefOf=${(/** @type {Record<string, string | undefined>} */ given) => hrefTo('deliveries', undefined, given)} />`;
}

const OLDEST = '1970-01-01T00:00:00.000Z';

/**
 * @typedef {{ destination: string, since: string, until: string, event_type: string, submission_id:
 * string }} ReplayFilter empty: no condition
 */

/**
 * Shows the number of dead letters of a destination, and replays them after a confirmation.
 * @param {{ filter: ReplayFilter, onReplayed: () => void }} props
 */
function BulkReplay({ filter, onReplayed }) {
  const { api, announce } = useDashboard();
  const [confirming, setConfirming] = useState(
    /** @type {{ filter: ReplayFilter, body: object, replayed: number } | undefined} */ (undefined),
  );
  const [message, setMessage] = useState('');
  const preview = async () => {
    setMessage('');
    const body = bodyOf(filter);
    const { replayed } = await api.post('v1/deliveries/replay', { ...body, dry_run: true });
    if (replayed === 0) return 'No dead letter matches.';
    setConfirming({ filter, body, replayed });
    return '';
  };
  const replay = async () => {
    const { replayed } = await api.post('v1/deliveries/replay', confirming?.body);
    const text = `${count(replayed)} ${replayed === 1 ? 'waits' : 'wait'} to be sent again.`;
    setMessage(text);
    announce(text);
    onReplayed();
  };
  return html`<span class="action">
    <${Action} label="Replay dead letters…" act=${preview} />
    ${message && html`<span class="message">${message}</span>`}
    ${
      confirming &&
      html`<${ConfirmDialog}
        title=${`Replay ${count(confirming.replayed)} ${confirming.replayed === 1 ? 'delivery' : 'deliveries'}?`}
        confirm=${`Replay ${count(confirming.replayed)}`}
        act=${replay}
        onClose=${() => setConfirming(undefined)}
      >
        <p>Dead letters, also the events while the webhook was disabled, are sent again:</p>
        <${Facts} of=${factsOf(confirming.filter)} />
      <//>`
    }
  </span>`;
}

/** @param {ReplayFilter} filter */
function bodyOf({ destination, since, until, event_type, submission_id }) {
  return {
    destination,
    since: since || OLDEST,
    ...(until && { until }),
    ...(event_type && { event_types: event_type.split(',') }),
    ...(submission_id && { submission_id }),
  };
}

/** @param {ReplayFilter} filter @returns {[string, any][]} */
function factsOf({ destination, since, until, event_type, submission_id }) {
  return [
    ['To', html`<span class="id value">${destination}</span>`],
    ['Events since', since ? absoluteTime(since) : 'the oldest that is kept'],
    ['Events before', until ? absoluteTime(until) : 'now'],
    ['Event types', event_type || 'all'],
    ['Submission', submission_id || 'all'],
  ];
}

/** @type {Record<string, string>} */
const REASONS = {
  attempts_used_up: 'every attempt failed',
  endpoint_gone: 'its receiver is gone',
  endpoint_disabled: 'it was disabled',
  not_configured: 'it is no longer configured',
  undeliverable: 'its event cannot be read or written',
};

/**
 * @param {{ deliveries: readonly Delivery[], caption: string, hidden?: readonly string[], onReplayed: () => void }} props
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
 * @param {{ one: Delivery, hidden: readonly string[], names: ReadonlyMap<string, string>, onReplayed: ()
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
  const reason = one.dead_reason && REASONS[one.dead_reason];
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
    ${(/** @type {DeliveryDetails} */ { attempts, event }) => html`
      ${attempts.length === 0 && html`<p class="muted">No attempt yet.</p>`}
      <ol class="attempts">
        ${attempts.map(
          (attempt) => html`<li key=${attempt.at}>
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

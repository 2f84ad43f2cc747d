import { isAdmin, useDashboard, useLiveData, useLoad, useWhileVisible } from '../data/context.js';
import { count } from '../parts/format.js';
import { html } from '../parts/html.js';
import { Filters, List, useList } from '../parts/list.js';
import {
  Action,
  Badge,
  Command,
  CopiedId,
  Empty,
  Facts,
  IdLink,
  Loadable,
  PageHeader,
  Tabs,
  Time,
} from '../parts/parts.js';
import { Table } from '../parts/table.js';
import { hrefTo } from '../router.js';
import { copiedSubmission } from '../submissions/submission-table.js';
import { CreateCommand } from './webhooks-page.js';

/** @import { Delivery, DeliveryDetails, DeliveryState, WebhookDetails } from '../../../client/api.ts' */

const REFRESH_MS = 2_000;
/** @type {readonly (DeliveryState | 'failing')[]} */
const STATES = ['waiting', 'failing', 'delivered', 'dead', 'discarded'];

export function DeliveriesPage({ query }) {
  return html`<${PageHeader} title="Deliveries" />
    <${DeliveryLog} query=${query} />`;
}

/**
 * A page of deliveries: all, or those of one webhook.
 * @param {{ webhookId?: string, version?: number, onReplayed?: () => void, query: URLSearchParams }} props
 *   `version`: changes when there may be new ones
 */
export function DeliveryLog({ webhookId, version, onReplayed, query }) {
  const { session } = useDashboard();
  const fixed = { destination: webhookId && `webhook:${webhookId}` };
  const list = useList('v1/deliveries', { query, fixed, ...(version && { version }) });
  const { filters, hrefOf, loaded } = list;
  /** @type {readonly Delivery[]} */
  const deliveries = loaded.data?.deliveries ?? [];
  const isWaiting = deliveries.some(({ state }) => state === 'waiting');
  useWhileVisible(loaded.reload, REFRESH_MS, isWaiting);
  const replayed = () => {
    loaded.reload();
    onReplayed?.();
  };
  const { overview } = useLiveData();
  const isAll = webhookId === undefined;
  const numbers = isAll ? overview.data?.deliveries : undefined;
  const destination = isAll ? filters.destination : `webhook:${webhookId}`;
  const fields = [
    { name: 'state', label: 'State', values: STATES },
    { name: 'submission_id', label: 'Submission ID' },
    {
      name: 'destination',
      label: 'Destination',
      placeholder: 'webhook:…, channel:…, callback:…',
      suggest: deliveries.map((one) => one.destination),
    },
  ].filter(({ name }) => isAll || name !== 'destination');
  const tabs = [
    { label: 'All', state: undefined },
    { label: 'Failing', state: 'failing', number: numbers?.failing },
    { label: 'Dead letters', state: 'dead', number: numbers?.dead },
  ].map(({ state, ...tab }) => ({
    ...tab,
    href: hrefOf({ ...filters, state }),
    isCurrent: filters.state === state,
  }));
  const mayReplay = isAdmin(session) && !loaded.error && destination && filters.state === 'dead';
  return html`<${Tabs} label="Deliveries by state" of=${tabs} />
    <${Filters} list=${list} label="Deliveries" fields=${fields} />
    ${mayReplay && html`<${ReplayAll} key=${destination} destination=${destination} label="Replay dead letters" isDisabled=${deliveries.length === 0} text=${`All dead letters of ${destination} are sent again, also the events while it was disabled.`} onReplayed=${replayed} />`}
    <${List}
      list=${list}
      of="deliveries"
      caption=${`Deliveries${filters.state ? ` that are ${filters.state}` : ''}, newest first`}
      columns=${useDeliveryColumns({ hidden: isAll ? [] : ['To'], onReplayed: replayed })}
      empty=${html`<${Empty} title="No deliveries yet.">
        <p>Each event becomes a delivery per matching destination, such as a webhook:</p>
        <${CreateCommand} />
      <//>`}
    />`;
}

/** Replays the dead letters of a destination, or its deliveries with an error. */
function ReplayAll({ destination, error, text, onReplayed, ...button }) {
  const { api } = useDashboard();
  const replay = async () => {
    const { replayed } = await api.post('v1/deliveries/replay', { destination, error });
    onReplayed();
    return `${count(replayed)} ${replayed === 1 ? 'waits' : 'wait'} to be sent again.`;
  };
  return html`<${Action} ...${button} submit="Replay" confirm=${text} act=${replay} />`;
}

/**
 * Failures of a webhook by their error.
 * @param {{ destination: string, failures: WebhookDetails['failures'], onReplayed: () => void }} props
 */
export function Failures({ destination, failures, onReplayed }) {
  const { session } = useDashboard();
  const columns = [
    { title: 'Error', class: 'wraps', cell: ({ error }) => error ?? 'No attempt was made' },
    {
      title: 'Deliveries',
      width: 14,
      cell: ({ failing, dead }) =>
        [failing > 0 && `${count(failing)} failing`, dead > 0 && `${count(dead)} dead`]
          .filter(Boolean)
          .join(', '),
    },
    {
      title: 'Action',
      width: 6.5,
      class: 'end',
      cell: ({ error }) =>
        isAdmin(session) &&
        error &&
        html`<${ReplayAll} destination=${destination} error=${error} label="Replay" name=${`Replay: ${error}`} text="All deliveries with this error are sent again, each with a new series of attempts." onReplayed=${onReplayed} />`,
    },
  ];
  if (failures.length === 0) return null;
  return html`<section aria-labelledby="failures">
    <h2 id="failures">Failures by error</h2>
    <${Table} label="Errors" caption="Up to 10,000 failing and 10,000 dead deliveries, the most frequent error first" columns=${columns} rows=${failures} keyOf=${({ error }) => error} />
  </section>`;
}

/** Why a delivery is dead. @type {Record<string, string>} */
const REASONS = {
  attempts_used_up: 'every attempt failed',
  endpoint_gone: 'its receiver is gone',
  endpoint_disabled: 'it was disabled',
  not_configured: 'it is no longer configured',
  undeliverable: 'its event cannot be read or written',
};

/** Of one submission. @param {{ deliveries: readonly Delivery[], onReplayed: () => void }} props */
export function DeliveryTable({ deliveries, onReplayed }) {
  const columns = useDeliveryColumns({ hidden: ['Submission'], onReplayed });
  return html`<${Table} caption="Deliveries of this submission, newest first" hidesCaption columns=${columns} rows=${deliveries} />`;
}

/**
 * @param {{ hidden: readonly string[], onReplayed: () => void }} options `hidden`: titles of columns
 * @returns {readonly import('../parts/table.js').Column<Delivery>[]}
 */
function useDeliveryColumns({ hidden, onReplayed }) {
  const { session } = useDashboard();
  const names = useWebhookNames(!hidden.includes('To'));
  const omitted = isAdmin(session) ? hidden : [...hidden, 'Action'];
  /** @type {readonly import('../parts/table.js').Column<Delivery>[]} */
  const columns = [
    {
      title: 'Delivery',
      width: 5.5,
      cell: ({ id }) =>
        html`<a href=${hrefTo('deliveries', String(id))}><span class="unseen">Delivery </span>${id}</a>`,
    },
    {
      title: 'State',
      width: 7.5,
      usual: stateOf,
      cell: (one) => html`<${Badge} state=${stateOf(one)} />`,
    },
    { title: 'Event', width: 12.5, cell: ({ event_type }) => event_type },
    {
      title: 'Submission',
      class: 'from-l',
      cell: ({ submission_id }) =>
        submission_id === null ? '–' : copiedSubmission({ submission_id }),
    },
    {
      title: 'To',
      class: 'from-m',
      cell: ({ destination }) => html`<${Destination} to=${destination} names=${names} />`,
    },
    {
      title: 'Last response',
      class: 'from-m',
      usual: ({ last_error }) => last_error,
      cell: (one) => html`<${LastResponse} one=${one} />`,
    },
    {
      title: 'Ended or next',
      width: 8.5,
      class: 'from-l',
      cell: ({ state, next_at, ended_at }) =>
        state === 'waiting'
          ? html`<span class="muted">${Date.parse(next_at ?? '') < Date.now() ? 'due' : 'next'} </span><${Time} at=${next_at} />`
          : html`<${Time} at=${ended_at} />`,
    },
    {
      title: 'Action',
      class: 'end',
      width: 6.5,
      cell: (one) => html`<${Replay} one=${one} onReplayed=${onReplayed} />`,
    },
  ];
  return columns.filter(({ title }) => !omitted.includes(title));
}

/** @param {Delivery} delivery */
function stateOf({ state, attempts_made }) {
  return state === 'waiting' && attempts_made > 0 ? 'failing' : state;
}

/** @param {{ one: Delivery, onReplayed: () => void }} props */
function Replay({ one: { id, state, event_id }, onReplayed }) {
  const { api } = useDashboard();
  if (state === 'discarded') return html`<span class="muted">–</span>`;
  const replay = async () => {
    await api.post(`v1/deliveries/${id}/replay`);
    onReplayed();
    return `Delivery ${id} waits to be sent again.`;
  };
  const isWaiting = state === 'waiting';
  const label = isWaiting ? 'Try now' : 'Replay';
  const text = `Its event ${event_id} is sent again, with the same id and a new series of attempts.`;
  return html`<${Action} label=${label} name=${`${label}: delivery ${id}`} confirm=${isWaiting ? undefined : text} act=${replay} />`;
}

/** Of the newest attempt. @param {{ one: Delivery }} props */
function LastResponse({ one }) {
  const { last_http_status: status, last_error: error, attempts_made: attempts } = one;
  const why = one.dead_reason && html` <span class="muted">${REASONS[one.dead_reason]}</span>`;
  if (status === null && error === null) return why ?? '–';
  const times = attempts > 1 ? ` ×${count(attempts)}` : '';
  const text = `${status === null ? error : `HTTP ${status}`}${times}`;
  return error === null ? text : html`<span class="wrong" title=${error}>${text}</span>${why}`;
}

function useWebhookNames(isNeeded) {
  const { api } = useDashboard();
  const { data } = useLoad(
    async (signal) => (isNeeded ? await api.get('v1/webhooks?limit=100', { signal }) : undefined),
    'names',
  );
  /** @type {readonly { id: string, description: string }[]} */
  const webhooks = data?.webhooks ?? [];
  return new Map(webhooks.map(({ id, description }) => [id, description]));
}

/** webhook:<id>, channel:<name>, or callback:<origin>. */
function Destination({ to, names, Id = CopiedId }) {
  const webhook = /^webhook:(.+)$/.exec(to)?.[1];
  const href = webhook
    ? hrefTo('webhooks', webhook)
    : hrefTo('deliveries', undefined, { destination: to });
  const name = webhook && names.get(webhook);
  return name
    ? html`<a title=${webhook} href=${href}>${name}</a>`
    : html`<${Id} id=${webhook ?? to} href=${href} />`;
}

/** A delivery with its attempts and its event. */
export function DeliveryPage({ id }) {
  const { api, session } = useDashboard();
  const path = `v1/deliveries/${encodeURIComponent(id)}`;
  const loaded = useLoad((signal) => api.get(path, { signal }), id);
  const names = useWebhookNames(true);
  useWhileVisible(loaded.reload, REFRESH_MS, loaded.data?.state === 'waiting');
  return html`<${PageHeader} title=${`Delivery ${id}`} id=${id}>
      ${isAdmin(session) && loaded.data && html`<${Replay} one=${loaded.data} onReplayed=${loaded.reload} />`}
    <//>
    <${Loadable} loaded=${loaded}>
      ${(/** @type {DeliveryDetails} */ one) => html`
        <section aria-label="Summary"><${Facts} of=${factsOf(one, names)} /></section>
        <div class="columns">
          <section aria-labelledby="responses">
            <h2 id="responses">Responses</h2>
            ${one.attempts.length === 0 && html`<p class="muted">No attempts.</p>`}
            <ol class="attempts">
              ${one.attempts.map((attempt, index) => html`<${Attempt} key=${index} attempt=${attempt} />`)}
            </ol>
          </section>
          <section aria-labelledby="request">
            <h2 id="request">Request body</h2>
            <${Command}>${JSON.stringify(one.event, null, 2)}<//>
          </section>
        </div>
      `}
    <//>`;
}

/**
 * @param {DeliveryDetails} one
 * @param {Map<string, string>} names
 * @returns {[string, any][]}
 */
function factsOf(one, names) {
  const { submission_id, dead_reason, next_at, ended_at } = one;
  return [
    ['State', html`<${Badge} state=${stateOf(one)} />`],
    ['Dead because', dead_reason && REASONS[dead_reason]],
    ['Event', one.event_type],
    [
      'Submission',
      submission_id &&
        html`<${IdLink} id=${submission_id} href=${hrefTo('submissions', submission_id)} />`,
    ],
    ['To', html`<${Destination} to=${one.destination} names=${names} Id=${IdLink} />`],
    ['Created', html`<${Time} at=${one.created_at} />`],
    ['Next attempt', next_at && html`<${Time} at=${next_at} />`],
    ['Ended', ended_at && html`<${Time} at=${ended_at} />`],
  ];
}

/** @param {{ attempt: DeliveryDetails['attempts'][number] }} props */
function Attempt({ attempt }) {
  return html`<li>
    <${Time} at=${attempt.at} /> · ${attempt.duration_ms} ms · ${attempt.error === null ? `${attempt.http_status === null ? '' : `HTTP ${attempt.http_status} · `}delivered` : html`<span class="wrong">${attempt.error}</span>`}
    ${attempt.response && html`<${Command}>${attempt.response}<//>`}
  </li>`;
}

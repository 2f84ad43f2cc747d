import { useState } from 'preact/hooks';
import { withQuery } from '../data/api.js';
import { useDashboard } from '../data/context.js';
import { useLoad, useWhileVisible } from '../data/use-load.js';
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
import { html } from '../parts/html.js';
import { Pager } from '../parts/pager.js';
import { Empty, Loadable } from '../parts/parts.js';
import { hrefTo, parseRoute } from '../router.js';
import { mayChangeNotifications } from '../session/access.js';
import { BulkReplay } from './bulk-replay.js';
import { DeliveryTable } from './delivery-table.js';
import { TYPES } from './event-types.js';

const PER_PAGE = 50;
const REFRESH_MS = 2_000;
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
      ${(/** @type {any} */ { deliveries, next_cursor: next }) => html`
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
    <p>${state === 'dead' ? 'Dead letters are deliveries whose attempts are used up. They can be replayed.' : 'Each event becomes a delivery per matching destination. Ended deliveries are kept for deliveries.keep_s.'}</p>
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

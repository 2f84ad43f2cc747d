import { useState } from 'preact/hooks';
import { withQuery } from '../data/api.js';
import { useDashboard } from '../data/context.js';
import { useLoad, useWhileVisible } from '../data/use-load.js';
import { html } from '../parts/html.js';
import { Pager } from '../parts/pager.js';
import { Empty, Loadable } from '../parts/parts.js';
import { hrefTo } from '../router.js';
import { DeliveryTable } from './delivery-table.js';

const PER_PAGE = 50;
const REFRESH_MS = 2_000;
const STATES = ['waiting', 'delivered', 'dead', 'discarded'];

/**
 * A page of deliveries: all, or those of one webhook.
 * @param {{ webhookId?: string, version?: number, state: string, cursor: string, hrefOf: (query: Record<string, string | undefined>) => string }} props
 *   `version`: changes when there may be new ones; `hrefOf`: the address of this log with another state or page
 */
export function DeliveryLog({ webhookId, version, state, cursor, hrefOf }) {
  const { api } = useDashboard();
  const path = withQuery('v1/deliveries', { webhook_id: webhookId, state, cursor, limit: PER_PAGE });
  const loaded = useLoad((signal) => api.get(path, { signal }), path, version);
  const [isReplayed, setIsReplayed] = useState(false);
  const isWaiting = loaded.data?.deliveries.some((/** @type {any} */ one) => one.state === 'waiting');
  useWhileVisible(loaded.refresh, REFRESH_MS, isWaiting === true || isReplayed);
  const to = (/** @type {string | undefined} */ place) => hrefOf({ state, cursor: place });
  const replayed = () => {
    setIsReplayed(true);
    loaded.reload();
  };
  return html`<div class="filter">
      <label>
        <span>State</span>
        <select
          onChange=${(/** @type {any} */ event) => {
            location.hash = hrefOf({ state: event.target.value });
          }}
        >
          <option value="" selected=${state === ''}>all</option>
          ${STATES.map((name) => html`<option key=${name} value=${name} selected=${name === state}>${name}</option>`)}
        </select>
      </label>
      <button type="button" onClick=${loaded.reload}>Refresh</button>
    </div>
    <${Loadable} loaded=${loaded}>
      ${(/** @type {any} */ { deliveries, next_cursor }) =>
        deliveries.length === 0
          ? html`<${Empty} title=${state ? `No delivery is ${state}.` : 'No deliveries yet.'}>
              <p>${state === 'dead' ? 'Dead letters are deliveries whose attempts are used up. They can be replayed.' : 'Each event becomes a delivery per matching destination. Ended deliveries are kept for deliveries.keep_s.'}</p>
            <//>`
          : html`<${DeliveryTable}
                deliveries=${deliveries}
                caption=${`Deliveries${state ? ` that are ${state}` : ''}, newest first`}
                hidden=${webhookId === undefined ? [] : ['destination']}
                onReplayed=${replayed}
              />
              <${Pager} key=${state} cursor=${cursor} next=${next_cursor} to=${to} />`}
    <//>`;
}

/** @param {{ query: URLSearchParams }} props */
export function DeliveriesPage({ query }) {
  return html`<h1 tabindex="-1">Deliveries</h1>
    <${DeliveryLog}
      state=${query.get('state') ?? ''}
      cursor=${query.get('cursor') ?? ''}
      hrefOf=${(/** @type {Record<string, string | undefined>} */ query) => hrefTo('deliveries', undefined, query)}
    />`;
}

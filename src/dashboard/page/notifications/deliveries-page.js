import { html } from '../parts/html.js';
import { hrefTo } from '../router.js';
import { DeliveryLog } from './delivery-log.js';

/** @param {{ query: URLSearchParams }} props */
export function DeliveriesPage({ query }) {
  return html`<h1 tabindex="-1">Deliveries</h1>
    <${DeliveryLog}
      state=${query.get('state') ?? ''}
      cursor=${query.get('cursor') ?? ''}
      hrefOf=${(/** @type {Record<string, string | undefined>} */ query) => hrefTo('deliveries', undefined, query)}
    />`;
}

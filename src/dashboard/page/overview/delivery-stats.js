import { useDashboard } from '../data/context.js';
import { count } from '../parts/format.js';
import { html } from '../parts/html.js';
import { Facts, Time } from '../parts/parts.js';
import { hrefTo } from '../router.js';
import { maySeeNotifications } from '../session/access.js';

/** @param {{ deliveries: { waiting: number, dead: number, oldest_waiting_at: string | null } }} props */
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

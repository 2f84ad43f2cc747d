import { useEffect, useState } from 'preact/hooks';
import { Api, withQuery } from '../data/api.js';
import { html } from '../parts/html.js';
import { useRoute } from '../router.js';
import { isAdmin } from './access.js';

/** @typedef {import('../data/context.js').Session} Session */

/** The tenant that the address of the page names; undefined: none. */
export function tenantInAddress() {
  return new URLSearchParams(location.search).get('tenant') || undefined;
}

/** Whether a session belongs to no tenant and may act in each. @param {Session} session */
export function maySelectTenant(session) {
  return session.tenant === null && isAdmin(session);
}

/**
 * Selects the tenant in which an admin without a tenant acts. Shown if the server has tenants. The selection is in the address, and
 * the page is loaded again, so that nothing of another tenant remains on it.
 */
export function TenantSelection() {
  const { page } = useRoute();
  const selected = tenantInAddress() ?? '';
  const [names, setNames] = useState(/** @type {readonly string[]} */ ([]));
  useEffect(() => {
    // Without the list, only the present selection can be removed.
    new Api().get('v1/tenants').then(
      ({ tenants }) => setNames(tenants.map((/** @type {{ name: string }} */ { name }) => name)),
      () => undefined,
    );
  }, []);
  const options = new Set([...(selected === '' ? [] : [selected]), ...names]);
  if (options.size === 0) return null;
  const select = (/** @type {any} */ { target }) =>
    location.assign(`${withQuery(location.pathname, { tenant: target.value })}#/${page === 'overview' ? '' : page}`);
  return html`<label class="tenant">
    <span>Tenant</span>
    <select value=${selected} onChange=${select}>
      <option value="">None</option>
      ${[...options].sort().map((name) => html`<option key=${name} value=${name}>${name}</option>`)}
    </select>
  </label>`;
}

import { withQuery } from '../data/api.js';
import { count, text } from '../parts/format.js';
import { html } from '../parts/html.js';
import { Empty, Failure } from '../parts/parts.js';
import { Table } from '../parts/table.js';
import { useRequest } from './use-request.js';

/** Fields of the interface. The lookup of a single user shows all fields of an upstream. */
const COLUMNS = ['id', 'name', 'email', 'app_id', 'assigned_wallet'].map((title) => ({
  title,
  cell: (/** @type {Record<string, unknown>} */ user) =>
    user[title] == null ? html`<span class="muted">–</span>` : text(user[title]),
}));

/** All users, up to a limit. @param {{ api: import('../data/api.js').Api }} props */
export function UserListing({ api }) {
  const { isBusy, result, error, submit } = useRequest(({ limit }) =>
    api.get(withQuery('admin/get_all_users', { limit })),
  );
  return html`<section aria-labelledby="listing">
    <h2 id="listing">List users</h2>
    <form class="filter" onSubmit=${submit}>
      <label><span>Limit</span><input name="limit" type="number" min="1" max="1000" value="50" required /></label>
      <button class="primary" disabled=${isBusy}>List</button>
    </form>
    <div aria-live="polite">
      ${error && html`<${Failure} error=${error} />`}
      ${result?.length === 0 && html`<${Empty} title="The upstream has no users." />`}
      ${result?.length > 0 && html`<${Table} caption=${`${count(result.length)} users, in the upstream's order`} columns=${COLUMNS} rows=${result} />`}
    </div>
  </section>`;
}

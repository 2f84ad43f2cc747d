import { withQuery } from '../data/api.js';
import { count, text } from '../parts/format.js';
import { html } from '../parts/html.js';
import { Empty, Failure } from '../parts/parts.js';
import { useRequest } from './use-request.js';

/** Fields of the interface. The lookup of a single user shows all fields of an upstream. */
const COLUMNS = ['id', 'name', 'email', 'app_id', 'assigned_wallet'];

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
      ${result?.length > 0 && html`<${Table} users=${result} />`}
    </div>
  </section>`;
}

/** @param {{ users: readonly Record<string, unknown>[] }} props */
function Table({ users }) {
  const caption = `${count(users.length)} users, in the upstream's order`;
  return html`<div class="wide" tabindex="0" role="region" aria-label=${caption}>
    <table>
      <caption>${caption}</caption>
      <thead>
        <tr>${COLUMNS.map((name) => html`<th key=${name} scope="col">${name}</th>`)}</tr>
      </thead>
      <tbody>
        ${users.map(
          (user, index) => html`<tr key=${index}>
            ${COLUMNS.map((name) => html`<td key=${name}>${user[name] == null ? html`<span class="muted">–</span>` : text(user[name])}</td>`)}
          </tr>`,
        )}
      </tbody>
    </table>
  </div>`;
}

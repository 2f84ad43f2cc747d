import { useMemo, useState } from 'preact/hooks';
import { Api, withQuery } from '../data/api.js';
import { mayListUsers, useDashboard } from '../data/context.js';
import { count, text } from '../parts/format.js';
import { html } from '../parts/html.js';
import { Empty, Facts, Failure } from '../parts/parts.js';
import { Table } from '../parts/table.js';

/** Users of the upstream. */
export function UsersPage() {
  const dashboard = useDashboard();
  const { session } = dashboard;
  const isForwarded = session.users_bearer === 'upstream';
  const [token, setToken] = useState('');
  // A rejected upstream token does not end the session of the dashboard.
  const api = useMemo(
    () => (isForwarded ? new Api({ token }) : dashboard.api),
    [isForwarded, token, dashboard],
  );
  return html`<h1 tabindex="-1">Users</h1>
    <p class="muted">The users of the upstream. Every lookup is recorded in the audit log.</p>
    ${isForwarded && html`<${UpstreamToken} token=${token} onChange=${setToken} />`}
    <div class="columns">
      <${UserLookup} api=${api} />
      ${mayListUsers(session) && html`<${UserListing} api=${api} />`}
    </div>`;
}

/** @param {{ token: string, onChange: (token: string) => void }} props */
function UpstreamToken({ token, onChange }) {
  return html`<form class="filter" onSubmit=${(/** @type {Event} */ event) => event.preventDefault()}>
    <label>
      <span>Upstream token</span>
      <input
        type="password"
        autocomplete="off"
        value=${token}
        aria-describedby="upstream-token"
        onInput=${(/** @type {any} */ event) => onChange(event.target.value.trim())}
      />
    </label>
    <p id="upstream-token" class="muted">
      This server passes lookups on with the caller's own token of the upstream, not with one of dawatch. It is kept nowhere.
    </p>
  </form>`;
}

/** One user, by name and address. @param {{ api: import('../data/api.js').Api }} props */
function UserLookup({ api }) {
  const { isBusy, result, error, submit } = useRequest(({ name, email }) =>
    api.get(withQuery('users/get_user', { name, email })),
  );
  return html`<section aria-labelledby="lookup">
    <h2 id="lookup">Look up a user</h2>
    <form class="filter" onSubmit=${submit}>
      <label><span>Name</span><input name="name" required maxlength="200" autocomplete="off" /></label>
      <label><span>E-mail address</span><input name="email" type="email" required maxlength="254" autocomplete="off" /></label>
      <button class="primary" disabled=${isBusy}>Look up</button>
    </form>
    <div aria-live="polite">
      ${error && html`<${Failure} error=${error} />`}
      ${result && html`<${Facts} of=${Object.entries(result).map(([name, value]) => [name, html`<span class="value">${text(value)}</span>`])} />`}
    </div>
  </section>`;
}

/** Fields of the interface. The lookup of a single user shows all fields of an upstream. */
const COLUMNS = ['id', 'name', 'email', 'app_id', 'assigned_wallet'].map((title) => ({
  title,
  cell: (/** @type {Record<string, unknown>} */ user) =>
    user[title] == null ? html`<span class="muted">–</span>` : text(user[title]),
}));

/** All users, up to a limit. @param {{ api: import('../data/api.js').Api }} props */
function UserListing({ api }) {
  const { isBusy, result, error, submit } = useRequest(({ limit }) =>
    api.get(withQuery('admin/get_all_users', { limit })),
  );
  return html`<section aria-labelledby="listing">
    <h2 id="listing">List users</h2>
    <form class="filter" onSubmit=${submit}>
      <label><span>Limit</span><input name="limit" type="number" min="1" max="1000" defaultValue="50" required /></label>
      <button class="primary" disabled=${isBusy}>List</button>
    </form>
    <div aria-live="polite">
      ${error && html`<${Failure} error=${error} />`}
      ${result?.length === 0 && html`<${Empty} title="The upstream has no users." />`}
      ${result?.length > 0 && html`<${Table} caption=${`${count(result.length)} users, in the upstream's order`} columns=${COLUMNS} rows=${result} />`}
    </div>
  </section>`;
}

/**
 * Sends one request per submitted form and keeps its result until the next one.
 * @template T
 * @param {(fields: Record<string, string>) => Promise<T>} request
 */
function useRequest(request) {
  const [state, setState] = useState(
    /** @type {{ isBusy: boolean, result?: T, error?: Error }} */
    ({ isBusy: false }),
  );
  const submit = async (/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    const form = new FormData(/** @type {HTMLFormElement} */ (event.currentTarget));
    const fields = Object.fromEntries([...form].map(([name, value]) => [name, String(value)]));
    setState({ isBusy: true });
    try {
      setState({ isBusy: false, result: await request(fields) });
    } catch (error) {
      setState({ isBusy: false, error: error instanceof Error ? error : new Error(String(error)) });
    }
  };
  return { ...state, submit };
}

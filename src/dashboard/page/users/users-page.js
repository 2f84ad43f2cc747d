import { useMemo, useState } from 'preact/hooks';
import { Api, withQuery } from '../data/api.js';
import { mayListUsers, useDashboard } from '../data/context.js';
import { textOf, useForm } from '../parts/form.js';
import { count, text } from '../parts/format.js';
import { html } from '../parts/html.js';
import { Command, Empty, Facts, PageHeader } from '../parts/parts.js';
import { Table } from '../parts/table.js';

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
  return html`<${PageHeader} title="Users" about="The users of the upstream. Every lookup is recorded in the audit log." />
    ${isForwarded && html`<${UpstreamToken} token=${token} onChange=${setToken} />`}
    <${Lookups} api=${api} mayList=${mayListUsers(session)} />`;
}

function UpstreamToken({ token, onChange }) {
  return html`<form class="inline" onSubmit=${(event) => event.preventDefault()}>
    <label>
      <span>Upstream token</span>
      <input
        type="password"
        autocomplete="off"
        value=${token}
        aria-describedby="upstream-token"
        onInput=${(event) => onChange(event.target.value.trim())}
      />
    </label>
    <p id="upstream-token" class="muted">
      This server passes lookups on with the caller's own token of the upstream, not with one of dawatch. It is kept nowhere.
    </p>
  </form>`;
}

function Lookups({ api, mayList }) {
  const [user, setUser] = useState(/** @type {Record<string, unknown> | undefined} */ (undefined));
  const [users, setUsers] = useState(/** @type {readonly object[] | undefined} */ (undefined));
  const lookUp = async (form) => {
    setUser(undefined);
    const query = { name: textOf(form, 'name'), email: textOf(form, 'email') };
    setUser(await api.get(withQuery('users/get_user', query)));
  };
  const list = async (form) => {
    setUsers(undefined);
    setUsers(await api.get(withQuery('admin/get_all_users', { limit: textOf(form, 'limit') })));
  };
  return html`<div class="bar">
      <${Request} label="Look up" send=${lookUp}>
        <input name="name" required maxlength="200" autocomplete="off" aria-label="Name" placeholder="Name" />
        <input name="email" type="email" required maxlength="254" autocomplete="off" aria-label="E-mail address" placeholder="E-mail address" />
      <//>
      ${
        mayList &&
        html`<${Request} label="List users" send=${list}>
          <label class="check"><span>Limit</span><input name="limit" type="number" min="1" max="1000" defaultValue="50" required /></label>
        <//>`
      }
    </div>
    ${user && html`<section aria-label="User"><${Facts} of=${Object.entries(user).map(([name, value]) => [name, html`<span class="value">${text(value)}</span>`])} /></section>`}
    ${
      users?.length
        ? html`<${Table} caption=${`${count(users.length)} users, in the upstream's order`} columns=${COLUMNS} rows=${users} />`
        : !user && html`<${Nothing} isListed=${users !== undefined} mayList=${mayList} />`
    }`;
}

function Nothing({ isListed, mayList }) {
  return html`<${Empty} title=${isListed ? 'The upstream has no users.' : 'No user looked up yet.'}>
    <p>Look up a user here or from a terminal:</p>
    <${Command}>${mayList ? 'npx dawatch users list --limit 50' : 'npx dawatch users get --name "Ada Example" --email ada@example.com'}<//>
  <//>`;
}

const FIELDS = { name: '', email: '', app_id: 'from-m', assigned_wallet: 'from-l', id: 'from-m' };
const COLUMNS = Object.entries(FIELDS).map(([title, name]) => ({
  title,
  class: name,
  cell: (user) => (user[title] == null ? '–' : text(user[title])),
}));

function Request({ label, send, children }) {
  const { form, submit, isBusy, message } = useForm({ fields: [], send });
  return html`<form class="bar" ref=${form} onSubmit=${submit}>
    ${children}
    <button aria-disabled=${isBusy} aria-busy=${isBusy}>${label}</button>
    <p class="wrong" role="alert">${message}</p>
  </form>`;
}

import { useMemo, useState } from 'preact/hooks';
import { Api } from '../data/api.js';
import { useDashboard } from '../data/context.js';
import { html } from '../parts/html.js';
import { mayListUsers } from '../session/access.js';
import { UserListing } from './user-listing.js';
import { UserLookup } from './user-lookup.js';

/** Users of the upstream. */
export function UsersPage() {
  const dashboard = useDashboard();
  const { session } = dashboard;
  const isForwarded = session.users_bearer === 'upstream';
  const [token, setToken] = useState('');
  // A rejected upstream token does not end the session of the dashboard.
  const api = useMemo(() => (isForwarded ? new Api({ token }) : dashboard.api), [isForwarded, token, dashboard]);
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

import { useState } from 'preact/hooks';
import { withQuery } from '../data/api.js';
import { useDashboard } from '../data/context.js';
import { useLoad } from '../data/use-load.js';
import { html } from '../parts/html.js';
import { Pager } from '../parts/pager.js';
import { Action, Badge, Empty, Loadable, Time } from '../parts/parts.js';
import { Table } from '../parts/table.js';
import { hrefTo } from '../router.js';
import { CreateToken } from './create-token.js';
import { SecretDialog } from './secret-dialog.js';
import { ChangeToken, RotateToken } from './token-dialogs.js';

const PER_PAGE = 100;

/**
 * @typedef {{ id: number, name: string, secret: string }} Issued A token that was created or
 * rotated.
 */

/** The tokens of clients. @param {{ query: URLSearchParams }} props */
export function TokensPage({ query }) {
  const { api } = useDashboard();
  const cursor = query.get('cursor') ?? '';
  const path = withQuery('v1/credentials', { cursor, limit: PER_PAGE });
  const loaded = useLoad((signal) => api.get(path, { signal }), path);
  const [issued, setIssued] = useState(/** @type {Issued | undefined} */ (undefined));
  const onIssued = (/** @type {Issued} */ token) => {
    setIssued(token);
    loaded.reload();
  };
  return html`<h1 tabindex="-1">Tokens</h1>
    <p class="muted">
      The credentials of clients and people. Those of the settings, DAWATCH_API_KEY and DAWATCH_ADMIN_TOKEN, are not listed.
    </p>
    <${CreateToken} onIssued=${onIssued} />
    <${Loadable} loaded=${loaded}>
      ${(/** @type {any} */ { credentials, next_cursor }) => html`
        ${
          credentials.length === 0
            ? html`<${Empty} title="No tokens yet." />`
            : html`<${Table} caption="Tokens, newest first" columns=${columnsOf(loaded.reload, onIssued)} rows=${credentials} />`
        }
        <${Pager} cursor=${cursor} next=${next_cursor} to=${(/** @type {string | undefined} */ place) => hrefTo('tokens', undefined, { cursor: place })} />
      `}
    <//>
    ${issued && html`<${SecretDialog} issued=${issued} onClose=${() => setIssued(undefined)} />`}`;
}

/** @type {Record<string, string>} */
const BADGES = { valid: 'enabled', expired: 'expired', revoked: 'discarded' };

/**
 * @param {() => void} onChanged @param {(token: Issued) => void} onIssued @returns {readonly
 * import('../parts/table.js').Column[]}
 */
function columnsOf(onChanged, onIssued) {
  return [
    {
      title: 'Token',
      cell: ({ id, name, person }) => html`${person ?? name} <span class="muted">${id}</span>`,
    },
    { title: 'Permissions', cell: ({ role, scopes }) => role ?? scopes.join(', ') },
    {
      title: 'State',
      cell: ({ state }) => html`<${Badge} state=${BADGES[state] ?? state} label=${state} />`,
    },
    { title: 'Created', cell: ({ created_at }) => html`<${Time} at=${created_at} />` },
    { title: 'Last used', cell: (token) => html`<${LastUse} token=${token} />` },
    {
      title: 'Expires',
      cell: ({ expires_at }) =>
        expires_at === null ? 'never' : html`<${Time} at=${expires_at} />`,
    },
    {
      title: 'Actions',
      cell: (token) =>
        token.state === 'revoked'
          ? html`<span class="muted">revoked <${Time} at=${token.revoked_at} /></span>
              ${token.person !== null && html`<${Readmit} token=${token} onChanged=${onChanged} />`}`
          : html`<${Actions} key=${token.id} token=${token} onChanged=${onChanged} onIssued=${onIssued} />`,
    },
  ];
}

/**
 * The last use of the token, and of replaced tokens that are still accepted. @param {{ token: any
 * }} props
 */
function LastUse({ token }) {
  return html`${token.last_used_at === null ? 'never' : html`<${Time} at=${token.last_used_at} />`}
    ${token.replaced_secrets.map(
      (
        /** @type {any} */ { valid_until, last_used_at },
      ) => html`<br key=${valid_until} /><span class="muted">
          old token: ${last_used_at === null ? 'not used' : html`used <${Time} at=${last_used_at} />`}, expires <${Time} at=${valid_until} />
        </span>`,
    )}`;
}

/** @param {{ token: any, onChanged: () => void }} props */
function Readmit({ token, onChanged }) {
  const { api } = useDashboard();
  const readmit = async () => {
    await api.post(`v1/credentials/${token.id}/readmit`);
    onChanged();
    return `${token.person} can sign in again.`;
  };
  const consequence = `${token.person} can sign in again at the provider.`;
  return html`<${Action} label="Admit again" name=${`Admit again: ${token.person}`} confirm=${consequence} act=${readmit} />`;
}

/** @param {{ token: any, onChanged: () => void, onIssued: (token: Issued) => void }} props */
function Actions({ token, onChanged, onIssued }) {
  const { api } = useDashboard();
  const revoke = async () => {
    await api.delete(`v1/credentials/${token.id}`);
    onChanged();
    return `The token of ${token.name} is revoked.`;
  };
  const consequence =
    token.person === null
      ? `Every request with the token of ${token.name} is refused from then on. A revoked token cannot be restored.`
      : `The sessions of ${token.person} end, and no further sign-in succeeds until the person is admitted again.`;
  return html`<div class="action">
    ${token.state === 'valid' && token.person === null && html`<${RotateToken} token=${token} onIssued=${onIssued} />`}
    ${token.person === null && html`<${ChangeToken} token=${token} onChanged=${onChanged} />`}
    <${Action} label="Revoke" name=${`Revoke: ${token.name}`} confirm=${consequence} act=${revoke} />
  </div>`;
}

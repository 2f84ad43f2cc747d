import { useState } from 'preact/hooks';
import { useDashboard } from '../data/context.js';
import { ChoiceField, TextField, textOf } from '../parts/form.js';
import { html } from '../parts/html.js';
import { List, useList } from '../parts/list.js';
import { Action, Badge, Command, Empty, PageHeader, Secret, Time } from '../parts/parts.js';

/** @import { Credential, CredentialWithSecret } from '../../../client/api.ts' */

/** The tokens of clients. @param {{ query: URLSearchParams }} props */
export function TokensPage({ query }) {
  const list = useList('v1/credentials', { query });
  const [issued, setIssued] = useState(/** @type {CredentialWithSecret | undefined} */ (undefined));
  const { reload } = list.loaded;
  const onIssued = (/** @type {CredentialWithSecret} */ token) => {
    setIssued(token);
    reload();
  };
  return html`<${PageHeader} title="Tokens" about="DAWATCH_SERVICE_KEY and DAWATCH_ADMIN_TOKEN of the settings are not listed."><${CreateToken} onIssued=${onIssued} /><//>
    ${
      issued &&
      html`<${Secret}
        key=${issued.secret}
        title=${`Token of ${issued.name}`}
        text="Save it now. It cannot be shown again, because only its hash is stored."
        value=${issued.secret}
        name="the token"
        onClose=${() => setIssued(undefined)}
      />`
    }
    <${List}
      list=${list}
      of="credentials"
      caption="Tokens, newest first"
      columns=${columnsOf(reload)}
      empty=${html`<${Empty} title="No tokens yet."><p>Give each client a token of its own, here or in the folder of the server:</p><${Command}>npx dawatch token create --role service --name billing<//><//>`}
    />`;
}

/** @type {Record<string, string>} */
const BADGES = { valid: 'enabled', expired: 'expired', revoked: 'discarded' };

/**
 * @param {() => void} onChanged
 * @returns {readonly import('../parts/table.js').Column<Credential>[]}
 */
function columnsOf(onChanged) {
  const time = (at) => (at === null ? 'never' : html`<${Time} at=${at} />`);
  return [
    {
      title: 'Token',
      cell: ({ id, name, person }) => html`${person ?? name} <span class="muted">${id}</span>`,
    },
    { title: 'Role', width: 6, cell: ({ role }) => role },
    {
      title: 'State',
      width: 6.5,
      cell: ({ state }) => html`<${Badge} state=${BADGES[state] ?? state} label=${state} />`,
    },
    { title: 'Created', width: 7, class: 'from-l', cell: ({ created_at }) => time(created_at) },
    { title: 'Last used', class: 'from-m', cell: ({ last_used_at }) => time(last_used_at) },
    { title: 'Expires', class: 'from-l', cell: ({ expires_at }) => time(expires_at) },
    {
      title: 'Actions',
      class: 'end',
      width: 11,
      cell: (token) =>
        token.state === 'revoked'
          ? html`<span class="muted">revoked <${Time} at=${token.revoked_at} /></span>`
          : html`<${Revoke} key=${token.id} token=${token} onChanged=${onChanged} />`,
    },
  ];
}

/** @param {{ token: Credential, onChanged: () => void }} props */
function Revoke({ token, onChanged }) {
  const { api } = useDashboard();
  const revoke = async () => {
    await api.delete(`v1/credentials/${token.id}`);
    onChanged();
    return `The token of ${token.name} is revoked.`;
  };
  const consequence =
    token.person === null
      ? `Every request with the token of ${token.name} is refused from then on. A revoked token cannot be restored.`
      : `The sessions of ${token.person} end, and no further sign-in succeeds.`;
  return html`<${Action} label="Revoke" name=${`Revoke: ${token.name}`} confirm=${consequence} act=${revoke} />`;
}

const ROLES = {
  'service: submissions': 'service',
  'operator: reads submissions, webhooks, deliveries, channels and mutes': 'operator',
  'user: lookups of single users': 'user',
  'admin: everything': 'admin',
};

/** @param {{ onIssued: (token: CredentialWithSecret) => void }} props */
function CreateToken({ onIssued }) {
  const { api } = useDashboard();
  const create = async (form) => {
    const [name, role] = [textOf(form, 'name'), textOf(form, 'role')];
    onIssued(await api.post('v1/credentials', { name, role, expires_at: expiryOf(form) }));
    return '';
  };
  const fields = ['name', 'role', 'expires_at'];
  return html`<${Action} label="Create a token" submit="Create" title="Create a token" fields=${fields} isPrimary act=${create}>
    ${(errorOf) => html`
      <${TextField} label="Name of the client" name="name" error=${errorOf('name')} />
      <${ChoiceField} label="Role" name="role" choices=${ROLES} error=${errorOf('role')} />
      <${ChoiceField} label="Expires" name="expires" choices=${EXPIRIES} error=${errorOf('expires_at')} />
    `}
  <//>`;
}

const DAY_MS = 86_400_000;
const EXPIRIES = { never: 'never', 'in 30 days': 30, 'in 90 days': 90, 'in a year': 365 };

/** Returns the chosen expiry as ISO 8601; null: never. */
function expiryOf(form) {
  const choice = textOf(form, 'expires');
  return choice === 'never' ? null : new Date(Date.now() + Number(choice) * DAY_MS).toISOString();
}

import { useState } from 'preact/hooks';
import { useDashboard } from '../data/context.js';
import { ChoiceField, TextField, textOf } from '../parts/form.js';
import { html } from '../parts/html.js';
import { List, useList } from '../parts/list.js';
import { Action, Badge, Command, Empty, PageHeader, Secret, Time } from '../parts/parts.js';
import { hrefTo } from '../router.js';

/** @import { Credential, CredentialWithSecret, Scope } from '../../../client/api.ts' */
/** @import { ErrorOf } from '../parts/form.js' */

/** The tokens of clients. @param {{ query: URLSearchParams }} props */
export function TokensPage({ query }) {
  const list = useList('v1/credentials', {
    query,
    limit: 100,
    hrefOf: (given) => hrefTo('tokens', undefined, given),
  });
  const [issued, setIssued] = useState(/** @type {CredentialWithSecret | undefined} */ (undefined));
  const { reload } = list.loaded;
  const onIssued = (/** @type {CredentialWithSecret} */ token) => {
    setIssued(token);
    reload();
  };
  return html`<${PageHeader} title="Tokens" about="DAWATCH_API_KEY and DAWATCH_ADMIN_TOKEN of the settings are not listed."><${CreateToken} onIssued=${onIssued} /><//>
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
      columns=${columnsOf(reload, onIssued)}
      empty=${html`<${Empty} title="No tokens yet."><p>Give each client a token of its own, here or in the folder of the server:</p><${Command}>npx dawatch token create --role service --name billing<//><//>`}
    />`;
}

/** @type {Record<string, string>} */
const BADGES = { valid: 'enabled', expired: 'expired', revoked: 'discarded' };

/**
 * @param {() => void} onChanged @param {(token: CredentialWithSecret) => void} onIssued @returns {readonly
 * import('../parts/table.js').Column<Credential>[]}
 */
function columnsOf(onChanged, onIssued) {
  return [
    {
      title: 'Token',
      cell: ({ id, name, person }) => html`${person ?? name} <span class="muted">${id}</span>`,
    },
    {
      title: 'Permissions',
      class: 'at-middle',
      cell: ({ role, scopes }) => role ?? scopes.join(', '),
    },
    {
      title: 'State',
      width: 6.5,
      class: 'at-state',
      cell: ({ state }) => html`<${Badge} state=${BADGES[state] ?? state} label=${state} />`,
    },
    {
      title: 'Created',
      width: 7,
      class: 'from-l',
      cell: ({ created_at }) => html`<${Time} at=${created_at} />`,
    },
    {
      title: 'Last used',
      class: 'from-m',
      cell: ({ last_used_at, replaced_secrets: old }) =>
        times(
          last_used_at,
          old.map((one) => one.last_used_at),
        ),
    },
    {
      title: 'Expires',
      class: 'from-l',
      cell: ({ expires_at, replaced_secrets: old }) =>
        times(
          expires_at,
          old.map((one) => one.valid_until),
        ),
    },
    {
      title: 'Actions',
      class: 'at-below',
      width: 15,
      cell: (token) =>
        token.state === 'revoked'
          ? html`<span class="muted">revoked <${Time} at=${token.revoked_at} /></span>
              ${token.person !== null && html`<${Readmit} token=${token} onChanged=${onChanged} />`}`
          : html`<${Actions} key=${token.id} token=${token} onChanged=${onChanged} onIssued=${onIssued} />`,
    },
  ];
}

/**
 * A time of the token, and those of replaced tokens that are still accepted.
 * @param {string | null} time @param {readonly (string | null)[]} old
 */
function times(time, old) {
  return [time, ...old].map(
    (at, index) => html`<span key=${index} class=${index > 0 ? 'muted' : ''}>
      ${index > 0 && ' · old: '}${at === null ? 'never' : html`<${Time} at=${at} />`}
    </span>`,
  );
}

/** @param {{ token: Credential, onChanged: () => void }} props */
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

/** @param {{ token: Credential, onChanged: () => void, onIssued: (token: CredentialWithSecret) => void }} props */
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

const OWN = 'own';
/** Roles by their descriptions. */
const ROLES = {
  'service: submissions': 'service',
  'operator: reads submissions, webhooks, deliveries, channels and mutes': 'operator',
  'user: lookups of single users': 'user',
  'admin: everything': 'admin',
  'scopes of its own': OWN,
};
/** @type {readonly Scope[]} */
const SCOPES = [
  'submissions:read',
  'submissions:write',
  'users:read',
  'operations:read',
  'webhooks:write',
];
/** @param {{ onIssued: (token: CredentialWithSecret) => void }} props */
function CreateToken({ onIssued }) {
  const { api } = useDashboard();
  const create = async (/** @type {FormData} */ form) => {
    const role = textOf(form, 'role');
    const issued = await api.post('v1/credentials', {
      name: textOf(form, 'name'),
      expires_at: expiryOf(form),
      ...(role === OWN ? { scopes: form.getAll('scope') } : { role }),
    });
    onIssued(issued);
    return '';
  };
  const fields = ['name', 'role', 'scopes', 'expires_at'];
  return html`<${Action} label="Create a token" title="Create a token" submit="Create" fields=${fields} isPrimary act=${create}>
    ${(/** @type {ErrorOf} */ errorOf) => html`<${NewTokenFields} errorOf=${errorOf} />`}
  <//>`;
}

/** @param {{ errorOf: ErrorOf }} props */
function NewTokenFields({ errorOf }) {
  const [role, setRole] = useState('service');
  return html`<${NameField} error=${errorOf('name')} />
    <${ChoiceField} label="Permissions" name="role" choices=${ROLES} value=${role} onChange=${setRole} error=${errorOf('role')} />
    ${
      role === OWN &&
      html`<fieldset class=${errorOf('scopes') ? 'invalid' : ''}>
        <legend>Scopes</legend>
        ${errorOf('scopes') && html`<p class="wrong">${errorOf('scopes')}</p>`}
        <div class="choices">
          ${SCOPES.map((scope) => html`<label key=${scope}><input type="checkbox" name="scope" value=${scope} /> ${scope}</label>`)}
        </div>
      </fieldset>`
    }
    <${ChoiceField} label="Expires" name="expires" choices=${EXPIRIES} error=${errorOf('expires_at')} />`;
}

/** @param {{ value?: string, error: string | undefined }} props */
function NameField({ value, error }) {
  return html`<${TextField} label="Name of the client" name="name" value=${value} error=${error} />`;
}

const DAY_MS = 86_400_000;
/** Days by the text of their choice. */
const EXPIRIES = { never: 'never', 'in 30 days': 30, 'in 90 days': 90, 'in a year': 365 };

/**
 * Returns the chosen expiry as ISO 8601; null: never; undefined: unchanged. @param {FormData} form
 */
function expiryOf(form) {
  const choice = textOf(form, 'expires');
  if (choice === 'never') return null;
  return choice ? new Date(Date.now() + Number(choice) * DAY_MS).toISOString() : undefined;
}

const HOUR_S = 3_600;
const OVERLAPS = { 'a day': 24 * HOUR_S, 'an hour': HOUR_S, 'a week': 168 * HOUR_S, 'no time': 0 };

/**
 * Replaces the secret, with a choice of the overlap. @param {{ token: Credential, onIssued: (token:
 * CredentialWithSecret) => void }} props
 */
function RotateToken({ token, onIssued }) {
  const { api } = useDashboard();
  const rotate = async (/** @type {FormData} */ form) => {
    const body = { overlap_s: Number(form.get('overlap_s')) };
    onIssued(await api.post(`v1/credentials/${token.id}/rotate`, body));
    return '';
  };
  return html`<${Action} label="Rotate" name=${`Rotate: ${token.name}`} title=${`Rotate the token of ${token.name}?`} act=${rotate}>
    <p>The client gets a new token. Earlier tokens are accepted no longer than the time that you choose.</p>
    <${ChoiceField} label="The old token is also accepted for" name="overlap_s" choices=${OVERLAPS} />
  <//>`;
}

/** Changes name and expiry. @param {{ token: Credential, onChanged: () => void }} props */
function ChangeToken({ token, onChanged }) {
  const { api } = useDashboard();
  const change = async (/** @type {FormData} */ form) => {
    const body = { name: textOf(form, 'name'), expires_at: expiryOf(form) };
    await api.patch(`v1/credentials/${token.id}`, body);
    onChanged();
    return '';
  };
  const title = `Change the token of ${token.name}`;
  return html`<${Action} label="Change" name=${`Change: ${token.name}`} title=${title} submit="Save" fields=${['name', 'expires_at']} act=${change}>
    ${(/** @type {ErrorOf} */ errorOf) => html`
      <${NameField} value=${token.name} error=${errorOf('name')} />
      <${ChoiceField} label="Expires" name="expires" choices=${{ unchanged: '', ...EXPIRIES }} error=${errorOf('expires_at')} />
    `}
  <//>`;
}

import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { withQuery } from '../data/api.js';
import { useDashboard, useLoad } from '../data/context.js';
import { ConfirmDialog } from '../parts/form.js';
import { html } from '../parts/html.js';
import {
  Action,
  Badge,
  Command,
  CopyButton,
  Empty,
  Failure,
  Loadable,
  Time,
} from '../parts/parts.js';
import { Pager, Table } from '../parts/table.js';
import { hrefTo } from '../router.js';

/** @import { Credential, CredentialPage, CredentialWithSecret, Scope } from '../../../client/api.ts' */

const PER_PAGE = 100;

/** The tokens of clients. @param {{ query: URLSearchParams }} props */
export function TokensPage({ query }) {
  const { api } = useDashboard();
  const cursor = query.get('cursor') ?? '';
  const path = withQuery('v1/credentials', { cursor, limit: PER_PAGE });
  const loaded = useLoad((signal) => api.get(path, { signal }), path);
  const [issued, setIssued] = useState(/** @type {CredentialWithSecret | undefined} */ (undefined));
  const onIssued = (/** @type {CredentialWithSecret} */ token) => {
    setIssued(token);
    loaded.reload();
  };
  return html`<h1 tabindex="-1">Tokens</h1>
    <p class="muted">
      The credentials of clients and people. Those of the settings, DAWATCH_API_KEY and DAWATCH_ADMIN_TOKEN, are not listed.
    </p>
    <${CreateToken} onIssued=${onIssued} />
    <${Loadable} loaded=${loaded}>
      ${(/** @type {CredentialPage} */ { credentials, next_cursor }) => html`
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
 * @param {() => void} onChanged @param {(token: CredentialWithSecret) => void} onIssued @returns {readonly
 * import('../parts/table.js').Column<Credential>[]}
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
 * The last use of the token, and of replaced tokens that are still accepted. @param {{ token:
 * Credential }} props
 */
function LastUse({ token }) {
  return html`${token.last_used_at === null ? 'never' : html`<${Time} at=${token.last_used_at} />`}
    ${token.replaced_secrets.map(
      ({ valid_until, last_used_at }) => html`<br key=${valid_until} /><span class="muted">
          old token: ${last_used_at === null ? 'not used' : html`used <${Time} at=${last_used_at} />`}, expires <${Time} at=${valid_until} />
        </span>`,
    )}`;
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

/** @type {Record<string, string>} */
const ROLES = {
  service: 'service: submissions',
  operator: 'operator: reads submissions, webhooks, deliveries, channels and mutes',
  user: 'user: lookups of single users',
  admin: 'admin: everything',
};
/** @type {readonly Scope[]} */
const SCOPES = [
  'submissions:read',
  'submissions:write',
  'users:read',
  'operations:read',
  'webhooks:write',
];
const OWN = 'own';

/** @param {{ onIssued: (token: CredentialWithSecret) => void }} props */
function CreateToken({ onIssued }) {
  const { api } = useDashboard();
  const [role, setRole] = useState('service');
  const [isBusy, setIsBusy] = useState(false);
  const [error, setError] = useState(/** @type {Error | undefined} */ (undefined));
  const submit = async (/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    if (isBusy) return;
    const form = /** @type {HTMLFormElement} */ (event.currentTarget);
    const fields = new FormData(form);
    setIsBusy(true);
    setError(undefined);
    try {
      const issued = await api.post('v1/credentials', {
        name: fields.get('name'),
        expires_at: expiryOf(String(fields.get('expires'))),
        ...(role === OWN ? { scopes: fields.getAll('scope') } : { role }),
      });
      form.reset();
      setRole('service');
      onIssued(issued);
    } catch (thrown) {
      setError(thrown instanceof Error ? thrown : new Error(String(thrown)));
    } finally {
      setIsBusy(false);
    }
  };
  return html`<section aria-labelledby="create">
    <h2 id="create">Create a token</h2>
    <form class="filter" onSubmit=${submit}>
      <label><span>Name of the client</span><input name="name" required maxlength="64" autocomplete="off" /></label>
      <label>
        <span>Permissions</span>
        <select onChange=${(/** @type {any} */ event) => setRole(event.target.value)}>
          ${Object.entries(ROLES).map(([name, text]) => html`<option key=${name} value=${name} selected=${name === role}>${text}</option>`)}
          <option value=${OWN} selected=${role === OWN}>scopes of its own</option>
        </select>
      </label>
      ${
        role === OWN &&
        html`<fieldset>
          <legend>Scopes</legend>
          ${SCOPES.map((scope) => html`<label key=${scope} class="check"><input type="checkbox" name="scope" value=${scope} /> ${scope}</label>`)}
        </fieldset>`
      }
      <${ExpirySelect} />
      <button class="primary" aria-disabled=${isBusy} aria-busy=${isBusy}>Create</button>
    </form>
    ${error && html`<${Failure} error=${error} />`}
  </section>`;
}

const DAY_MS = 86_400_000;

/** Days by the text of their choice. */
const CHOICES = { 'in 30 days': 30, 'in 90 days': 90, 'in a year': 365 };

/** Choices of an expiry. @param {{ first?: string }} props `first`: a choice before the others */
function ExpirySelect({ first }) {
  const names = [...(first === undefined ? [] : [first]), 'never', ...Object.keys(CHOICES)];
  return html`<label>
    <span>Expires</span>
    <select name="expires">
      ${names.map((name) => html`<option key=${name}>${name}</option>`)}
    </select>
  </label>`;
}

/**
 * Returns the time of a choice as ISO 8601; null: never; undefined: the first choice. @param
 * {string} choice
 */
function expiryOf(choice) {
  if (choice === 'never') return null;
  const days = CHOICES[/** @type {keyof typeof CHOICES} */ (choice)];
  return days === undefined ? undefined : new Date(Date.now() + days * DAY_MS).toISOString();
}

/**
 * Shows a new token once. @param {{ issued: CredentialWithSecret, onClose: () => void
 * }} props
 */
function SecretDialog({ issued, onClose }) {
  const dialog = useRef(/** @type {HTMLDialogElement | null} */ (null));
  // Focuses synchronously, so that the next key reaches the focused element.
  useLayoutEffect(() => dialog.current?.showModal(), []);
  return html`<dialog
    ref=${dialog}
    aria-labelledby="issued"
    closedby="none"
    onClose=${onClose}
    onCancel=${(/** @type {Event} */ event) => event.preventDefault()}
  >
    <h2 id="issued">Token of ${issued.name}</h2>
    <p>Save it now. It cannot be shown again, because only its hash is stored.</p>
    <${Command}>${issued.secret}<//>
    <div class="actions">
      <${CopyButton} text=${issued.secret} name="the token" />
      <button type="button" class="primary" autofocus onClick=${() => dialog.current?.close()}>I have stored it</button>
    </div>
  </dialog>`;
}

const HOUR_S = 3_600;
const OVERLAPS = { 'a day': 24 * HOUR_S, 'an hour': HOUR_S, 'a week': 168 * HOUR_S, 'no time': 0 };

/**
 * Replaces the secret, with a choice of the overlap. @param {{ token: Credential, onIssued: (token:
 * CredentialWithSecret) => void }} props
 */
function RotateToken({ token, onIssued }) {
  const { api } = useDashboard();
  const [isOpen, setIsOpen] = useState(false);
  const [overlap, setOverlap] = useState(/** @type {keyof typeof OVERLAPS} */ ('a day'));
  const issued = useRef(/** @type {CredentialWithSecret | undefined} */ (undefined));
  const rotate = async () => {
    issued.current = await api.post(`v1/credentials/${token.id}/rotate`, {
      overlap_s: OVERLAPS[overlap],
    });
  };
  const close = () => {
    setIsOpen(false);
    const made = issued.current;
    issued.current = undefined;
    if (made) onIssued(made);
  };
  return html`<button type="button" aria-label=${`Rotate: ${token.name}`} onClick=${() => setIsOpen(true)}>Rotate</button>
    ${
      isOpen &&
      html`<${ConfirmDialog} title=${`Rotate the token of ${token.name}?`} confirm="Rotate" act=${rotate} onClose=${close}>
        <p>The client gets a new token. Earlier tokens are accepted no longer than the time that you choose.</p>
        <label>
          The old token is also accepted for
          <select onChange=${(/** @type {any} */ event) => setOverlap(event.target.value)}>
            ${Object.keys(OVERLAPS).map((name) => html`<option key=${name} selected=${name === overlap}>${name}</option>`)}
          </select>
        </label>
      <//>`
    }`;
}

const UNCHANGED = 'unchanged';

/** Changes name and expiry. @param {{ token: Credential, onChanged: () => void }} props */
function ChangeToken({ token, onChanged }) {
  const { api } = useDashboard();
  const [isOpen, setIsOpen] = useState(false);
  const fields = useRef(/** @type {HTMLDivElement | null} */ (null));
  const fieldOf = (/** @type {string} */ name) =>
    /** @type {HTMLInputElement | null | undefined} */ (
      fields.current?.querySelector(`[name=${name}]`)
    )?.value ?? '';
  const change = async () => {
    const expires_at = expiryOf(fieldOf('expires'));
    await api.patch(`v1/credentials/${token.id}`, { name: fieldOf('name'), expires_at });
    onChanged();
  };
  return html`<button type="button" aria-label=${`Change: ${token.name}`} onClick=${() => setIsOpen(true)}>Change</button>
    ${
      isOpen &&
      html`<${ConfirmDialog} title=${`Change the token of ${token.name}`} confirm="Save" act=${change} onClose=${() => setIsOpen(false)}>
        <div class="filter" ref=${fields}>
          <label><span>Name of the client</span><input name="name" required maxlength="64" autocomplete="off" defaultValue=${token.name} /></label>
          <${ExpirySelect} first=${UNCHANGED} />
        </div>
      <//>`
    }`;
}

import { useState } from 'preact/hooks';
import { useDashboard } from '../data/context.js';
import { html } from '../parts/html.js';
import { Failure } from '../parts/parts.js';
import { ExpirySelect, expiryOf } from './expiry.js';

/** @type {Record<string, string>} */
const ROLES = {
  service: 'service: submissions',
  operator: 'operator: reads submissions, webhooks, deliveries, channels and mutes',
  user: 'user: lookups of single users',
  admin: 'admin: everything',
};
const SCOPES = [
  'submissions:read',
  'submissions:write',
  'users:read',
  'operations:read',
  'webhooks:write',
];
const OWN = 'own';

/** @param {{ onIssued: (token: import('./tokens-page.js').Issued) => void }} props */
export function CreateToken({ onIssued }) {
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

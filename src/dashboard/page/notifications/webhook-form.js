import { useEffect } from 'preact/hooks';
import { useDashboard } from '../data/context.js';
import { Field, FormEnd, invalidField, textOf, useForm } from '../parts/form.js';
import { html } from '../parts/html.js';
import { EventTypes } from './event-types.js';

const FIELDS = ['url', 'types', 'metadata', 'description', 'signature', 'secret'];

/**
 * Creates a webhook, or changes one. Only changed fields are sent.
 * @param {{ webhook?: any, onSaved: (webhook: any) => void, onCancel: () => void }} props `webhook`: the one to change
 */
export function WebhookForm({ webhook, onSaved, onCancel }) {
  const { api } = useDashboard();
  const form = useForm({
    fields: FIELDS,
    async send(data) {
      const fields = fieldsOf(data);
      if (!webhook) return onSaved(await api.post('v1/webhooks', fields));
      const changed = Object.entries(fields).filter(
        ([name, value]) => !isSame(value, webhook[name]),
      );
      if (changed.length === 0) return onSaved(webhook);
      onSaved(await api.patch(`v1/webhooks/${webhook.id}`, Object.fromEntries(changed)));
    },
  });
  const { errorOf } = form;
  useEffect(() => {
    if (webhook) form.focusFirst();
  }, []);
  const isCallbacks = webhook?.url === null;
  return html`<form class="form" ref=${form.form} onSubmit=${form.submit} novalidate>
    ${
      !isCallbacks &&
      html`<${Field} label="URL" hint="Receives events by POST. https:// and no private address, unless the settings permit others." error=${errorOf('url')}>
        ${(/** @type {any} */ attributes) =>
          html`<input ...${attributes} type="url" name="url" defaultValue=${webhook?.url ?? ''} maxlength="2048" required spellcheck="false" autocomplete="off" />`}
      <//>`
    }
    <${EventTypes} chosen=${webhook?.types ?? ['submission.*']} error=${errorOf('types')} />
    <${Field}
      label="Metadata filter"
      hint=${html`Only events of submissions with these entries, as JSON: <code>{"team": "billing"}</code>. Empty: no filter.`}
      error=${errorOf('metadata')}
    >
      ${(/** @type {any} */ attributes) =>
        html`<textarea ...${attributes} name="metadata" rows="2" spellcheck="false" defaultValue=${webhook?.metadata ? JSON.stringify(webhook.metadata) : ''} />`}
    <//>
    <${Field} label="Description" error=${errorOf('description')}>
      ${(/** @type {any} */ attributes) =>
        html`<input ...${attributes} name="description" defaultValue=${webhook?.description ?? ''} maxlength="200" autocomplete="off" />`}
    <//>
    ${!webhook && html`<${CreationFields} errorOf=${errorOf} />`}
    <${FormEnd} of=${form} label=${webhook ? 'Save' : 'Create webhook'} onCancel=${onCancel} />
  </form>`;
}

/** @param {{ errorOf: (field: string) => string | undefined }} props */
function CreationFields({ errorOf }) {
  return html`<${Field} label="Signature" error=${errorOf('signature')}>
      ${(/** @type {any} */ attributes) => html`<select ...${attributes} name="signature">
        <option value="v1">v1: HMAC-SHA256 with a shared secret</option>
        <option value="v1a">v1a: ed25519, verified with a public key</option>
      </select>`}
    <//>
    <${OwnSecret} error=${errorOf('secret')} />
    <label><input type="checkbox" name="enabled" defaultChecked /> Enabled: it receives events from now on</label>`;
}

/** @param {{ error: string | undefined }} props */
export function OwnSecret({ error }) {
  return html`<${Field}
    label="Own secret (optional)"
    hint=${html`Default: a generated one. <code>whsec_</code> and base64 of 24 to 64 bytes, or for v1a <code>whsk_</code> and base64 of an ed25519 key pair.`}
    error=${error}
  >
    ${(/** @type {any} */ attributes) =>
      html`<input ...${attributes} type="password" name="secret" maxlength="300" autocomplete="off" spellcheck="false" />`}
  <//>`;
}

/**
 * Returns the fields in the form that the server expects, without fields that the form does not
 * have. @param {FormData} form
 */
function fieldsOf(form) {
  const types = form.getAll('types').map(String);
  const secret = textOf(form, 'secret');
  return {
    ...(form.has('url') && { url: textOf(form, 'url') }),
    types,
    metadata: metadataOf(textOf(form, 'metadata')),
    description: textOf(form, 'description'),
    ...(form.has('signature') && {
      signature: textOf(form, 'signature'),
      enabled: form.has('enabled'),
    }),
    ...(secret && { secret }),
  };
}

/** @param {string} json */
function metadataOf(json) {
  if (json === '') return null;
  try {
    return JSON.parse(json);
  } catch {
    throw invalidField('metadata', 'is not valid JSON; write it like {"team": "billing"}');
  }
}

/** @param {unknown} a @param {unknown} b */
function isSame(a, b) {
  const sorted = (/** @type {unknown} */ value) =>
    Array.isArray(value) ? value.toSorted() : value;
  return JSON.stringify(sorted(a)) === JSON.stringify(sorted(b));
}

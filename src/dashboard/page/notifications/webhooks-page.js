import { useEffect, useRef, useState } from 'preact/hooks';
import { withQuery } from '../data/api.js';
import { mayChangeNotifications, useDashboard, useLoad } from '../data/context.js';
import { Field, FormEnd, invalidField, textOf, useForm } from '../parts/form.js';
import { html } from '../parts/html.js';
import { Badge, Command, CopyButton, Empty, Loadable, Time } from '../parts/parts.js';
import { Pager, Table } from '../parts/table.js';
import { hrefTo } from '../router.js';

/** @import { Webhook, WebhookPage as Page, WebhookWithSecret } from '../../../client/api.ts' */

const PER_PAGE = 100;

/** @param {{ query: URLSearchParams }} props */
export function WebhooksPage({ query }) {
  const { api, session } = useDashboard();
  const cursor = query.get('cursor') ?? '';
  const path = withQuery('v1/webhooks', { cursor, limit: PER_PAGE });
  const loaded = useLoad((signal) => api.get(path, { signal }), path);
  return html`<h1 tabindex="-1">Webhooks</h1>
    ${
      mayChangeNotifications(session)
        ? html`<p><a class="button" href=${hrefTo('webhooks', 'new')}>Create a webhook</a></p>`
        : html`<p class="muted">This session cannot change webhooks.</p>`
    }
    <${Loadable} loaded=${loaded}>
      ${(/** @type {Page} */ { webhooks, next_cursor }) => html`
        ${webhooks.length > 0 && html`<${Table} label="Webhooks" caption="Webhooks, newest first" columns=${COLUMNS} rows=${webhooks} />`}
        ${
          cursor === '' &&
          next_cursor === null &&
          webhooks.every(({ url }) => url === null) &&
          html`<${Empty} title="No webhooks yet.">
            <p>Create a webhook to receive events, here or from a terminal:</p>
            <${Command}>npx dawatch webhooks create https://hooks.example.com/dawatch --type 'submission.*'<//>
          <//>`
        }
        <${Pager} cursor=${cursor} next=${next_cursor} to=${(/** @type {string | undefined} */ place) => hrefTo('webhooks', undefined, { cursor: place })} />
      `}
    <//>`;
}

/** The page that creates a webhook, and then shows its secret. */
export function NewWebhook() {
  const { session } = useDashboard();
  const [created, setCreated] = useState(/** @type {WebhookWithSecret | undefined} */ (undefined));
  if (!mayChangeNotifications(session))
    return html`<h1 tabindex="-1">Create a webhook</h1>
      <${Empty} title="This session cannot change webhooks." />`;
  if (created)
    return html`<h1 tabindex="-1">Webhook created</h1>
      <${Secret} webhook=${created} />
      <p><a href=${hrefTo('webhooks', created.id)}>Continue to ${created.id}</a></p>`;
  const cancel = () => location.assign(hrefTo('webhooks'));
  return html`<h1 tabindex="-1">Create a webhook</h1>
    <section aria-label="New webhook"><${WebhookForm} onSaved=${setCreated} onCancel=${cancel} /></section>`;
}

/** @type {readonly import('../parts/table.js').Column<Webhook>[]} */
const COLUMNS = [
  {
    title: 'Webhook',
    cell: ({ id, description }) => html`
      <a class="id" href=${hrefTo('webhooks', id)}>${id}</a>
      ${description && html`<br /><span class="muted">${description}</span>`}
    `,
  },
  {
    title: 'Address',
    cell: ({ url }) =>
      url === null
        ? html`<span class="muted">the callback_url of each submission</span>`
        : html`<span class="id">${url}</span>`,
  },
  { title: 'Events', cell: ({ types }) => types.join(', ') },
  { title: 'State', cell: (webhook) => html`<${WebhookState} webhook=${webhook} />` },
  { title: 'Failing since', cell: ({ failing_since }) => html`<${Time} at=${failing_since} />` },
  { title: 'Created', cell: ({ created_at }) => html`<${Time} at=${created_at} />` },
];

/** @type {Record<string, string>} */
const REASONS = {
  operator: 'by an operator',
  gone: 'receiver returned 410 Gone',
  failing: 'failing for days',
};

/** @param {{ webhook: Webhook }} props */
export function WebhookState({ webhook }) {
  if (webhook.enabled)
    return html`<${Badge} state=${webhook.failing_since ? 'failing' : 'enabled'} />`;
  const reason = webhook.disabled_reason && REASONS[webhook.disabled_reason];
  return html`<${Badge} state="disabled" /> <span class="muted">${reason}</span>`;
}

const FIELDS = ['url', 'types', 'metadata', 'description', 'signature', 'secret'];

/**
 * Creates a webhook, or changes one. Only changed fields are sent.
 * @param {{ webhook?: Webhook, onSaved: (webhook: any) => void, onCancel: () => void }} props `webhook`: the one to change
 */
export function WebhookForm({ webhook, onSaved, onCancel }) {
  const { api } = useDashboard();
  const form = useForm({
    fields: FIELDS,
    async send(data) {
      const fields = fieldsOf(data);
      if (!webhook) return onSaved(await api.post('v1/webhooks', fields));
      const before = new Map(Object.entries(webhook));
      const changed = Object.entries(fields).filter(
        ([name, value]) => !isSame(value, before.get(name)),
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

/** The types of events that a webhook may receive, by family. */
const EVENT_TYPES = {
  submission: [
    'finalized',
    'failing',
    'recovered',
    'failed',
    'unknown',
    'rejected',
    'expired',
    'cancelled',
    'retracked',
    'stuck',
    'corrected',
  ],
  upstream: ['down', 'up', 'unauthorized'],
  alert: ['raised', 'reminder', 'resolved'],
};

const WILDCARDS = ['*', ...Object.keys(EVENT_TYPES).map((family) => `${family}.*`)];
export const TYPES = Object.entries(EVENT_TYPES).flatMap(([family, names]) =>
  names.map((name) => `${family}.${name}`),
);

/**
 * The subscribed types, as checkboxes with the name `types`.
 * @param {{ chosen: readonly string[], error: string | undefined }} props `chosen`: may contain types of a newer server
 */
function EventTypes({ chosen, error }) {
  const others = chosen.filter((type) => !WILDCARDS.includes(type) && !TYPES.includes(type));
  const hasExact = chosen.some((type) => TYPES.includes(type));
  return html`<fieldset class=${error ? 'invalid' : ''} aria-describedby=${error ? 'types-error' : undefined}>
    <legend>Events</legend>
    ${error && html`<p id="types-error" class="wrong">${error}</p>`}
    <${Choices} types=${[...WILDCARDS, ...others]} chosen=${chosen} />
    <details open=${hasExact}>
      <summary>Single types</summary>
      <${Choices} types=${TYPES} chosen=${chosen} />
    </details>
  </fieldset>`;
}

/** @param {{ types: readonly string[], chosen: readonly string[] }} props */
function Choices({ types, chosen }) {
  return html`<div class="choices">
    ${types.map(
      (type) => html`<label key=${type}>
        <input type="checkbox" name="types" value=${type} defaultChecked=${chosen.includes(type)} /> ${type === '*' ? 'all events (*)' : type}
      </label>`,
    )}
  </div>`;
}

/**
 * The secret of a webhook, shown after the request that created it. The server never returns it
 * again.
 * @param {{ webhook: WebhookWithSecret, onClose?: () => void }} props `webhook`: with its secret, which is null for v1a
 */
export function Secret({ webhook, onClose }) {
  const heading = useRef(/** @type {HTMLElement | null} */ (null));
  useEffect(() => heading.current?.focus(), []);
  const { secret, public_keys: keys } = webhook;
  return html`<section class="secret" aria-labelledby="secret">
    <h2 id="secret" tabindex="-1" ref=${heading}>${secret === null ? 'Public key of the receiver' : 'Secret of the receiver'}</h2>
    <p>
      ${
        secret === null
          ? 'The receiver verifies signatures with this key.'
          : 'Copy it now: it is not shown again. The receiver verifies signatures with it.'
      }
    </p>
    <${Command}>${secret ?? keys[0]}<//>
    <p><${CopyButton} text=${secret ?? keys[0]} name=${secret === null ? 'the public key' : 'the secret'} /></p>
    ${onClose && html`<button type="button" onClick=${onClose}>I have stored it</button>`}
  </section>`;
}

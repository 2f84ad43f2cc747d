import { useState } from 'preact/hooks';
import { isAdmin, useDashboard } from '../data/context.js';
import { EVENT_TYPES } from '../data/feed.js';
import { Field, jsonOf, TextField, textOf } from '../parts/form.js';
import { count, duration, percent } from '../parts/format.js';
import { html } from '../parts/html.js';
import { List, useList } from '../parts/list.js';
import {
  Action,
  Badge,
  Command,
  CopiedId,
  Empty,
  PageHeader,
  Secret,
  Time,
} from '../parts/parts.js';
import { hrefTo } from '../router.js';

/** @import { Webhook, WebhookWithSecret } from '../../../client/api.ts' */

export function WebhooksPage({ query }) {
  const { api, session } = useDashboard();
  const list = useList('v1/webhooks', { query });
  const mayChange = isAdmin(session);
  const [created, setCreated] = useState(/** @type {WebhookWithSecret | undefined} */ (undefined));
  const create = async (form) => {
    setCreated(await api.post('v1/webhooks', fieldsOf(form)));
    list.loaded.reload();
    return 'The webhook is created.';
  };
  /** @type {{ webhooks?: readonly Webhook[], next_cursor?: string | null }} */
  const { webhooks = [], next_cursor: next } = list.loaded.data ?? {};
  return html`<${PageHeader} title="Webhooks" about=${!mayChange && 'This session cannot change webhooks.'}>
      ${
        mayChange &&
        html`<${Action} label="Create a webhook" title="Create a webhook" submit="Create webhook" fields=${[...WEBHOOK_FIELDS, 'secret']} isPrimary act=${create}>
          ${(errorOf) => html`<${WebhookFields} errorOf=${errorOf} />
            <${OwnSecret} error=${errorOf('secret')} />
            <label><input type="checkbox" name="enabled" defaultChecked /> Enabled: it receives events from now on</label>`}
        <//>`
      }
    <//>
    ${
      created &&
      html`<${WebhookSecret} webhook=${created} onClose=${() => setCreated(undefined)}>
        <a href=${hrefTo('webhooks', created.id)}>Continue to ${created.id}</a>
      <//>`
    }
    <${List} list=${list} of="webhooks" label="Webhooks" caption="Webhooks, newest first" columns=${COLUMNS} />
    ${
      next === null &&
      list.cursor === '' &&
      webhooks.every(({ url }) => url === null) &&
      html`<${Empty} title="No webhooks yet.">
        <p>Create a webhook to receive events, here or from a terminal:</p>
        <${CreateCommand} />
      <//>`
    }`;
}

export function CreateCommand() {
  return html`<${Command}>npx dawatch webhooks create https://hooks.example.com/dawatch --type 'submission.*'<//>`;
}

/** @type {readonly import('../parts/table.js').Column<Webhook>[]} */
const COLUMNS = [
  {
    title: 'Webhook',
    class: 'wraps',
    cell: ({ id, description }) =>
      description
        ? html`<a href=${hrefTo('webhooks', id)} title=${id}>${description}</a>`
        : html`<${CopiedId} id=${id} href=${hrefTo('webhooks', id)} />`,
  },
  {
    title: 'Address',
    class: 'from-m wraps',
    cell: ({ url }) =>
      url === null
        ? html`<span class="muted">set per submission</span>`
        : html`<span class="id">${url}</span>`,
  },
  { title: 'Events', class: 'from-l wraps', cell: ({ types }) => types.join(', ') },
  {
    title: 'State',
    width: 15.5,
    usual: ({ id, enabled, failing_since }) => (enabled && !failing_since ? '' : id),
    cell: (webhook) => html`<${WebhookState} webhook=${webhook} />`,
  },
  {
    title: 'Success in 24 h',
    width: 11,
    class: 'from-m',
    cell: (webhook) => html`<${LastDay} webhook=${webhook} />`,
  },
];

/** @param {{ webhook: Webhook }} props */
export function LastDay({ webhook: { last_day: day } }) {
  if (day === null) return html`<span class="muted">no deliveries</span>`;
  const { attempts, success_rate: rate, response_p95_ms: p95 } = day;
  const total = `${count(attempts)} ${attempts === 1 ? 'attempt' : 'attempts'}`;
  const time = p95 === null ? 'no response' : `p95 ${duration(p95 / 1_000)}`;
  return html`<span title=${`${total} in 24 h`}>${percent(rate)}<span class="muted"> · ${time}</span></span>`;
}

/** @type {Record<string, string>} */
const REASONS = { operator: 'by an operator', gone: 'by 410 Gone', failing: 'failing for days' };

/** @param {{ webhook: Webhook }} props */
export function WebhookState({ webhook }) {
  if (webhook.enabled && webhook.failing_since)
    return html`<${Badge} state="failing" /> <span class="muted">began <${Time} at=${webhook.failing_since} /></span>`;
  if (webhook.enabled) return html`<${Badge} state="enabled" />`;
  const reason = webhook.disabled_reason && REASONS[webhook.disabled_reason];
  return html`<${Badge} state="disabled" /> <span class="muted">${reason}</span>`;
}

export const WEBHOOK_FIELDS = ['url', 'types', 'metadata', 'description', 'headers'];

/** @param {{ webhook?: Webhook, errorOf: (field: string) => any }} props `webhook`: the one to change */
export function WebhookFields({ webhook, errorOf }) {
  return html`
    ${
      webhook?.url !== null &&
      html`<${TextField}
        label="URL"
        name="url"
        type="url"
        value=${webhook?.url}
        hint="Receives events by POST. https:// and no private address, unless the settings permit others."
        error=${errorOf('url')}
      />`
    }
    <${TextField}
      label="Events"
      name="types"
      value=${(webhook?.types ?? ['submission.*']).join(', ')}
      hint=${`${Object.keys(EVENT_TYPES)
        .map((family) => `${family}.*`)
        .join(', ')}, exact types like submission.failed, or * for all.`}
      error=${errorOf('types')}
    />
    <${Field}
      label="Metadata filter"
      hint=${html`Only events of submissions with these entries, as JSON: <code>{"team": "billing"}</code>. Empty: no filter.`}
      error=${errorOf('metadata')}
    >
      ${(attributes) =>
        html`<textarea ...${attributes} name="metadata" rows="2" spellcheck=${false} defaultValue=${webhook?.metadata ? JSON.stringify(webhook.metadata) : ''} />`}
    <//>
    <${TextField} label="Description" name="description" value=${webhook?.description} error=${errorOf('description')} />
    ${
      webhook?.url !== null &&
      html`<${TextField}
        label="Further headers"
        name="headers"
        type="password"
        hint=${html`Sent with every request, as JSON: <code>{"Authorization": "Bearer …"}</code>. Not shown again. Empty: ${webhook?.header_names.length ? `${webhook.header_names.join(', ')} stay. {}: none.` : 'none.'}`}
        error=${errorOf('headers')}
      />`
    }
  `;
}

export function OwnSecret({ error }) {
  return html`<${TextField}
    label="Own secret (optional)"
    name="secret"
    type="password"
    hint=${html`Default: a generated one. <code>whsec_</code> and base64 of 24 to 64 bytes.`}
    error=${error}
  />`;
}

/** In the form that the server expects, without fields that the form does not have. */
function fieldsOf(form) {
  const secret = textOf(form, 'secret');
  const headers = jsonOf(form, 'headers');
  return {
    ...(form.has('url') && { url: textOf(form, 'url') }),
    types: textOf(form, 'types')
      .split(/[\s,]+/)
      .filter(Boolean),
    metadata: jsonOf(form, 'metadata'),
    description: textOf(form, 'description'),
    ...(headers !== null && { headers }),
    ...(form.has('secret') && { enabled: form.has('enabled') }),
    ...(secret && { secret }),
  };
}

/** The fields that differ from the webhook. @param {FormData} form @param {Webhook} webhook */
export function changedFields(form, webhook) {
  const sorted = (value) => JSON.stringify(Array.isArray(value) ? value.toSorted() : value);
  const before = new Map(Object.entries(webhook));
  const changed = Object.entries(fieldsOf(form)).filter(
    ([name, value]) => sorted(value) !== sorted(before.get(name)),
  );
  return Object.fromEntries(changed);
}

/** @param {{ webhook: WebhookWithSecret, onClose: () => void, children?: any }} props */
export function WebhookSecret({ webhook: { secret }, onClose, children }) {
  return html`<${Secret}
    title="Secret of the receiver"
    text="Copy it now: it is not shown again. The receiver verifies signatures with it."
    value=${secret}
    name="the secret"
    onClose=${onClose}
  >
    ${children}
  <//>`;
}

import { useState } from 'preact/hooks';
import { withQuery } from '../data/api.js';
import { useDashboard } from '../data/context.js';
import { useLoad } from '../data/use-load.js';
import { html } from '../parts/html.js';
import { Pager } from '../parts/pager.js';
import { Badge, Command, Empty, Loadable, Time } from '../parts/parts.js';
import { Table } from '../parts/table.js';
import { hrefTo } from '../router.js';
import { mayChangeNotifications } from '../session/access.js';
import { Secret } from './secret.js';
import { WebhookForm } from './webhook-form.js';

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
      ${(/** @type {any} */ { webhooks, next_cursor }) => html`
        ${webhooks.length > 0 && html`<${Table} label="Webhooks" caption="Webhooks, newest first" columns=${COLUMNS} rows=${webhooks} />`}
        ${
          cursor === '' &&
          next_cursor === null &&
          webhooks.every((/** @type {any} */ { url }) => url === null) &&
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
  const [created, setCreated] = useState(/** @type {any} */ (undefined));
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

/** @type {readonly import('../parts/table.js').Column[]} */
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

/** @param {{ webhook: any }} props */
export function WebhookState({ webhook }) {
  if (webhook.enabled)
    return html`<${Badge} state=${webhook.failing_since ? 'failing' : 'enabled'} />`;
  const reason = REASONS[webhook.disabled_reason];
  return html`<${Badge} state="disabled" /> <span class="muted">${reason}</span>`;
}

import { withQuery } from '../data/api.js';
import { useDashboard } from '../data/context.js';
import { useLoad } from '../data/use-load.js';
import { html } from '../parts/html.js';
import { Pager } from '../parts/pager.js';
import { Badge, Command, Empty, Loadable, Time } from '../parts/parts.js';
import { hrefTo } from '../router.js';

const PER_PAGE = 100;

/** @param {{ query: URLSearchParams }} props */
export function WebhooksPage({ query }) {
  const { api } = useDashboard();
  const cursor = query.get('cursor') ?? '';
  const path = withQuery('v1/webhooks', { cursor, limit: PER_PAGE });
  const loaded = useLoad((signal) => api.get(path, { signal }), path);
  return html`<h1 tabindex="-1">Webhooks</h1>
    <${Loadable} loaded=${loaded}>
      ${(/** @type {any} */ { webhooks, next_cursor }) => html`
        ${webhooks.length > 0 && html`<${WebhookTable} webhooks=${webhooks} />`}
        ${
          webhooks.every((/** @type {any} */ { url }) => url === null) &&
          html`<${Empty} title="No webhooks yet.">
            <p>Create a webhook to receive events:</p>
            <${Command}>npx dawatch webhooks create https://hooks.example.com/dawatch --type 'submission.*'<//>
          <//>`
        }
        <${Pager} cursor=${cursor} next=${next_cursor} to=${(/** @type {string | undefined} */ place) => hrefTo('webhooks', undefined, { cursor: place })} />
      `}
    <//>`;
}

/** @param {{ webhooks: readonly any[] }} props */
function WebhookTable({ webhooks }) {
  return html`<div class="wide" tabindex="0" role="region" aria-label="Webhooks">
    <table>
      <caption>Webhooks, newest first</caption>
      <thead>
        <tr>
          <th scope="col">Webhook</th>
          <th scope="col">Address</th>
          <th scope="col">Events</th>
          <th scope="col">State</th>
          <th scope="col">Failing since</th>
          <th scope="col">Created</th>
        </tr>
      </thead>
      <tbody>
        ${webhooks.map(
          (one) => html`<tr key=${one.id}>
            <th scope="row">
              <a class="id" href=${hrefTo('webhooks', one.id)}>${one.id}</a>
              ${one.description && html`<br /><span class="muted">${one.description}</span>`}
            </th>
            <td class="id">${one.url ?? html`<span class="muted">the callback_url of each submission</span>`}</td>
            <td>${one.types.join(', ')}</td>
            <td><${WebhookState} webhook=${one} /></td>
            <td><${Time} at=${one.failing_since} /></td>
            <td><${Time} at=${one.created_at} /></td>
          </tr>`,
        )}
      </tbody>
    </table>
  </div>`;
}

/** @type {Record<string, string>} */
const REASONS = { operator: 'by an operator', gone: 'receiver returned 410 Gone', failing: 'failing for days' };

/** @param {{ webhook: any }} props */
export function WebhookState({ webhook }) {
  if (webhook.enabled) return html`<${Badge} state=${webhook.failing_since ? 'failing' : 'enabled'} />`;
  const reason = REASONS[webhook.disabled_reason];
  return html`<${Badge} state="disabled" /> <span class="muted">${reason}</span>`;
}

import { useState } from 'preact/hooks';
import { ApiError } from '../data/api.js';
import { useDashboard } from '../data/context.js';
import { useLoad } from '../data/use-load.js';
import { count, text } from '../parts/format.js';
import { html } from '../parts/html.js';
import { Action, Empty, Facts, Loadable, Time } from '../parts/parts.js';
import { hrefTo } from '../router.js';
import { mayChangeNotifications } from '../session/access.js';
import { DeliveryLog } from './delivery-log.js';
import { WebhookState } from './webhooks-page.js';

/** One webhook and its log. @param {{ id: string, query: URLSearchParams }} props */
export function WebhookPage({ id, query }) {
  const { api } = useDashboard();
  const [sent, setSent] = useState(0);
  const loaded = useLoad((signal) => api.get(`v1/webhooks/${encodeURIComponent(id)}`, { signal }), id);
  if (loaded.error instanceof ApiError && [400, 404].includes(loaded.error.status))
    return html`<h1 tabindex="-1" class="id">${id}</h1>
      <${Empty} title="Webhook not found."><p><a href=${hrefTo('webhooks')}>All webhooks</a></p><//>`;
  return html`<h1 tabindex="-1" class="id">${id}</h1>
    <${Loadable} loaded=${loaded}>${(/** @type {any} */ webhook) => html`<${Details} webhook=${webhook} setWebhook=${loaded.setData} onSent=${() => setSent(sent + 1)} />`}<//>
    <section aria-labelledby="log">
      <h2 id="log">Delivery log</h2>
      <${DeliveryLog}
        webhookId=${id}
        version=${sent}
        state=${query.get('state') ?? ''}
        cursor=${query.get('cursor') ?? ''}
        hrefOf=${(/** @type {Record<string, string | undefined>} */ query) => hrefTo('webhooks', id, query)}
      />
    </section>`;
}

/** @param {{ webhook: any, setWebhook: (change: (webhook: any) => any) => void, onSent: () => void }} props */
function Details({ webhook, setWebhook, onSent }) {
  const { api, session } = useDashboard();
  const { id, enabled } = webhook;
  const test = async () => {
    const { id: delivery } = await api.post(`v1/webhooks/${id}/test`);
    onSent();
    return `Delivery ${delivery} carries the test event.`;
  };
  const toggle = async () => {
    const changed = await api.patch(`v1/webhooks/${id}`, { enabled: !enabled });
    setWebhook(() => changed);
    onSent();
    return changed.enabled ? 'The webhook receives events again.' : 'The webhook no longer receives events.';
  };
  const disabling = 'The webhook will receive no events, and its waiting deliveries become dead letters. Disable it?';
  const facts = [
    ['Address', webhook.url ?? 'the callback_url of each submission'],
    ['Events', webhook.types.join(', ')],
    ['Metadata filter', webhook.metadata && text(webhook.metadata)],
    ['Description', webhook.description || null],
    ['Signature', webhook.signature],
    ['State', html`<${WebhookState} webhook=${webhook} />`],
    ['Failing since', html`<${Time} at=${webhook.failing_since} />`],
    ['Created', html`<${Time} at=${webhook.created_at} />`],
  ];
  return html`<section aria-label="Summary">
    <${Facts} of=${facts} />
    ${
      mayChangeNotifications(session) &&
      html`<div class="actions">
        ${webhook.url !== null && enabled && html`<${Action} label="Send test event" act=${test} />`}
        <${Action} key="toggle" label=${enabled ? 'Disable' : 'Enable'} confirm=${enabled ? disabling : undefined} act=${toggle} />
        ${enabled && html`<${ReplayDead} destination=${`webhook:${id}`} onReplayed=${onSent} />`}
      </div>`
    }
  </section>`;
}

const HOUR_MS = 3_600_000;
const SPANS = { 'the last hour': HOUR_MS, 'the last day': 24 * HOUR_MS, 'the last week': 168 * HOUR_MS };

/** Sends every dead letter of a destination again, and what it missed while it was disabled. @param {{ destination: string, onReplayed: () => void }} props */
function ReplayDead({ destination, onReplayed }) {
  const { api } = useDashboard();
  const [span, setSpan] = useState(/** @type {keyof typeof SPANS} */ ('the last day'));
  const replay = async () => {
    const since = new Date(Date.now() - SPANS[span]).toISOString();
    const { replayed } = await api.post('v1/deliveries/replay', { destination, since });
    onReplayed();
    return replayed === 0
      ? `Nothing of ${span} is left to be replayed.`
      : `${count(replayed)} of ${span} wait to be sent again.`;
  };
  return html`<span class="action">
    <label>
      Dead letters and missed events of
      <select onChange=${(/** @type {any} */ event) => setSpan(event.target.value)}>
        ${Object.keys(SPANS).map((name) => html`<option key=${name} selected=${name === span}>${name}</option>`)}
      </select>
    </label>
    <${Action} label="Replay them" name="Replay them: dead letters and missed events" act=${replay} />
  </span>`;
}

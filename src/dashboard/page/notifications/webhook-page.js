import { useState } from 'preact/hooks';
import { ApiError } from '../data/api.js';
import { isAdmin, useDashboard, useLoad, useWhileVisible } from '../data/context.js';
import { ChoiceField, TextField, textOf } from '../parts/form.js';
import { text } from '../parts/format.js';
import { html } from '../parts/html.js';
import { Action, Empty, Facts, Loadable, PageHeader, Time } from '../parts/parts.js';
import { hrefTo } from '../router.js';
import { resultOf } from './channels-page.js';
import { DeliveryLog, Failures } from './deliveries-page.js';
import {
  changedFields,
  LastDay,
  OwnSecret,
  WEBHOOK_FIELDS,
  WebhookFields,
  WebhookSecret,
  WebhookState,
} from './webhooks-page.js';

/** @import { Webhook, WebhookDetails, WebhookWithSecret } from '../../../client/api.ts' */

/** A webhook is disabled without an action here if its receiver returns 410 or fails for days. */
const REFRESH_MS = 10_000;

export function WebhookPage({ id, query }) {
  const { api } = useDashboard();
  const [sent, setSent] = useState(0);
  const path = `v1/webhooks/${encodeURIComponent(id)}`;
  const loaded = useLoad((signal) => api.get(path, { signal }), id);
  useWhileVisible(loaded.reload, REFRESH_MS);
  const onChanged = () => {
    setSent(sent + 1);
    loaded.reload();
  };
  if (loaded.error instanceof ApiError && [400, 404].includes(loaded.error.status))
    return html`<${PageHeader} title=${id} id=${id} />
      <${Empty} title="Webhook not found."><p><a href=${hrefTo('webhooks')}>All webhooks</a></p><//>`;
  return html`<${PageHeader} title=${loaded.data?.description || id} id=${id} />
    <${Loadable} loaded=${loaded}>
      ${(
        /** @type {WebhookDetails} */ webhook,
      ) => html`<${Details} webhook=${webhook} onChanged=${onChanged} />
        <${Failures} destination=${`webhook:${id}`} failures=${webhook.failures} onReplayed=${onChanged} />`}
    <//>
    <section aria-labelledby="log">
      <h2 id="log">Delivery log</h2>
      <${DeliveryLog} webhookId=${id} version=${sent} onReplayed=${loaded.reload} query=${query} />
    </section>`;
}

/** @param {{ webhook: Webhook, onChanged: () => void }} props */
function Details({ webhook, onChanged }) {
  const { session } = useDashboard();
  const [rotated, setRotated] = useState(/** @type {WebhookWithSecret | undefined} */ (undefined));
  const onRotated = (changed) => {
    setRotated(changed);
    onChanged();
  };
  const mayChange = isAdmin(session);
  return html`${rotated && html`<${WebhookSecret} webhook=${rotated} onClose=${() => setRotated(undefined)} />`}
    <section aria-label="Summary">
      <${Facts} of=${factsOf(webhook)} />
      ${
        mayChange
          ? html`<${Actions} webhook=${webhook} onChanged=${onChanged} onRotated=${onRotated} />`
          : html`<p class="muted">This session cannot change webhooks.</p>`
      }
    </section>`;
}

/** @param {Webhook} webhook @returns {[string, any][]} */
function factsOf(webhook) {
  return [
    ['State', html`<${WebhookState} webhook=${webhook} />`],
    ['Success in 24 h', html`<${LastDay} webhook=${webhook} />`],
    ['Address', webhook.url ?? 'the callback_url of each submission'],
    ['Events', webhook.types.join(', ')],
    ['Metadata filter', webhook.metadata && text(webhook.metadata)],
    ['Further headers', webhook.header_names.join(', ') || null],
    ['Created', html`<${Time} at=${webhook.created_at} />`],
  ];
}

/**
 * @param {{ webhook: Webhook, onChanged: () => void, onRotated: (webhook: WebhookWithSecret) => void
 * }} props
 */
function Actions({ webhook, onChanged, onRotated }) {
  const { api } = useDashboard();
  const { id, url, enabled } = webhook;
  const path = `v1/webhooks/${id}`;
  /** Callbacks, which have no URL of their own, are tested with an address. */
  const test = async (form) => {
    const body = { url: textOf(form, 'url') };
    const delivery = await (url === null
      ? api.post('v1/callbacks/test', body)
      : api.post(`${path}/test`));
    return await resultOf(api, delivery).finally(onChanged);
  };
  const edit = async (form) => {
    await api.patch(path, changedFields(form, webhook));
    onChanged();
    return 'The webhook is saved.';
  };
  const toggle = async () => {
    const changed = await api.patch(path, { enabled: !enabled });
    onChanged();
    return changed.enabled
      ? 'The webhook receives events again.'
      : 'The webhook no longer receives events.';
  };
  const remove = async () => {
    await api.delete(path);
    location.hash = hrefTo('webhooks');
    return 'The webhook is deleted.';
  };
  const disabling =
    'The webhook will receive no events, and its waiting deliveries become dead letters.';
  const deleting = 'Its waiting deliveries and dead letters are discarded. This cannot be undone.';
  return html`<div class="actions">
    ${
      url === null
        ? html`<${Action} key="test" label="Test a callback" title="Test a callback" submit="Send test event" fields=${['url']} act=${test}>
            ${(errorOf) => html`<${TextField} label="Callback address" name="url" type="url" hint="Receives a test event that is signed with the secret of the callbacks." error=${errorOf('url')} />`}
          <//>`
        : html`<${Action} key="test" label="Send test event" isDisabled=${!enabled} act=${test} />`
    }
    <${Action} key="edit" label="Edit" title="Edit the webhook" submit="Save" fields=${WEBHOOK_FIELDS} act=${edit}>
      ${(errorOf) => html`<${WebhookFields} webhook=${webhook} errorOf=${errorOf} />`}
    <//>
    <${Rotation} id=${id} onRotated=${onRotated} />
    <${Action} key="toggle" label=${enabled ? 'Disable' : 'Enable'} confirm=${enabled ? disabling : undefined} act=${toggle} />
    ${url !== null && html`<${Action} key="delete" label="Delete" name="Delete this webhook" confirm=${deleting} act=${remove} />`}
  </div>`;
}

const OVERLAPS = {
  'no longer': 0,
  'for an hour': 3_600,
  'for a day': 86_400,
  'for a week': 604_800,
};

/** @param {{ id: string, onRotated: (webhook: WebhookWithSecret) => void }} props */
function Rotation({ id, onRotated }) {
  const { api } = useDashboard();
  const rotate = async (form) => {
    const secret = form.get('secret');
    const body = { keep_old_s: Number(form.get('keep_old_s')), ...(secret && { secret }) };
    onRotated(await api.post(`v1/webhooks/${id}/rotate`, body));
    return '';
  };
  return html`<${Action} label="Rotate secret" title="Rotate the secret" submit="Rotate" fields=${['keep_old_s', 'secret']} act=${rotate}>
    ${(errorOf) => html`
      <${ChoiceField}
        label="The old secret also signs"
        name="keep_old_s"
        choices=${OVERLAPS}
        value=${OVERLAPS['for a day']}
        hint="Until then the receiver accepts both, so that it can switch."
        error=${errorOf('keep_old_s')}
      />
      <${OwnSecret} error=${errorOf('secret')} />
    `}
  <//>`;
}

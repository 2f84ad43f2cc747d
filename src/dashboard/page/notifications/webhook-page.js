import { useEffect, useRef, useState } from 'preact/hooks';
import { ApiError } from '../data/api.js';
import { mayChangeNotifications, useDashboard, useLoad, useWhileVisible } from '../data/context.js';
import { Field, FormEnd, textOf, useForm } from '../parts/form.js';
import { text } from '../parts/format.js';
import { html } from '../parts/html.js';
import { Action, CopyButton, Empty, Facts, Loadable, Time } from '../parts/parts.js';
import { hrefTo } from '../router.js';
import { CallbackTest, resultOf } from './channels-page.js';
import { DeliveryLog } from './deliveries-page.js';
import { NewWebhook, OwnSecret, Secret, WebhookForm, WebhookState } from './webhooks-page.js';

/** @import { Webhook, WebhookWithSecret } from '../../../client/api.ts' */

/** The id of the page that creates a webhook. */
const NEW = 'new';
/** A webhook is disabled without an action here if its receiver returns 410 or fails for days. */
const REFRESH_MS = 10_000;

/** One webhook and its log. @param {{ id: string, query: URLSearchParams }} props */
export function WebhookPage({ id, query }) {
  return id === NEW ? html`<${NewWebhook} />` : html`<${OneWebhook} id=${id} query=${query} />`;
}

/** @param {{ id: string, query: URLSearchParams }} props */
function OneWebhook({ id, query }) {
  const { api } = useDashboard();
  const [sent, setSent] = useState(0);
  const loaded = useLoad(
    (signal) => api.get(`v1/webhooks/${encodeURIComponent(id)}`, { signal }),
    id,
  );
  useWhileVisible(loaded.refresh, REFRESH_MS);
  const attempted = () => {
    setSent(sent + 1);
    loaded.reload();
  };
  if (loaded.error instanceof ApiError && [400, 404].includes(loaded.error.status))
    return html`<h1 tabindex="-1" class="id">${id}</h1>
      <${Empty} title="Webhook not found."><p><a href=${hrefTo('webhooks')}>All webhooks</a></p><//>`;
  return html`<div class="title">
      <h1 tabindex="-1" class="id">${id}</h1>
      <${CopyButton} text=${id} name="the id" />
    </div>
    <${Loadable} loaded=${loaded}>
      ${(/** @type {Webhook} */ webhook) => html`<${Details} webhook=${webhook} setWebhook=${(/** @type {Webhook} */ changed) => loaded.setData(() => changed)} onSent=${attempted} />`}
    <//>
    <section aria-labelledby="log">
      <h2 id="log">Delivery log</h2>
      <${DeliveryLog}
        webhookId=${id}
        version=${sent}
        onReplayed=${loaded.refresh}
        query=${query}
        hrefOf=${(/** @type {Record<string, string | undefined>} */ given) => hrefTo('webhooks', id, given)}
      />
    </section>`;
}

/** @param {{ webhook: Webhook, setWebhook: (webhook: Webhook) => void, onSent: () => void }} props */
function Details({ webhook, setWebhook, onSent }) {
  const { announce, session } = useDashboard();
  const [open, setOpen] = useState(/** @type {'edit' | 'rotate' | undefined} */ (undefined));
  const [rotated, setRotated] = useState(/** @type {WebhookWithSecret | undefined} */ (undefined));
  const mayChange = mayChangeNotifications(session);
  const close = () => setOpen(undefined);
  // The focused button disappears when a form opens or closes.
  const section = useRef(/** @type {HTMLElement | null} */ (null));
  const opened = useRef(open);
  useEffect(() => {
    if (open === undefined && opened.current && document.activeElement === document.body)
      /** @type {HTMLElement | null | undefined} */ (
        section.current?.querySelector(`[value="${opened.current}"]`)
      )?.focus();
    opened.current = open;
  }, [open]);
  const save = (/** @type {Webhook} */ changed) => {
    setWebhook(changed);
    close();
    announce('The webhook is saved.');
  };
  const rotate = (/** @type {WebhookWithSecret} */ changed) => {
    const { secret: _, ...shown } = changed;
    setWebhook(shown);
    setRotated(changed);
    close();
  };
  return html`${rotated && html`<${Secret} webhook=${rotated} onClose=${() => setRotated(undefined)} />`}
    <section aria-label="Summary" ref=${section}>
      ${
        open === 'edit'
          ? html`<${WebhookForm} webhook=${webhook} onSaved=${save} onCancel=${close} />`
          : html`<${Facts} of=${factsOf(webhook)} />`
      }
      ${open === 'rotate' && html`<${Rotation} id=${webhook.id} onRotated=${rotate} onCancel=${close} />`}
      ${open === undefined && mayChange && html`<${Actions} webhook=${webhook} setWebhook=${setWebhook} onSent=${onSent} setOpen=${setOpen} />`}
      ${!mayChange && html`<p class="muted">This session cannot change webhooks.</p>`}
    </section>
    ${
      mayChange &&
      webhook.url === null &&
      html`<section aria-labelledby="callback-test">
        <h2 id="callback-test">Test a callback</h2>
        <${CallbackTest} onSent=${onSent} />
      </section>`
    }`;
}

/** @param {Webhook} webhook @returns {[string, any][]} */
function factsOf(webhook) {
  return [
    ['Address', webhook.url ?? 'the callback_url of each submission'],
    ['Events', webhook.types.join(', ')],
    ['Metadata filter', webhook.metadata && text(webhook.metadata)],
    ['Description', webhook.description || null],
    ['Signature', webhook.signature],
    ['State', html`<${WebhookState} webhook=${webhook} />`],
    ['Failing since', html`<${Time} at=${webhook.failing_since} />`],
    ['Created', html`<${Time} at=${webhook.created_at} />`],
    ...webhook.public_keys.map(
      (key) =>
        /** @type {[string, any]} */ (['Public key', html`<span class="value">${key}</span>`]),
    ),
  ];
}

/**
 * @param {{ webhook: Webhook, setWebhook: (webhook: Webhook) => void, onSent: () => void, setOpen: (form:
 * 'edit' | 'rotate') => void }} props
 */
function Actions({ webhook, setWebhook, onSent, setOpen }) {
  const { api, announce } = useDashboard();
  const { id, url, enabled } = webhook;
  const test = async () => {
    const delivery = await api.post(`v1/webhooks/${id}/test`);
    try {
      return await resultOf(api, delivery);
    } finally {
      onSent();
    }
  };
  const toggle = async () => {
    const changed = await api.patch(`v1/webhooks/${id}`, { enabled: !enabled });
    setWebhook(changed);
    onSent();
    return changed.enabled
      ? 'The webhook receives events again.'
      : 'The webhook no longer receives events.';
  };
  const remove = async () => {
    await api.delete(`v1/webhooks/${id}`);
    location.hash = hrefTo('webhooks');
    const message = 'The webhook is deleted.';
    announce(message);
    return message;
  };
  const disabling =
    'The webhook will receive no events, and its waiting deliveries become dead letters.';
  const deleting = 'Its waiting deliveries and dead letters are discarded. This cannot be undone.';
  return html`<div class="actions">
    ${url !== null && enabled && html`<${Action} label="Send test event" act=${test} />`}
    <button type="button" value="edit" onClick=${() => setOpen('edit')}>Edit</button>
    <button type="button" value="rotate" onClick=${() => setOpen('rotate')}>Rotate secret</button>
    <${Action} key="toggle" label=${enabled ? 'Disable' : 'Enable'} confirm=${enabled ? disabling : undefined} act=${toggle} />
    ${url !== null && html`<${Action} label="Delete" name="Delete this webhook" confirm=${deleting} act=${remove} />`}
  </div>`;
}

const OVERLAPS = {
  'no longer': 0,
  'for an hour': 3_600,
  'for a day': 86_400,
  'for a week': 604_800,
};
const DEFAULT_OVERLAP = 'for a day';

/**
 * Replaces the secret.
 * @param {{ id: string, onRotated: (webhook: WebhookWithSecret) => void, onCancel: () => void }} props
 */
function Rotation({ id, onRotated, onCancel }) {
  const { api } = useDashboard();
  const form = useForm({
    fields: ['keep_old_s', 'secret'],
    async send(data) {
      const secret = textOf(data, 'secret');
      const body = { keep_old_s: Number(data.get('keep_old_s')), ...(secret && { secret }) };
      onRotated(await api.post(`v1/webhooks/${id}/rotate`, body));
    },
  });
  useEffect(form.focusFirst, []);
  return html`<form class="form" ref=${form.form} onSubmit=${form.submit} novalidate aria-label="Rotate the secret">
    <h2>Rotate the secret</h2>
    <${Field} label="The old secret also signs" hint="Until then the receiver accepts both, so that it can switch." error=${form.errorOf('keep_old_s')}>
      ${(/** @type {any} */ attributes) => html`<select ...${attributes} name="keep_old_s">
        ${Object.entries(OVERLAPS).map(([name, seconds]) => html`<option key=${name} value=${seconds} selected=${name === DEFAULT_OVERLAP}>${name}</option>`)}
      </select>`}
    <//>
    <${OwnSecret} error=${form.errorOf('secret')} />
    <${FormEnd} of=${form} label="Rotate" onCancel=${onCancel} />
  </form>`;
}

import { useState } from 'preact/hooks';
import { useDashboard } from '../data/context.js';
import { Field, FormEnd, textOf, useForm } from '../parts/form.js';
import { html } from '../parts/html.js';

/** The server aborts an attempt after 15 s. */
const TIMEOUT_MS = 20_000;
const PAUSE_MS = 200;

/**
 * Waits for the first attempt of a delivery, and returns its result as a text. Rejects if the
 * attempt failed.
 * @param {import('../data/api.js').Api} api @param {{ id: number }} delivery
 */
export async function resultOf(api, { id }) {
  const endsAt = performance.now() + TIMEOUT_MS;
  for (;;) {
    const { state, attempts } = await api.get(`v1/deliveries/${id}`);
    const last = attempts.at(-1);
    if (last?.error === null)
      return `Delivered in ${last.duration_ms} ms${last.http_status ? `: HTTP ${last.http_status}` : ''}.`;
    if (last) throw new Error(`Not delivered: ${last.error}. Delivery ${id} has the details.`);
    if (state !== 'waiting') throw new Error(`Not delivered. Delivery ${id} has the details.`);
    if (performance.now() > endsAt) return `Delivery ${id} waits behind others.`;
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }
}

/**
 * Sends a test event to the address of a callback, signed like every callback. @param {{ onSent: ()
 * => void }} props
 */
export function CallbackTest({ onSent }) {
  const { api, announce } = useDashboard();
  const [message, setMessage] = useState('');
  const form = useForm({
    fields: ['url'],
    async send(data) {
      setMessage('');
      const delivery = await api.post('v1/callbacks/test', { url: textOf(data, 'url') });
      try {
        const text = await resultOf(api, delivery);
        setMessage(text);
        announce(text);
      } finally {
        onSent();
      }
    },
  });
  return html`<form class="form" ref=${form.form} onSubmit=${form.submit} novalidate aria-label="Test a callback">
    <${Field} label="Callback address" hint="Receives a test event that is signed with the secret of the callbacks." error=${form.errorOf('url')}>
      ${(/** @type {any} */ attributes) =>
        html`<input ...${attributes} type="url" name="url" maxlength="2048" required spellcheck="false" autocomplete="off" />`}
    <//>
    <${FormEnd} of=${form} label="Send test event" />
    ${message && html`<p class="message">${message}</p>`}
  </form>`;
}

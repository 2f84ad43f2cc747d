import { useEffect, useId, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { ApiError, messageOf } from '../data/api.js';
import { html } from './html.js';

/**
 * A labelled control with a hint, and with the error of its value.
 * @param {{ label: string, hint?: any, error?: string | undefined, children: (attributes: Record<string, string | undefined>) => any }} props
 *   `children`: returns the control, which gets the attributes
 */
export function Field({ label, hint, error, children }) {
  const id = useId();
  const described = [...(hint ? [`${id}-hint`] : []), ...(error ? [`${id}-error`] : [])].join(' ');
  return html`<div class="field">
    <label for=${id}>${label}</label>
    ${children({ id, 'aria-describedby': described || undefined, 'aria-invalid': error ? 'true' : undefined })}
    ${error && html`<p id=${`${id}-error`} class="wrong">${error}</p>`}
    ${hint && html`<p id=${`${id}-hint`} class="muted">${hint}</p>`}
  </div>`;
}

/**
 * Sends the fields of a form, one request at a time. An error is shown at each field that it names,
 * and moves the focus there.
 * @param {{ fields: readonly string[], send: (form: FormData) => Promise<unknown> }} options `fields`: those that show an error
 */
export function useForm({ fields, send }) {
  const [isBusy, setIsBusy] = useState(false);
  const [error, setError] = useState(/** @type {unknown} */ (undefined));
  const form = useRef(/** @type {HTMLFormElement | null} */ (null));
  const byField = error instanceof ApiError ? error.byField : new Map();
  const isAtFields = byField.size > 0 && [...byField.keys()].every((name) => fields.includes(name));
  useEffect(() => {
    const first = form.current?.querySelector(':is([aria-invalid="true"], .invalid input)');
    if (first instanceof HTMLElement) first.focus();
  }, [error]);
  const submit = async (/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    if (isBusy || !form.current) return;
    setIsBusy(true);
    setError(undefined);
    try {
      await send(new FormData(form.current));
    } catch (thrown) {
      setError(thrown);
    } finally {
      setIsBusy(false);
    }
  };
  return {
    form,
    submit,
    focusFirst: () => {
      const first = form.current?.querySelector('input, select, textarea');
      if (first instanceof HTMLElement) first.focus();
    },
    isBusy,
    message:
      error === undefined ? '' : isAtFields ? 'Correct the marked fields.' : messageOf(error),
    errorOf: (/** @type {string} */ field) => byField.get(field),
  };
}

/**
 * The buttons of a form, and its error. @param {{ of: ReturnType<typeof useForm>, label: string,
 * onCancel?: () => void }} props
 */
export function FormEnd({ of: { isBusy, message }, label, onCancel }) {
  return html`<p class="wrong" role="alert">${message}</p>
    <div class="actions">
      <button class="primary" aria-disabled=${isBusy} aria-busy=${isBusy}>${label}</button>
      ${onCancel && html`<button type="button" onClick=${onCancel}>Cancel</button>`}
    </div>`;
}

/**
 * Returns an error of one field that was found before the request. @param {string} field @param
 * {string} detail
 */
export function invalidField(field, detail) {
  return new ApiError({ status: 400, detail, errors: [{ pointer: `/${field}`, detail }] });
}

/** A text of the form without surrounding space. @param {FormData} form @param {string} name */
export function textOf(form, name) {
  return String(form.get(name) ?? '').trim();
}

/**
 * Returns the value of a datetime-local input, in the time zone of the browser; empty for an
 * invalid time. @param {string | number | undefined} at
 */
export function toLocalTime(at) {
  const date = new Date(at ?? '');
  if (Number.isNaN(date.getTime())) return '';
  const local = new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString();
  return local.endsWith(':00.000Z') ? local.slice(0, 16) : local.slice(0, 19);
}

/**
 * Returns the time in ISO 8601 and UTC; empty for an empty or incomplete value. @param {string}
 * local
 */
export function fromLocalTime(local) {
  const date = new Date(local);
  return Number.isNaN(date.getTime()) ? '' : date.toISOString();
}

/**
 * A modal dialog that requires a confirmation. It is open while it is mounted. `act` runs on
 * confirmation: the dialog closes when it resolves, and shows its error and stays open when it
 * rejects. `onClose`: called once it is closed, to unmount it.
 * @param {{ title: string, confirm: string, act: () => Promise<unknown>, onClose: () => void, children?: any }} props `confirm`: label of the button
 */
export function ConfirmDialog({ title, confirm, act, onClose, children }) {
  const dialog = useRef(/** @type {HTMLDialogElement | null} */ (null));
  const id = useId();
  const [isBusy, setIsBusy] = useState(false);
  const [error, setError] = useState('');
  // Focuses synchronously, so that the next key reaches the focused element.
  useLayoutEffect(() => dialog.current?.showModal(), []);
  const run = async (/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    if (isBusy) return;
    setIsBusy(true);
    setError('');
    try {
      await act();
      // Closing a dialog returns the focus to the element that was focused before.
      dialog.current?.close();
    } catch (thrown) {
      setError(messageOf(thrown));
    } finally {
      setIsBusy(false);
    }
  };
  return html`<dialog
    ref=${dialog}
    aria-labelledby=${id}
    closedby=${isBusy ? 'none' : 'closerequest'}
    onClose=${onClose}
    onCancel=${(/** @type {Event} */ event) => isBusy && event.preventDefault()}
  >
    <form onSubmit=${run}>
      <h2 id=${id}>${title}</h2>
      ${children}
      <p class="wrong" role="alert">${error}</p>
      <div class="actions">
        <button type="button" autofocus disabled=${isBusy} onClick=${() => dialog.current?.close()}>Back</button>
        <button class="primary" aria-disabled=${isBusy} aria-busy=${isBusy}>${confirm}</button>
      </div>
    </form>
  </dialog>`;
}

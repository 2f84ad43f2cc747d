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

export function TextField({ label, name, value = '', hint, error, ...others }) {
  return html`<${Field} label=${label} hint=${hint} error=${error}>
    ${(attributes) =>
      html`<input autocomplete="off" spellcheck=${false} ...${others} ...${attributes} name=${name} defaultValue=${value} />`}
  <//>`;
}

/** A field with choices: their values by their texts. */
export function ChoiceField({ label, name, choices, value, hint, error }) {
  return html`<${Field} label=${label} hint=${hint} error=${error}>
    ${(attributes) => html`<select ...${attributes} name=${name}>
      ${Object.entries(choices).map(([text, one]) => html`<option key=${text} value=${one} selected=${one === value}>${text}</option>`)}
    </select>`}
  <//>`;
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
    const first = form.current?.querySelector('[aria-invalid="true"]');
    if (first instanceof HTMLElement) first.focus();
  }, [error]);
  const submit = async (event) => {
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
    isBusy,
    message:
      error === undefined ? '' : isAtFields ? 'Correct the marked fields.' : messageOf(error),
    errorOf: (field) => byField.get(field),
  };
}

export function invalidField(field, detail) {
  return new ApiError({ status: 400, detail, errors: [{ pointer: `/${field}`, detail }] });
}

export function textOf(form, name) {
  return String(form.get(name) ?? '').trim();
}

/** The value of a field for JSON; null if it is empty. */
export function jsonOf(form, name) {
  const json = textOf(form, name);
  if (json === '') return null;
  try {
    return JSON.parse(json);
  } catch {
    throw invalidField(name, 'is not valid JSON; write it like {"team": "billing"}');
  }
}

/** "2026-01-31 14:00": UTC without zeros at its end; empty for an invalid time. */
export function toUtcText(at) {
  const date = new Date(at ?? '');
  if (Number.isNaN(date.getTime())) return '';
  return date
    .toISOString()
    .replace('T', ' ')
    .replace(/(?::00)?\.000Z$/, '')
    .replace(/Z$/, '');
}

/** In ISO 8601 and UTC; empty for an incomplete value. A text without a zone is in UTC. */
export function fromUtcText(text) {
  const hasZone = /(?:z|[+-]\d\d:?\d\d)$/i.test(text);
  const isDate = /^\d{4}-\d\d-\d\d$/.test(text);
  if (!/^\d{4}-\d\d-\d\d/.test(text)) return '';
  const date = new Date(isDate || hasZone ? text : `${text.replace(' ', 'T')}Z`);
  return Number.isNaN(date.getTime()) ? '' : date.toISOString();
}

/**
 * A modal dialog. It is open while it is mounted. As a child of the body it inherits nothing from
 * the row or the heading with its button. Closing it returns the focus to the element that had it.
 * @param {{ title: string, isBusy?: boolean, onClose: () => void, children: (close: () => void) => any }} props
 *   `isBusy`: it cannot be closed
 */
export function Dialog({ title, isBusy = false, onClose, children }) {
  const dialog = useRef(/** @type {HTMLDialogElement | null} */ (null));
  const id = useId();
  // Focuses synchronously, so that the next key reaches the focused element.
  useLayoutEffect(() => {
    const { current } = dialog;
    if (!current) return undefined;
    document.body.append(current);
    current.showModal();
    return () => {
      current.close();
      current.remove();
    };
  }, []);
  return html`<dialog
    ref=${dialog}
    aria-labelledby=${id}
    closedby=${isBusy ? 'none' : 'closerequest'}
    onClose=${onClose}
    onCancel=${(event) => isBusy && event.preventDefault()}
  >
    <h2 id=${id}>${title}</h2>
    ${children(() => dialog.current?.close())}
  </dialog>`;
}

/**
 * A dialog with a form, or with a text to confirm. It closes when `send` resolves; an error is
 * shown.
 * @param {{ title: string, submit: string, fields?: readonly string[] | undefined, send: (form: FormData) => Promise<unknown>, onClose: () => void, children?: any }} props
 *   `submit`: label of the button; `fields`: those that show an error; `children`: may be a
 *   function of the errors of fields
 */
export function FormDialog({ title, submit, fields = [], send, onClose, children }) {
  const form = useForm({
    fields,
    async send(data) {
      await send(data);
      onClose();
    },
  });
  const { isBusy } = form;
  return html`<${Dialog} title=${title} isBusy=${isBusy} onClose=${onClose}>
    ${(close) => html`<form class="form" ref=${form.form} onSubmit=${form.submit} novalidate>
      ${typeof children === 'function' ? children(form.errorOf) : children}
      <p class="wrong" role="alert">${form.message}</p>
      <div class="actions">
        <button type="button" autofocus=${fields.length === 0} disabled=${isBusy} onClick=${close}>Back</button>
        <button class="primary" aria-disabled=${isBusy} aria-busy=${isBusy}>${submit}</button>
      </div>
    </form>`}
  <//>`;
}

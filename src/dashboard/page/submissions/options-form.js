import { useEffect, useId, useRef, useState } from 'preact/hooks';
import { ApiError, messageOf } from '../data/api.js';
import { useDashboard } from '../data/context.js';
import { ConfirmDialog } from '../parts/confirm-dialog.js';
import { html } from '../parts/html.js';
import { pathOf } from './changes.js';
import { ALWAYS, isChanged, OPTIONS, textsOf, toPatch } from './options.js';
import { FINAL_STATUSES } from './submission-table.js';

/** @typedef {import('./options.js').Name} Name @typedef {import('./options.js').Errors} Errors */

/** @type {Record<Name, { label: string, hint: string, attributes: Record<string, unknown> }>} */
const FIELDS = {
  deadline: {
    label: 'Deadline',
    hint: 'In your time zone. A submission that is still open then ends as failed or expired.',
    attributes: { type: 'datetime-local', step: '1' },
  },
  unknown_grace_s: {
    label: 'Not-found grace in seconds',
    hint: 'For this time, "not found" means "not yet"; at least 120 s apply.',
    attributes: { type: 'number', min: '0', step: 'any' },
  },
  stuck_after_s: {
    label: 'Stuck after, in seconds',
    hint: 'After this time, an open submission is reported as stuck.',
    attributes: { type: 'number', min: '0', step: 'any' },
  },
  metadata: {
    label: 'Metadata as JSON',
    hint: 'Replaces the whole object. Empty: removes it.',
    attributes: { rows: 6, spellcheck: false },
  },
  callback_url: {
    label: 'Callback URL',
    hint: 'Receives the events. Empty: no further events are sent. Only admins see more than its origin.',
    attributes: { type: 'text', inputmode: 'url', spellcheck: false, autocomplete: 'off' },
  },
};

/**
 * Changes options. A change by another client appears in fields that were not edited here, and
 * beside edited fields.
 * @param {{ one: any, onSaved: (text: string) => void, onClose: () => void }} props `one`: the submission, as it is now
 */
export function OptionsForm({ one, onSaved, onClose }) {
  const { api, announce } = useDashboard();
  const current = textsOf(one);
  // `base`: the values before the texts were edited.
  const [{ base, texts }, setValues] = useState({ base: current, texts: current });
  const [errors, setErrors] = useState(/** @type {Errors} */ ({}));
  const [failure, setFailure] = useState('');
  const [isBusy, setIsBusy] = useState(false);
  const [isAsking, setIsAsking] = useState(false);
  const isFinal = FINAL_STATUSES.includes(one.status);
  const isEdited = (/** @type {Name} */ name) => isChanged(name, base[name], texts[name]);
  const usable = OPTIONS.filter((name) => !isFinal || ALWAYS.includes(name));
  const edited = usable.filter(isEdited);

  useEffect(() => {
    // Reads the current texts, which may have been edited since the last render.
    setValues((now) => {
      const untouched = OPTIONS.filter((name) => !isChanged(name, now.base[name], now.texts[name]));
      const renewed = Object.fromEntries(untouched.map((name) => [name, current[name]]));
      return { base: { ...now.base, ...renewed }, texts: { ...now.texts, ...renewed } };
    });
  }, [JSON.stringify(current)]);

  const form = useRef(/** @type {HTMLFormElement | null} */ (null));
  useEffect(() => {
    const first = form.current?.querySelector('[aria-invalid="true"]');
    if (first instanceof HTMLElement) first.focus();
  }, [errors]);
  const send = async () => {
    if (isBusy) return;
    const { body, errors: wrong } = toPatch(texts, edited);
    setErrors(wrong);
    setFailure('');
    if (Object.keys(wrong).length > 0) return;
    setIsBusy(true);
    try {
      await api.patch(pathOf(one.submission_id), body);
      onSaved(`Changed: ${edited.map((name) => FIELDS[name].label).join(', ')}.`);
    } catch (error) {
      const byField = error instanceof ApiError ? error.byField : new Map();
      setErrors(Object.fromEntries(byField));
      announce(messageOf(error));
      if (!OPTIONS.some((name) => byField.has(name))) setFailure(messageOf(error));
    } finally {
      setIsBusy(false);
    }
  };
  const submit = (/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    setFailure(edited.length === 0 ? 'Nothing is changed yet.' : '');
    if (edited.includes('callback_url') && base.callback_url !== '') setIsAsking(true);
    else if (edited.length > 0) void send();
  };
  return html`<form class="options" ref=${form} aria-label="Options" novalidate onSubmit=${submit}>
    ${isFinal && html`<p class="muted">The submission has ended: its time limits cannot change. Retrack it to set new ones.</p>`}
    ${OPTIONS.map(
      (name) => html`<${Field}
        key=${name}
        name=${name}
        value=${texts[name]}
        error=${errors[name]}
        isDisabled=${!usable.includes(name)}
        meanwhile=${isEdited(name) && isChanged(name, base[name], current[name]) ? current[name] : undefined}
        set=${(/** @type {string} */ text) => setValues((now) => ({ ...now, texts: { ...now.texts, [name]: text } }))}
      />`,
    )}
    <p class="wrong" role="alert">${failure}</p>
    <div class="actions">
      <button class="primary" aria-disabled=${isBusy} aria-busy=${isBusy}>Save</button>
      <button type="button" onClick=${onClose}>Close</button>
    </div>
    ${
      isAsking &&
      html`<${ConfirmDialog} title="Replace the callback URL?" confirm="Replace" act=${send} onClose=${() => setIsAsking(false)}>
        <p>The earlier URL is not kept; the history only shows its origin. Events that were not delivered to it are sent to the new one.</p>
      <//>`
    }
  </form>`;
}

/**
 * @param {{ name: Name, value: string, error: string | undefined, isDisabled: boolean, meanwhile: string | undefined, set: (text: string) => void }} props
 *   `meanwhile`: the value that another client has set since
 */
function Field({ name, value, error, isDisabled, meanwhile, set }) {
  const id = useId();
  const { label, hint, attributes } = FIELDS[name];
  const shared = {
    ...attributes,
    id,
    value,
    disabled: isDisabled,
    'aria-invalid': error ? 'true' : undefined,
    'aria-describedby': `${id}-hint`,
    onInput: (/** @type {any} */ event) => set(event.target.value),
  };
  return html`<div>
    <label for=${id}>${label}</label>
    ${name === 'metadata' ? html`<textarea class="value" ...${shared}></textarea>` : html`<input ...${shared} />`}
    <div id=${`${id}-hint`}>
      <p class="muted">${hint}</p>
      ${error && html`<p class="wrong">${error}</p>`}
      ${
        meanwhile !== undefined &&
        html`<p class="warning">Another client has changed it to ${meanwhile === '' ? 'nothing' : html`<span class="value">${meanwhile}</span>`}. Saving overwrites this change.</p>`
      }
    </div>
  </div>`;
}

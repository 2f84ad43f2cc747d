import { useEffect, useId, useRef, useState } from 'preact/hooks';
import { ApiError, messageOf } from '../data/api.js';
import { useDashboard } from '../data/context.js';
import { ConfirmDialog, fromLocalTime, toLocalTime } from '../parts/form.js';
import { text } from '../parts/format.js';
import { html } from '../parts/html.js';
import { isShownAs } from './filters.js';
import { canRetrack, FINAL_STATUSES, OPEN_STATUSES } from './submission-table.js';

/** @import { Submission, TrackOption } from '../../../client/api.ts' */

/** The texts of the dialog before each action. */
const CONFIRMATIONS = {
  cancel: {
    title: 'Cancel this submission?',
    label: 'Cancel tracking',
    effect:
      'Its tracking ends, and subscribers receive submission.cancelled. It can be tracked again later.',
    act: cancel,
  },
  retrack: {
    title: 'Track this submission again?',
    label: 'Retrack',
    effect:
      'It is polled again with the default time limits, its history continues, and subscribers receive submission.retracked. Metadata and callback URL stay.',
    act: retrack,
  },
};

/**
 * Cancel, retrack and change one submission.
 * @param {{ one: Submission, onChanged: () => void }} props
 */
export function SubmissionActions({ one, onChanged }) {
  const { api, announce } = useDashboard();
  const [chosen, setChosen] = useState(
    /** @type {keyof typeof CONFIRMATIONS | undefined} */ (undefined),
  );
  const [isEditing, setIsEditing] = useState(false);
  const [message, setMessage] = useState('');
  const messageLine = useRef(/** @type {HTMLElement | null} */ (null));
  const done = (/** @type {string} */ text) => {
    setMessage(text);
    announce(text);
    onChanged();
  };
  const confirmation = chosen && CONFIRMATIONS[chosen];
  // The button that had the focus disappears with the dialog, or once the new status is loaded.
  const focusMessage = () => {
    if (document.activeElement === document.body) messageLine.current?.focus();
  };
  useEffect(() => {
    if (message) focusMessage();
  }, [message, one.status]);
  const closed = () => {
    setChosen(undefined);
    focusMessage();
  };
  const choose = (/** @type {keyof typeof CONFIRMATIONS} */ name) => {
    setMessage('');
    setChosen(name);
  };
  return html`<div class="actions">
      ${OPEN_STATUSES.includes(one.status) && html`<button type="button" onClick=${() => choose('cancel')}>Cancel tracking</button>`}
      ${canRetrack(one.status) && html`<button type="button" onClick=${() => choose('retrack')}>Retrack</button>`}
      <button type="button" aria-expanded=${isEditing} onClick=${() => setIsEditing(!isEditing)}>Change options</button>
      <span tabindex="-1" ref=${messageLine}>${message}</span>
    </div>
    ${
      confirmation &&
      html`<${ConfirmDialog} title=${confirmation.title} confirm=${confirmation.label} act=${async () => done(await confirmation.act(api, one))} onClose=${closed}>
        <p>${confirmation.effect}</p>
      <//>`
    }
    ${
      isEditing &&
      html`<${OptionsForm}
        one=${one}
        onSaved=${(/** @type {string} */ text) => {
          setIsEditing(false);
          done(text);
        }}
        onClose=${() => setIsEditing(false)}
      />`
    }`;
}

/**
 * Changes of tracked submissions. Each returns a text about its effect. The server decides by the
 * current status, which may differ from the shown one. All throw the errors of the methods of Api.
 * @typedef {{ submission_id: string, upstream: string }} Named
 */

/** @param {string} id */
export function pathOf(id) {
  return `v1/submissions/${encodeURIComponent(id)}`;
}

/**
 * @param {import('../data/api.js').Api} api @param {Named} submission @returns {Promise<string>}
 */
export async function cancel(api, { submission_id }) {
  const { status } = await api.delete(pathOf(submission_id));
  return status === 'cancelled' ? 'Cancelled.' : `Unchanged: it has ended as ${status}.`;
}

/**
 * @param {import('../data/api.js').Api} api @param {Named} submission @returns {Promise<string>}
 */
export async function retrack(api, { submission_id, upstream }) {
  const { retracked, submissions } = await api.post('v1/submissions', {
    submission_id,
    upstream,
    retrack: true,
  });
  return retracked === 1 ? 'Tracked again.' : `Unchanged: it is ${submissions[0]?.status}.`;
}

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
 * @param {{ one: Submission, onSaved: (text: string) => void, onClose: () => void }} props `one`: the submission, as it is now
 */
function OptionsForm({ one, onSaved, onClose }) {
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

/**
 * The options of a submission as the texts of a form.
 * @typedef {TrackOption} Name
 * @typedef {Record<Name, string>} Texts
 * @typedef {Partial<Record<Name, string>>} Errors
 */

/** @type {readonly Name[]} */
const OPTIONS = ['deadline', 'unknown_grace_s', 'stuck_after_s', 'metadata', 'callback_url'];
/** The options that can still be changed after a submission has ended. @type {readonly Name[]} */
const ALWAYS = ['metadata', 'callback_url'];

/** @param {Submission} one @returns {Texts} */
function textsOf(one) {
  return {
    deadline: toLocalTime(one.deadline_at),
    unknown_grace_s: String(one.unknown_grace_s),
    stuck_after_s: String(one.stuck_after_s),
    metadata: one.metadata === null ? '' : JSON.stringify(one.metadata, null, 2),
    callback_url: one.callback_url ?? '',
  };
}

/**
 * Whether a field has another value than before. @param {Name} name @param {string} before @param
 * {string} now
 */
function isChanged(name, before, now) {
  return before !== now && !(name === 'deadline' && isShownAs(fromLocalTime(before), now));
}

/**
 * Returns the body of a PATCH with the changed options, and the errors of the options that cannot
 * be sent.
 * @param {Texts} texts @param {readonly Name[]} changed @returns {{ body: Record<string, unknown>, errors: Errors }}
 */
function toPatch(texts, changed) {
  /** @type {Record<string, unknown>} */
  const body = {};
  /** @type {Errors} */
  const errors = {};
  for (const name of changed) {
    try {
      body[name] = READERS[name](texts[name].trim());
    } catch (error) {
      errors[name] = error instanceof Error ? error.message : text(error);
    }
  }
  return { body, errors };
}

/** @type {Record<Name, (text: string) => unknown>} */
const READERS = {
  deadline: (text) => (text === '' ? wrong('Enter a time.') : fromLocalTime(text)),
  unknown_grace_s: seconds,
  stuck_after_s: seconds,
  metadata: (text) => (text === '' ? null : object(text)),
  callback_url: (text) => (text === '' ? null : text),
};

/** @param {string} text */
function seconds(text) {
  return text === '' || Number.isNaN(Number(text))
    ? wrong('Enter a number of seconds.')
    : Number(text);
}

/** @param {string} text */
function object(text) {
  const value = parsed(text);
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? value
    : wrong('Enter an object, such as {"order": 4711}, or nothing.');
}

/** @param {string} text */
function parsed(text) {
  try {
    return JSON.parse(text);
  } catch (error) {
    return wrong(`This is not valid JSON: ${error instanceof Error ? error.message : ''}`);
  }
}

/** @param {string} reason @returns {never} */
function wrong(reason) {
  throw new Error(reason);
}

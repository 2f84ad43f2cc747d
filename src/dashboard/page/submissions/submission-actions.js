import { useEffect, useRef, useState } from 'preact/hooks';
import { useDashboard } from '../data/context.js';
import { ConfirmDialog } from '../parts/confirm-dialog.js';
import { html } from '../parts/html.js';
import { cancel, retrack } from './changes.js';
import { OptionsForm } from './options-form.js';
import { canRetrack, OPEN_STATUSES } from './submission-table.js';

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

/** Cancel, retrack and change one submission. @param {{ one: any, onChanged: () => void }} props */
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

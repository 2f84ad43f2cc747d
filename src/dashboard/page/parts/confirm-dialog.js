import { useId, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { messageOf } from '../data/api.js';
import { html } from './html.js';

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

import { useLayoutEffect, useRef } from 'preact/hooks';
import { CopyButton } from '../parts/copy-button.js';
import { html } from '../parts/html.js';
import { Command } from '../parts/parts.js';

/**
 * Shows a new token once. @param {{ issued: import('./tokens-page.js').Issued, onClose: () => void
 * }} props
 */
export function SecretDialog({ issued, onClose }) {
  const dialog = useRef(/** @type {HTMLDialogElement | null} */ (null));
  // Focuses synchronously, so that the next key reaches the focused element.
  useLayoutEffect(() => dialog.current?.showModal(), []);
  return html`<dialog
    ref=${dialog}
    aria-labelledby="issued"
    closedby="none"
    onClose=${onClose}
    onCancel=${(/** @type {Event} */ event) => event.preventDefault()}
  >
    <h2 id="issued">Token of ${issued.name}</h2>
    <p>Save it now. It cannot be shown again, because only its hash is stored.</p>
    <${Command}>${issued.secret}<//>
    <div class="actions">
      <${CopyButton} text=${issued.secret} name="the token" />
      <button type="button" class="primary" autofocus onClick=${() => dialog.current?.close()}>I have stored it</button>
    </div>
  </dialog>`;
}

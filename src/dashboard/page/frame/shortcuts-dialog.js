import { html } from '../parts/html.js';

/**
 * The list of shortcuts, and the switch that turns them off, which users of speech input need.
 * Closed until `showModal` is called.
 * @param {{ dialog: { current: HTMLDialogElement | null }, shortcuts: readonly import('./shortcuts.js').Shortcut[], isOn: boolean, setIsOn: (isOn: boolean) => void }} props
 */
export function ShortcutsDialog({ dialog, shortcuts, isOn, setIsOn }) {
  return html`<dialog class="shortcuts" ref=${dialog} aria-labelledby="shortcuts">
    <div class="title">
      <h2 id="shortcuts">Keyboard shortcuts</h2>
      <button type="button" onClick=${() => dialog.current?.close()}>Close</button>
    </div>
    <dl>
      ${shortcuts.map(
        ({ keys, title }) => html`<div key=${keys}>
          <dt>${keys.split(' ').map((key) => html`<kbd key=${key}>${key}</kbd>`)}</dt>
          <dd>${title}</dd>
        </div>`,
      )}
    </dl>
    <label>
      <input type="checkbox" checked=${isOn} onChange=${(/** @type {any} */ event) => setIsOn(event.target.checked)} />
      ${' '}Shortcuts are on
    </label>
  </dialog>`;
}

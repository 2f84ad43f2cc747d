import { useEffect, useRef, useState } from 'preact/hooks';
import { setPreference, usePreference } from '../data/preferences.js';
import { Dialog } from '../parts/form.js';
import { html, Icon } from '../parts/html.js';
import { Facts } from '../parts/parts.js';
import { hrefTo, hrefToList, parseRoute } from '../router.js';

const KEYS = {
  '/': 'Search this list, or all submissions',
  j: 'Next row',
  k: 'Previous row',
  Enter: 'Open the row',
  Esc: 'Leave a field, or return to the list',
  '?': 'Show this help',
};
const ROWS = 'main tbody > tr > th > a, main .problems li > a';

/** The keys of every page, and the button for their help. `place`: changes with each navigation. */
export function Keyboard({ place }) {
  const isOn = usePreference('keys', 'on') === 'on';
  const [isOpen, setIsOpen] = useState(false);
  const searches = useRef(false);
  useEffect(() => {
    // After the heading of the new page has got the focus.
    if (searches.current) queueMicrotask(focusSearch);
    searches.current = false;
  }, [place]);
  useEffect(() => {
    /** @type {Record<string, () => unknown>} */
    const actions = {
      '?': () => setIsOpen(true),
      '/': () => {
        if (focusSearch()) return;
        searches.current = true;
        location.hash = hrefTo('submissions');
      },
      j: () => moveBy(1),
      k: () => moveBy(-1),
      Escape: () => {
        const { page, id } = parseRoute(location.hash);
        if (id !== undefined) location.hash = hrefToList(page);
      },
    };
    const press = (/** @type {KeyboardEvent} */ event) => {
      const { key, target } = event;
      if (event.ctrlKey || event.metaKey || event.altKey || find('dialog[open]')) return;
      if (!(target instanceof HTMLElement) || target.closest('.open')) return;
      if (target.matches('input, textarea, select')) {
        if (key === 'Escape') target.blur();
      } else if (Object.hasOwn(actions, key) && (isOn || key === 'Escape')) {
        event.preventDefault();
        actions[key]?.();
      }
    };
    document.addEventListener('keydown', press);
    return () => document.removeEventListener('keydown', press);
  }, [isOn]);
  return html`<button type="button" aria-haspopup="dialog" onClick=${() => setIsOpen(true)}><${Icon} name="keys" />Keys</button>
    ${
      isOpen &&
      html`<${Dialog} title="Keys" onClose=${() => setIsOpen(false)}>
        ${(
          close,
        ) => html`<${Facts} of=${Object.entries(KEYS).map(([key, does]) => [html`<kbd>${key}</kbd>`, does])} />
          <label><input type="checkbox" checked=${isOn} onChange=${() => setPreference('keys', isOn ? 'off' : 'on')} /> Use these keys</label>
          <div class="actions"><button type="button" autofocus onClick=${close}>Close</button></div>`}
      <//>`
    }`;
}

/** @returns {HTMLElement | null} */
function find(selector) {
  return document.querySelector(selector);
}

/** Returns whether the page has a search. */
function focusSearch() {
  const filters = find('main [role="search"] details');
  filters?.setAttribute('open', '');
  const field = filters?.querySelector('input');
  field?.focus();
  // What is typed replaces the previous search.
  field?.select();
  return filters !== null;
}

function moveBy(step) {
  const rows = [...document.querySelectorAll(ROWS)].filter((one) => one.checkVisibility());
  const now = rows.findIndex((one) => one.closest('tr, li')?.contains(document.activeElement));
  const next = rows[now === -1 ? 0 : now + step];
  if (next instanceof HTMLElement) next.focus();
}

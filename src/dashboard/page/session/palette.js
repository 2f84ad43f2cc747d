import { useEffect, useId, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { withQuery } from '../data/api.js';
import { maySeeSubmissions, useDashboard } from '../data/context.js';
import { html } from '../parts/html.js';
import { Icon } from '../parts/icon.js';
import { hrefTo } from '../router.js';

/** @typedef {{ icon: string, label: string, about: string, run: () => void }} Entry */

const FOUND = 5;
const PAUSE_MS = 150;

/**
 * A button and Ctrl K, which open a dialog that finds pages, submissions and actions.
 * @param {{ pages: readonly [name: string, page: { title: string, group: string }][], actions: readonly Entry[] }} props
 */
export function Palette({ pages, actions }) {
  const [isOpen, setIsOpen] = useState(false);
  useEffect(() => {
    const onKeyDown = (/** @type {KeyboardEvent} */ event) => {
      if (event.key.toLowerCase() !== 'k' || !(event.ctrlKey || event.metaKey)) return;
      event.preventDefault();
      setIsOpen(true);
    };
    document.addEventListener('keydown', onKeyDown);
    return () => document.removeEventListener('keydown', onKeyDown);
  }, []);
  const entries = [
    ...pages.map(([name, { title, group }]) => ({
      icon: name,
      label: title,
      about: group,
      run: () => location.assign(hrefTo(name)),
    })),
    ...actions,
  ];
  return html`<button type="button" class="palette-button" aria-label="Go to… Ctrl K" onClick=${() => setIsOpen(true)}>
      <${Icon} name="search" /><span>Go to…</span><kbd>Ctrl K</kbd>
    </button>
    ${isOpen && html`<${PaletteDialog} entries=${entries} onClose=${() => setIsOpen(false)} />`}`;
}

/** @param {{ entries: readonly Entry[], onClose: () => void }} props */
function PaletteDialog({ entries, onClose }) {
  const dialog = useRef(/** @type {HTMLDialogElement | null} */ (null));
  const id = useId();
  const [typed, setTyped] = useState('');
  const [index, setIndex] = useState(0);
  const text = typed.trim();
  const shown = [
    ...entries.filter(({ label }) => label.toLowerCase().includes(text.toLowerCase())),
    ...useFound(text),
  ];
  useLayoutEffect(() => dialog.current?.showModal(), []);
  const choose = (/** @type {Entry | undefined} */ entry) => {
    if (!entry) return;
    dialog.current?.close();
    entry.run();
  };
  const onKeyDown = (/** @type {KeyboardEvent} */ event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      event.preventDefault();
      setIndex((index + step + shown.length) % Math.max(1, shown.length));
    }
    if (event.key === 'Enter') choose(shown[index]);
  };
  return html`<dialog ref=${dialog} class="palette" aria-label="Go to" closedby="any" onClose=${onClose}>
    <input
      type="text"
      role="combobox"
      aria-label="Page, submission or action"
      aria-expanded="true"
      aria-controls=${`${id}-list`}
      aria-activedescendant=${shown.length > 0 ? `${id}-${index}` : undefined}
      placeholder="Page, submission or action"
      autocomplete="off"
      spellcheck=${false}
      onInput=${(/** @type {any} */ { target }) => {
        setTyped(target.value);
        setIndex(0);
      }}
      onKeyDown=${onKeyDown}
    />
    <ul role="listbox" id=${`${id}-list`} aria-label="Results">
      ${shown.map(
        (entry, place) => html`<li
          key=${`${entry.icon} ${entry.label}`}
          id=${`${id}-${place}`}
          role="option"
          aria-selected=${place === index}
          onClick=${() => choose(entry)}
        >
          <${Icon} name=${entry.icon} /><span>${entry.label}</span><span class="muted">${entry.about}</span>
        </li>`,
      )}
    </ul>
    ${shown.length === 0 && html`<p class="muted">Nothing found.</p>`}
  </dialog>`;
}

/**
 * Submissions whose id begins with a text, and the search for it.
 * @param {string} text @returns {readonly Entry[]}
 */
function useFound(text) {
  const { api, session } = useDashboard();
  const [ids, setIds] = useState(/** @type {readonly string[]} */ ([]));
  const isSearched = text.length > 2 && maySeeSubmissions(session);
  useEffect(() => {
    setIds([]);
    if (!isSearched || !/^[\x21-\x7e]+$/.test(text)) return undefined;
    const stopping = new AbortController();
    const timer = setTimeout(async () => {
      const path = withQuery('v1/submissions', { prefix: text, limit: FOUND });
      const page = await api.get(path, { signal: stopping.signal }).catch(() => undefined);
      if (page) setIds(page.submissions.map((/** @type {any} */ one) => one.submission_id));
    }, PAUSE_MS);
    return () => {
      clearTimeout(timer);
      stopping.abort();
    };
  }, [text]);
  if (!isSearched) return [];
  return [
    ...ids.map((id) => ({
      icon: 'submissions',
      label: id,
      about: 'Submission',
      run: () => location.assign(hrefTo('submissions', id)),
    })),
    {
      icon: 'search',
      label: `Search submissions for “${text}”`,
      about: 'Action',
      run: () => location.assign(hrefTo('submissions', undefined, { search: text })),
    },
  ];
}

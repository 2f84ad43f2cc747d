import { useEffect, useRef } from 'preact/hooks';
import { html } from './html.js';

/**
 * A button with a panel below it, which closes on Escape, on a click elsewhere, and when the focus
 * leaves it.
 * @param {{ label: any, name?: string, title?: string, isOpen: boolean, setOpen: (isOpen: boolean) => void, isAtEnd?: boolean, className?: string, children?: any }} props
 *   `name`: of the button, if its label is not enough; `title`: of the panel; `isAtEnd`: the panel
 *   ends where the button ends
 */
export function Drop({ label, name, title, isOpen, setOpen, isAtEnd, className, children }) {
  const root = useRef(/** @type {HTMLElement | null} */ (null));
  useEffect(() => {
    if (!isOpen) return undefined;
    const first = root.current?.querySelector('.panel :is(input, button, a)');
    if (first instanceof HTMLElement) first.focus();
    const close = (/** @type {Event} */ { target }) =>
      root.current?.contains(/** @type {Node} */ (target)) || setOpen(false);
    document.addEventListener('pointerdown', close);
    return () => document.removeEventListener('pointerdown', close);
  }, [isOpen]);
  const onKeyDown = (/** @type {KeyboardEvent} */ event) => {
    if (!isOpen) return;
    if (event.key === 'Escape') {
      event.stopPropagation();
      setOpen(false);
      root.current?.querySelector('button')?.focus();
    }
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    moveFocus(root.current, step);
  };
  const onFocusOut = (/** @type {FocusEvent} */ { relatedTarget }) =>
    relatedTarget && !root.current?.contains(/** @type {Node} */ (relatedTarget)) && setOpen(false);
  return html`<div class=${`drop ${isAtEnd ? 'end' : ''}`} ref=${root} onKeyDown=${onKeyDown} onfocusout=${onFocusOut}>
    <button type="button" class=${className} aria-label=${name} aria-expanded=${isOpen} onClick=${() => setOpen(!isOpen)}>${label}</button>
    ${isOpen && html`<div class="panel" role="group" aria-label=${title ?? name}>${children}</div>`}
  </div>`;
}

/** @param {HTMLElement | null} root @param {number} step */
function moveFocus(root, step) {
  const all = [...(root?.querySelectorAll('.panel :is(button, a, input)') ?? [])];
  const index = all.indexOf(/** @type {Element} */ (document.activeElement));
  const next = all[(index + step + all.length) % all.length];
  if (next instanceof HTMLElement) next.focus();
}

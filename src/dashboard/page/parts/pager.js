import { useRef } from 'preact/hooks';
import { html } from './html.js';

/**
 * Cursors only lead forward, so the previous page is known only for pages that were opened from it.
 * @param {{ cursor: string, next: string | null, to: (cursor: string | undefined) => string, nextLabel?: string | undefined }} props
 */
export function Pager({ cursor, next, to, nextLabel = 'Next page' }) {
  const before = useRef(/** @type {Map<string, string>} */ (new Map()));
  // While a page loads, `next` is still that of the previous page.
  if (next !== null && !before.current.has(next)) before.current.set(next, cursor);
  const previous = before.current.get(cursor);
  if (cursor === '' && next === null) return null;
  return html`<nav class="pager" aria-label="Pages of the list">
    ${cursor !== '' && html`<a href=${to(undefined)}>First page</a>`}
    ${cursor !== '' && previous !== undefined && html`<a href=${to(previous)}>Previous page</a>`}
    ${next !== null && html`<a href=${to(next)}>${nextLabel}</a>`}
  </nav>`;
}

import { useRef } from 'preact/hooks';
import { html } from './html.js';

/**
 * Cursors lead forward only; the way back is known of the pages that one came through.
 * @param {{ cursor: string, next: string | null, to: (cursor: string | undefined) => string }} props
 */
export function Pager({ cursor, next, to }) {
  const before = useRef(/** @type {Map<string, string>} */ (new Map()));
  // Until a page has come, `next` is still that of the page before.
  if (next !== null && !before.current.has(next)) before.current.set(next, cursor);
  const previous = before.current.get(cursor);
  if (cursor === '' && next === null) return null;
  return html`<nav class="pager" aria-label="Pages of the list">
    ${cursor !== '' && html`<a href=${to(undefined)}>First page</a>`}
    ${cursor !== '' && previous !== undefined && html`<a href=${to(previous)}>Previous page</a>`}
    ${next !== null && html`<a href=${to(next)}>Next page</a>`}
  </nav>`;
}

import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import { html } from './html.js';

/** Minimum time between announcements, so that a screen reader can finish one. Of several within it, the newest is announced. */
const EVERY_MS = 3_000;

/** Text for assistive technology, in a polite live region. @returns {[(text: string) => void, any]} */
export function useAnnouncer() {
  const [text, setText] = useState('');
  const next = useRef(/** @type {string | undefined} */ (undefined));
  const timer = useRef(/** @type {number | undefined} */ (undefined));
  useEffect(() => () => clearTimeout(timer.current), []);

  const tell = useCallback(() => {
    timer.current = undefined;
    if (next.current === undefined) return;
    setText(next.current);
    next.current = undefined;
    timer.current = setTimeout(tell, EVERY_MS);
  }, []);
  const announce = useCallback((/** @type {string} */ said) => {
    next.current = said;
    if (timer.current === undefined) tell();
  }, []);
  return [announce, html`<div class="unseen" role="status" aria-live="polite">${text}</div>`];
}

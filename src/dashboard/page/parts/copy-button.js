import { useEffect, useRef, useState } from 'preact/hooks';
import { useDashboard } from '../data/context.js';
import { html } from './html.js';

const SHOWN_MS = 2_000;

/**
 * A button that copies a text to the clipboard. `name`: what it copies, such as "the id"; `label`:
 * shown beside the symbol, if it needs one.
 * @param {{ text: string, name: string, label?: string }} props
 */
export function CopyButton({ text, name, label }) {
  const { announce } = useDashboard();
  const button = useRef(/** @type {HTMLButtonElement | null} */ (null));
  const [result, setResult] = useState('');
  const timer = useRef(/** @type {number | undefined} */ (undefined));
  useEffect(() => () => clearTimeout(timer.current), []);
  const copy = async () => {
    const isCopied = await copyText(text, button.current);
    const message = isCopied ? 'Copied' : 'The browser does not permit copying';
    setResult(message);
    announce(`${message}: ${name}`);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => setResult(''), SHOWN_MS);
  };
  return html`<span class="copy">
    <button type="button" class="plain" ref=${button} aria-label=${`Copy ${name}`} title=${`Copy ${name}`} onClick=${copy}>
      <svg viewBox="0 0 16 16" width="14" height="14" aria-hidden="true" fill="none" stroke="currentColor" stroke-width="1.5">
        <rect x="5.5" y="5.5" width="8" height="8" rx="1.5" />
        <path d="M10.5 3.5v-1h-8v8h1" />
      </svg>
      ${label && ` ${label}`}
    </button>
    ${result && html`<span class="muted" aria-hidden="true">${result}</span>`}
  </span>`;
}

/**
 * Returns whether the text was copied. Pages loaded over HTTP from another machine have no
 * `navigator.clipboard`.
 * @param {string} text @param {HTMLElement | null} beside a modal dialog permits the focus only inside of it
 */
async function copyText(text, beside) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = document.createElement('textarea');
    area.value = text;
    area.className = 'unseen';
    beside?.after(area);
    area.select();
    const isCopied = document.execCommand('copy');
    area.remove();
    beside?.focus();
    return isCopied;
  }
}

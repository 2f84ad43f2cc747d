import { useEffect, useRef, useState } from 'preact/hooks';
import { ApiError, messageOf, Unreachable } from '../data/api.js';
import { useDashboard } from '../data/context.js';
import { usePreference } from '../data/preferences.js';
import { hrefTo, parseRoute } from '../router.js';
import { FormDialog } from './form.js';
import { absoluteTime, count, relativeTime } from './format.js';
import { html, Icon } from './html.js';

/** Shown only after a delay, so that fast responses do not flicker. */
export function Loading() {
  const [isLong, setIsLong] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setIsLong(true), 200);
    return () => clearTimeout(timer);
  }, []);
  return html`<p class="state muted" role="status">${isLong ? 'Loading…' : ''}</p>`;
}

/**
 * The title of a page, a sentence about it, and its actions. The page of one item has a link to its
 * list, and copies the id.
 * @param {{ title: any, id?: string, about?: any, children?: any }} props
 *   `id`: of the item; `children`: the actions
 */
export function PageHeader({ title, id, about, children }) {
  const { page } = parseRoute(location.hash);
  return html`<div class="header">
    ${id && html`<a href=${hrefTo(page)}>All ${page}</a>`}
    <h1 tabindex="-1" class=${title === id ? 'id' : ''}>${title}</h1>
    ${id && html`<${CopyButton} text=${id} name="the id" />`}
    ${about && html`<p class="muted">${about}</p>`}
    ${children && html`<div class="actions">${children}</div>`}
  </div>`;
}

export function Tabs({ label, of }) {
  return html`<nav class="tabs" aria-label=${label}>
    ${of.map(
      (
        tab,
      ) => html`<a key=${tab.label} href=${tab.href} aria-current=${tab.isCurrent ? 'true' : undefined}>
        ${tab.label}${tab.number !== undefined && html`<span class="number muted">${count(tab.number)}</span>`}
      </a>`,
    )}
  </nav>`;
}

export function Failure({ error, retry }) {
  return html`<div class="state failure" role="alert">
    <p><strong>${titleOf(error)}</strong> ${messageOf(error)}</p>
    ${retry && html`<button type="button" onClick=${retry}>Try again</button>`}
  </div>`;
}

function titleOf(error) {
  if (error instanceof Unreachable) return 'Not connected.';
  if (!(error instanceof ApiError)) return 'Unexpected error on this page.';
  if (error.status === 403) return 'Not allowed.';
  if (error.status === 404) return 'Not found.';
  if (error.status === 429) return 'Too many requests.';
  return error.status >= 500 ? 'Server error.' : 'Request rejected.';
}

/** Shown in place of an empty list: what it would contain, and how to get there. */
export function Empty({ title, children }) {
  return html`<div class="state empty"><p><strong>${title}</strong></p>${children}</div>`;
}

export function Loadable({ loaded, children }) {
  const { data, error, reload } = loaded;
  return html`${error && html`<${Failure} error=${error} retry=${reload} />`}
  ${data === undefined ? !error && html`<${Loading} />` : children(data)}`;
}

/** The tab key skips it: a list has a hundred, and a button switches all to absolute times. */
export function Time({ at }) {
  return at === null ? html`<span class="muted">–</span>` : html`<${Moment} at=${at} />`;
}

function Moment({ at }) {
  const areAbsolute = usePreference('times', 'relative') === 'absolute';
  const [isTapped, setIsTapped] = useState(false);
  const relative = relativeTime(at, Date.now());
  const [, setShown] = useState(relative);
  // Renders again only when the text changes.
  useEffect(() => {
    const timer = setInterval(() => setShown(relativeTime(at, Date.now())), 1_000);
    return () => clearInterval(timer);
  }, [at]);
  const absolute = absoluteTime(at);
  const isAbsolute = areAbsolute || isTapped;
  return html`<time datetime=${at} title=${absolute} class=${isAbsolute ? 'absolute' : ''} onClick=${() => setIsTapped(!isTapped)}
    >${isAbsolute ? absolute : relative}</time
  >`;
}

export function Badge({ state, label = state }) {
  return html`<span class="badge ${state}">${label}</span>`;
}

export function Command({ children }) {
  return html`<pre tabindex="0"><code>${children}</code></pre>`;
}

/**
 * A button that sends a request to the server and shows its result. With a text or fields, a dialog
 * with them opens first.
 * @param {{ label: string, name?: string | undefined, title?: string, submit?: string, confirm?: string | undefined, fields?: readonly string[], isDisabled?: boolean, isPrimary?: boolean, act: (form: FormData) => Promise<string>, children?: any }} props
 *   `name`: the item that the button acts on, for its accessible name; `title`, `submit`: of the
 *   dialog; `confirm`: its text; `fields`, `children`: as for FormDialog; `act`: returns the
 *   message to show afterwards
 */
export function Action({
  label,
  name,
  title = `${name ?? label}?`,
  submit = label,
  confirm,
  fields,
  isDisabled = false,
  isPrimary,
  act,
  children = confirm && html`<p>${confirm}</p>`,
}) {
  const { announce } = useDashboard();
  const [isBusy, setIsBusy] = useState(false);
  const [message, setMessage] = useState(
    /** @type {{ text: string, isError: boolean } | undefined} */ (undefined),
  );
  const [isOpen, setIsOpen] = useState(false);
  const perform = async (form) => {
    setMessage(undefined);
    const text = await act(form);
    setMessage({ text, isError: false });
    if (text) announce(text);
  };
  const run = async () => {
    setIsBusy(true);
    try {
      await perform(new FormData());
    } catch (error) {
      const text = messageOf(error);
      setMessage({ text, isError: true });
      announce(`${label}: ${text}`);
    } finally {
      setIsBusy(false);
    }
  };
  const press = () => {
    if (isBusy || isDisabled) return;
    if (children) setIsOpen(true);
    else void run();
  };
  return html`<span class="action">
    <button type="button" class=${isPrimary ? 'primary' : ''} aria-label=${name} aria-haspopup=${children ? 'dialog' : undefined} aria-busy=${isBusy} aria-disabled=${isBusy || isDisabled} onClick=${press}>${label}</button>
    ${message && html`<span class=${message.isError ? 'message wrong' : 'message'}>${message.text}</span>`}
    ${
      isOpen &&
      html`<${FormDialog} title=${title} submit=${submit} fields=${fields} send=${perform} onClose=${() => setIsOpen(false)}>${children}<//>`
    }
  </span>`;
}

/**
 * A secret, which the server returns only once.
 * @param {{ title: string, text: string, value: string, name: string, onClose: () => void, children?: any }} props
 *   `text`: what to do with it; `name`: such as "the token"
 */
export function Secret({ title, text, value, name, onClose, children }) {
  const heading = useRef(/** @type {HTMLElement | null} */ (null));
  useEffect(() => heading.current?.focus(), []);
  return html`<section class="secret" aria-labelledby="secret">
    <h2 id="secret" tabindex="-1" ref=${heading}>${title}</h2>
    <p>${text}</p>
    <${Command}>${value}<//>
    <div class="actions">
      <${CopyButton} text=${value} name=${name} />
      <button type="button" onClick=${onClose}>I have stored it</button>
      ${children}
    </div>
  </section>`;
}

/** Names with their values, without those that have none. */
export function Facts({ of }) {
  return html`<dl class="facts">
    ${of
      .filter(([, value]) => (value ?? null) !== null)
      .map(([name, value]) => html`<div key=${name}><dt>${name}</dt><dd>${value}</dd></div>`)}
  </dl>`;
}

const END_CHARS = 6;

/** An id in a cell, without its middle where space is short. `name`: as for CopyButton. */
export function CopiedId({ id, href, name = 'the id' }) {
  return html`<${IdLink} id=${id} href=${href} /><${CopyButton} text=${id} name=${`${name} ${id}`} />`;
}

export function IdLink({ id, href }) {
  // Its parts would be read as two words.
  return html`<a class="id" aria-label=${id} href=${href}><span class="start">${id.slice(0, -END_CHARS)}</span>${id.slice(-END_CHARS)}</a>`;
}

const SHOWN_MS = 2_000;

/** `name`: what it copies, such as "the id"; `label`: shown beside the symbol. */
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
      <${Icon} name="copy" />${label}
    </button>
    ${result && html`<span class="muted" aria-hidden="true">${result}</span>`}
  </span>`;
}

/** Returns success. Over HTTP from another machine there is no `navigator.clipboard`. */
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

import { useEffect, useState } from 'preact/hooks';
import { ApiError, messageOf, Unreachable } from '../data/api.js';
import { useDashboard } from '../data/context.js';
import { ConfirmDialog } from './confirm-dialog.js';
import { absoluteTime, relativeTime } from './format.js';
import { html } from './html.js';
import { useTicking } from './ticking.js';
import { useAbsoluteTimes } from './times.js';

/** Shown only after a delay, so that fast responses do not flicker. */
export function Loading() {
  const [isLong, setIsLong] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setIsLong(true), 200);
    return () => clearTimeout(timer);
  }, []);
  return html`<p class="state muted" role="status">${isLong ? 'Loading…' : ''}</p>`;
}

/** @param {{ error: Error, retry?: () => void }} props */
export function Failure({ error, retry }) {
  return html`<div class="state failure" role="alert">
    <p><strong>${titleOf(error)}</strong> ${messageOf(error)}</p>
    ${retry && html`<button type="button" onClick=${retry}>Try again</button>`}
  </div>`;
}

/** @param {Error} error */
function titleOf(error) {
  if (error instanceof Unreachable) return 'Not connected.';
  if (!(error instanceof ApiError)) return 'Unexpected error on this page.';
  if (error.status === 403) return 'Not allowed.';
  if (error.status === 404) return 'Not found.';
  if (error.status === 429) return 'Too many requests.';
  return error.status >= 500 ? 'Server error.' : 'Request rejected.';
}

/**
 * Shown in place of an empty list: what it would contain, and how to get there. @param {{ title:
 * string, children?: any }} props
 */
export function Empty({ title, children }) {
  return html`<div class="state empty"><p><strong>${title}</strong></p>${children}</div>`;
}

/**
 * One of: the error, the first loading, the content. @param {{ loaded:
 * import('../data/use-load.js').Loaded<any>, children: (data: any) => any }} props
 */
export function Loadable({ loaded, children }) {
  const { data, error, reload } = loaded;
  return html`${error && html`<${Failure} error=${error} retry=${reload} />`}
  ${data === undefined ? !error && html`<${Loading} />` : children(data)}`;
}

/**
 * A relative time that stays current. Hovering shows the absolute time with its zone, and a tap
 * shows it in place. The tab key skips it, because a list has a hundred times: keyboard users
 * switch all times to absolute ones with a shortcut.
 * @param {{ at: string | null }} props
 */
export function Time({ at }) {
  return at === null ? html`<span class="muted">–</span>` : html`<${Moment} at=${at} />`;
}

/** @param {{ at: string }} props */
function Moment({ at }) {
  const areAbsolute = useAbsoluteTimes();
  const [isTapped, setIsTapped] = useState(false);
  const relative = useTicking((now) => relativeTime(at, now));
  const absolute = absoluteTime(at);
  return html`<time datetime=${at} title=${absolute} onClick=${() => setIsTapped(!isTapped)}
    >${areAbsolute || isTapped ? absolute : relative}</time
  >`;
}

/** @param {{ state: string, label?: string }} props */
export function Badge({ state, label = state }) {
  return html`<span class="badge ${state}">${label}</span>`;
}

/** A command for a terminal. @param {{ children?: any }} props */
export function Command({ children }) {
  return html`<pre tabindex="0"><code>${children}</code></pre>`;
}

/**
 * A button that sends a request to the server and shows its result.
 * @param {{ label: string, name?: string, confirm?: string, act: () => Promise<string> }} props `name`: the item that the
 *   button acts on, for its accessible name; `confirm`: text of a dialog that requires a
 *   confirmation; `act`: returns the message to show afterwards.
 */
export function Action({ label, name, confirm, act }) {
  const { announce } = useDashboard();
  const [isBusy, setIsBusy] = useState(false);
  const [message, setMessage] = useState(
    /** @type {{ text: string, isError: boolean } | undefined} */ (undefined),
  );
  const [isConfirming, setIsConfirming] = useState(false);
  const perform = async () => {
    setMessage(undefined);
    const text = await act();
    setMessage({ text, isError: false });
    if (text) announce(text);
  };
  const run = async () => {
    if (isBusy) return;
    setIsBusy(true);
    try {
      await perform();
    } catch (error) {
      const text = messageOf(error);
      setMessage({ text, isError: true });
      announce(`${label}: ${text}`);
    } finally {
      setIsBusy(false);
    }
  };
  return html`<span class="action">
    <button type="button" aria-label=${name} aria-busy=${isBusy} aria-disabled=${isBusy} onClick=${confirm === undefined ? run : () => setIsConfirming(true)}>${label}</button>
    ${message && html`<span class=${message.isError ? 'message wrong' : 'message'}>${message.text}</span>`}
    ${
      isConfirming &&
      html`<${ConfirmDialog} title=${`${name ?? label}?`} confirm=${label} act=${perform} onClose=${() => setIsConfirming(false)}><p>${confirm}</p><//>`
    }
  </span>`;
}

/**
 * Names and values. Values are texts or elements. @param {{ of: readonly (readonly [string, any])[]
 * }} props
 */
export function Facts({ of }) {
  return html`<dl class="facts">
    ${of.map(
      ([name, value]) => html`<div key=${name}>
        <dt>${name}</dt>
        <dd>${value ?? html`<span class="muted">–</span>`}</dd>
      </div>`,
    )}
  </dl>`;
}

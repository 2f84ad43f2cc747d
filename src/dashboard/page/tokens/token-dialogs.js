import { useRef, useState } from 'preact/hooks';
import { useDashboard } from '../data/context.js';
import { ConfirmDialog } from '../parts/confirm-dialog.js';
import { html } from '../parts/html.js';
import { ExpirySelect, expiryOf } from './expiry.js';

const HOUR_S = 3_600;
const OVERLAPS = { 'a day': 24 * HOUR_S, 'an hour': HOUR_S, 'a week': 168 * HOUR_S, 'no time': 0 };

/**
 * Replaces the secret, with a choice of the overlap. @param {{ token: any, onIssued: (token:
 * import('./tokens-page.js').Issued) => void }} props
 */
export function RotateToken({ token, onIssued }) {
  const { api } = useDashboard();
  const [isOpen, setIsOpen] = useState(false);
  const [overlap, setOverlap] = useState(/** @type {keyof typeof OVERLAPS} */ ('a day'));
  const issued = useRef(/** @type {import('./tokens-page.js').Issued | undefined} */ (undefined));
  const rotate = async () => {
    issued.current = await api.post(`v1/credentials/${token.id}/rotate`, {
      overlap_s: OVERLAPS[overlap],
    });
  };
  const close = () => {
    setIsOpen(false);
    const made = issued.current;
    issued.current = undefined;
    if (made) onIssued(made);
  };
  return html`<button type="button" aria-label=${`Rotate: ${token.name}`} onClick=${() => setIsOpen(true)}>Rotate</button>
    ${
      isOpen &&
      html`<${ConfirmDialog} title=${`Rotate the token of ${token.name}?`} confirm="Rotate" act=${rotate} onClose=${close}>
        <p>The client gets a new token. Earlier tokens are accepted no longer than the time that you choose.</p>
        <label>
          The old token is also accepted for
          <select onChange=${(/** @type {any} */ event) => setOverlap(event.target.value)}>
            ${Object.keys(OVERLAPS).map((name) => html`<option key=${name} selected=${name === overlap}>${name}</option>`)}
          </select>
        </label>
      <//>`
    }`;
}

const UNCHANGED = 'unchanged';

/** Changes name and expiry. @param {{ token: any, onChanged: () => void }} props */
export function ChangeToken({ token, onChanged }) {
  const { api } = useDashboard();
  const [isOpen, setIsOpen] = useState(false);
  const fields = useRef(/** @type {HTMLDivElement | null} */ (null));
  const fieldOf = (/** @type {string} */ name) =>
    /** @type {HTMLInputElement | null | undefined} */ (
      fields.current?.querySelector(`[name=${name}]`)
    )?.value ?? '';
  const change = async () => {
    const expires_at = expiryOf(fieldOf('expires'));
    await api.patch(`v1/credentials/${token.id}`, { name: fieldOf('name'), expires_at });
    onChanged();
  };
  return html`<button type="button" aria-label=${`Change: ${token.name}`} onClick=${() => setIsOpen(true)}>Change</button>
    ${
      isOpen &&
      html`<${ConfirmDialog} title=${`Change the token of ${token.name}`} confirm="Save" act=${change} onClose=${() => setIsOpen(false)}>
        <div class="filter" ref=${fields}>
          <label><span>Name of the client</span><input name="name" required maxlength="64" autocomplete="off" defaultValue=${token.name} /></label>
          <${ExpirySelect} first=${UNCHANGED} />
        </div>
      <//>`
    }`;
}

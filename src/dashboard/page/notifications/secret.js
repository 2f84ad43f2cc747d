import { useEffect, useRef } from 'preact/hooks';
import { CopyButton } from '../parts/copy-button.js';
import { html } from '../parts/html.js';
import { Command } from '../parts/parts.js';

/**
 * The secret of a webhook, shown after the request that created it. The server never returns it
 * again.
 * @param {{ webhook: any, onClose?: () => void }} props `webhook`: with its secret, which is null for v1a
 */
export function Secret({ webhook, onClose }) {
  const heading = useRef(/** @type {HTMLElement | null} */ (null));
  useEffect(() => heading.current?.focus(), []);
  const { secret, public_keys: keys } = webhook;
  return html`<section class="secret" aria-labelledby="secret">
    <h2 id="secret" tabindex="-1" ref=${heading}>${secret === null ? 'Public key of the receiver' : 'Secret of the receiver'}</h2>
    <p>
      ${
        secret === null
          ? 'The receiver verifies signatures with this key.'
          : 'Copy it now: it is not shown again. The receiver verifies signatures with it.'
      }
    </p>
    <${Command}>${secret ?? keys[0]}<//>
    <p><${CopyButton} text=${secret ?? keys[0]} name=${secret === null ? 'the public key' : 'the secret'} /></p>
    ${onClose && html`<button type="button" onClick=${onClose}>I have stored it</button>`}
  </section>`;
}

import { useEffect, useRef, useState } from 'preact/hooks';
import { html } from '../parts/html.js';
import { Command } from '../parts/parts.js';
import { fetchSession } from './session.js';

/** @param {{ reason: string | undefined, onSignedIn: (token: string, session: import('../data/context.js').Session) => void }} props */
export function SignIn({ reason, onSignedIn }) {
  const [error, setError] = useState(reason);
  const [isBusy, setIsBusy] = useState(false);
  const field = useRef(/** @type {HTMLInputElement | null} */ (null));
  useEffect(() => {
    document.title = 'Sign in · dawatch';
    field.current?.focus();
  }, []);

  const submit = async (/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    const token = field.current?.value.trim() ?? '';
    setIsBusy(true);
    setError(undefined);
    try {
      onSignedIn(token, await fetchSession(token));
    } catch (thrown) {
      setError(thrown instanceof Error ? thrown.message : String(thrown));
      setIsBusy(false);
      field.current?.focus();
    }
  };

  return html`<main class="sign-in">
    <h1>dawatch</h1>
    <form onSubmit=${submit} novalidate>
      <label for="token">Token</label>
      <input
        id="token"
        type="password"
        autocomplete="off"
        spellcheck="false"
        ref=${field}
        aria-describedby="token-hint${error ? ' token-error' : ''}"
        aria-invalid=${error ? 'true' : undefined}
      />
      <p id="token-error" class="wrong" role="alert">${error}</p>
      <button class="primary" disabled=${isBusy}>${isBusy ? 'Signing in…' : 'Sign in'}</button>
      <p id="token-hint" class="muted">
        It stays in this tab and is forgotten when the tab is closed. A service token shows submissions, an admin token
        everything.
      </p>
    </form>
    <details>
      <summary>No token yet?</summary>
      <p>On the server:</p>
      <${Command}>npx dawatch token create --role admin --name me<//>
    </details>
  </main>`;
}

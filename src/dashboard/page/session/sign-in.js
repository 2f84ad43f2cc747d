import { useEffect, useRef, useState } from 'preact/hooks';
import { Api, ApiError } from '../data/api.js';
import { html } from '../parts/html.js';
import { Command } from '../parts/parts.js';

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
        It stays in this tab and is forgotten when the tab is closed. A service token shows submissions, an operator token
        everything but users, an admin token everything.
      </p>
    </form>
    <details>
      <summary>No token yet?</summary>
      <p>On the server:</p>
      <${Command}>npx dawatch token create --role admin --name me<//>
    </details>
  </main>`;
}

const KEY = 'dawatch.token';

/** Stored for this tab until it is closed. */
export const storedToken = {
  get: () => sessionStorage.getItem(KEY),
  /** @param {string} token */
  set: (token) => sessionStorage.setItem(KEY, token),
  clear: () => sessionStorage.removeItem(KEY),
};

/**
 * Returns the session of this token. Throws an error with a message for the user.
 * @param {string} token @returns {Promise<import('../data/context.js').Session>}
 */
export async function fetchSession(token) {
  if (token === '') throw new Error('Enter a token.');
  try {
    return await new Api({ token }).get('v1/whoami');
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    if (error.status === 401) throw new Error('Unknown token: it may be mistyped, revoked, or of another server.');
    if (error.status === 429)
      throw new Error(`Too many wrong tokens came from here. Try again in ${error.retryAfterS ?? 60} s.`);
    throw new Error(error.message);
  }
}

import { useEffect, useRef, useState } from 'preact/hooks';
import { Api, ApiError, withQuery } from '../data/api.js';
import { html, Mark } from '../parts/html.js';
import { Command } from '../parts/parts.js';
import { parseRoute } from '../router.js';

/** @typedef {import('../data/context.js').Session} Session */

/**
 * Sign-in at a provider of OpenID Connect. `url`: the page at which it begins.
 * @typedef {NonNullable<import('../../../client/api.ts').Session['oidc']>} Provider
 */

export function SignInPage({ reason, provider, onSignedIn }) {
  const [notice, setNotice] = useState(reason);
  const [error, setError] = useState(/** @type {string | undefined} */ (undefined));
  const [isBusy, setIsBusy] = useState(false);
  const field = useRef(/** @type {HTMLInputElement | null} */ (null));
  useEffect(() => {
    document.title = 'Sign in · dawatch';
    // With a provider, most people have no token.
    if (!provider) field.current?.focus();
  }, []);

  const submit = async (event) => {
    event.preventDefault();
    const token = field.current?.value.trim() ?? '';
    setIsBusy(true);
    setNotice(undefined);
    setError(undefined);
    try {
      onSignedIn(await signIn(token));
    } catch (thrown) {
      setError(thrown instanceof Error ? thrown.message : String(thrown));
      setIsBusy(false);
      field.current?.focus();
    }
  };

  return html`<main class="sign-in">
    <h1 class="brand"><${Mark} />dawatch</h1>
    ${notice && html`<p class="wrong" role="alert">${notice}</p>`}
    ${provider && html`<a class="provider primary" href=${withQuery(provider.url, { to: pageToReturn() })}>Sign in with single sign-on</a>`}
    <form class="form" onSubmit=${submit} novalidate>
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
        Your token is not stored. A service token shows submissions, an operator token also notifications, an admin token
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

/** Throws errors with a message for the user. @param {string} token @returns {Promise<Session>} */
async function signIn(token) {
  if (token === '') throw new Error('Enter a token.');
  try {
    await new Api({ token }).post('v1/session');
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    if (error.status === 401)
      throw new Error('Unknown token: it may be mistyped, revoked, or of another server.');
    if (error.status === 429)
      throw new Error(
        `Too many wrong tokens came from here. Try again in ${error.retryAfterS ?? 60} s.`,
      );
    throw new Error(error.message);
  }
  const { session } = await fetchSession();
  if (!session)
    throw new Error(
      'This browser does not keep the cookie of the session. Allow cookies of this site.',
    );
  return session;
}

/** @returns {Promise<{ session: Session | undefined, provider: Provider | null }>} */
export async function fetchSession() {
  const api = new Api();
  const { signed_in: isSignedIn, oidc } = await api.get('v1/session');
  return { session: isSignedIn ? await api.get('v1/whoami') : undefined, provider: oidc };
}

/** By the reason in the address to which the server redirects. @type {Record<string, string>} */
const FAILURES = {
  unavailable: 'The provider cannot be reached at the moment. Try again later, or use a token.',
  denied: 'The provider refused the sign-in.',
  invalid:
    'The response of the provider failed a check. Try again; if it fails again, show an administrator the log of dawatch.',
  state:
    'This sign-in was begun in another browser, took longer than ten minutes, or was already used. Try again.',
  no_role: 'Your account has no role in dawatch. Ask an administrator for one.',
  revoked: 'An administrator has revoked your access.',
  ledger: 'dawatch cannot store the sign-in at the moment. Try again later.',
};

/** Returns the message of a failed sign-in at the provider, and removes it from the address. */
export function takeFailure() {
  const { page, query } = parseRoute(location.hash);
  if (page !== 'sign-in') return undefined;
  history.replaceState(null, '', '#/');
  const failed = query.get('failed') ?? '';
  return Object.hasOwn(FAILURES, failed) ? FAILURES[failed] : undefined;
}

function pageToReturn() {
  return location.hash.replace(/^#\/?/, '');
}

/** Returns a message if the session may still be open. */
export async function endSession() {
  try {
    await new Api().delete('v1/session');
  } catch (error) {
    if (error instanceof ApiError && error.status === 401) return undefined;
    const cause = error instanceof Error ? error.message : String(error);
    return `You may still be signed in, because the session could not be ended: ${cause}`;
  }
  return undefined;
}

import { render } from 'preact';
import { useCallback, useEffect, useState } from 'preact/hooks';
import { html } from './parts/html.js';
import { Loading } from './parts/parts.js';
import { fetchSession, SignIn, storedToken } from './session/sign-in.js';
import { SignedIn } from './session/signed-in.js';

const root = document.getElementById('app');
if (root) render(html`<${App} />`, root);

/** @typedef {{ token: string, session: import('./data/context.js').Session }} Known */

/** Shows the sign-in form or the signed-in page. */
function App() {
  const [known, setKnown] = useState(/** @type {Known | undefined} */ (undefined));
  const [isChecking, setIsChecking] = useState(storedToken.get() !== null);
  const [reason, setReason] = useState(/** @type {string | undefined} */ (undefined));

  const signOut = useCallback((/** @type {string | undefined} */ why) => {
    storedToken.clear();
    setReason(why);
    setKnown(undefined);
  }, []);

  useEffect(() => {
    const token = storedToken.get();
    if (token === null) return;
    fetchSession(token)
      .then(
        (session) => setKnown({ token, session }),
        (error) => setReason(error.message),
      )
      .finally(() => setIsChecking(false));
  }, []);

  if (isChecking) return html`<main class="sign-in"><h1>dawatch</h1><${Loading} /></main>`;
  if (!known) {
    const signIn = (/** @type {string} */ token, /** @type {import('./data/context.js').Session} */ session) => {
      storedToken.set(token);
      setReason(undefined);
      setKnown({ token, session });
    };
    return html`<${SignIn} reason=${reason} onSignedIn=${signIn} />`;
  }
  return html`<${SignedIn} key=${known.token} ...${known} signOut=${signOut} />`;
}

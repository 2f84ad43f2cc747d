import { render } from 'preact';
import { useCallback, useEffect, useState } from 'preact/hooks';
import { html } from './parts/html.js';
import { Loading } from './parts/parts.js';
import { endSession, fetchSession, SignIn, takeFailure } from './session/sign-in.js';
import { SignedIn } from './session/signed-in.js';

/** @typedef {import('./data/context.js').Session} Session */

/** The other tabs of this browser, which share the session. */
const tabs = new BroadcastChannel('dawatch-session');

const root = document.getElementById('app');
if (root) render(html`<${App} />`, root);

/** Shows the sign-in form or the signed-in page. */
function App() {
  const [session, setSession] = useState(/** @type {Session | undefined} */ (undefined));
  const [isChecking, setIsChecking] = useState(true);
  const [reason, setReason] = useState(takeFailure);
  const [provider, setProvider] = useState(/** @type {import('./session/sign-in.js').Provider | null} */ (null));

  const end = useCallback((/** @type {string | undefined} */ why) => {
    setReason(why);
    setSession(undefined);
  }, []);
  const begin = (/** @type {Session} */ begun) => {
    setSession(begun);
    tabs.postMessage('changed');
  };
  const signOut = async () => {
    end(await endSession());
    tabs.postMessage('changed');
  };

  useEffect(() => {
    const check = () =>
      fetchSession().then(
        (fetched) => {
          setProvider(fetched.provider);
          setSession(fetched.session);
        },
        ({ message }) => setReason(message),
      );
    tabs.onmessage = check;
    void check().finally(() => setIsChecking(false));
  }, []);

  if (isChecking) return html`<main class="sign-in"><h1>dawatch</h1><${Loading} /></main>`;
  if (!session) return html`<${SignIn} reason=${reason} provider=${provider} onSignedIn=${begin} />`;
  return html`<${SignedIn} key=${JSON.stringify(session)} session=${session} signOut=${signOut} onEnded=${end} />`;
}

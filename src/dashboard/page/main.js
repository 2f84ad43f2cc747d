import { render } from 'preact';
import { useCallback, useEffect, useState } from 'preact/hooks';
import { ApiError } from './data/api.js';
import { html } from './parts/html.js';
import { Failure, Loading } from './parts/parts.js';
import {
  endSession,
  fetchSession,
  SignInAgain,
  SignInPage,
  takeFailure,
} from './session/sign-in.js';
import { SignedIn } from './session/signed-in.js';

/** @typedef {import('./data/context.js').Session} Session */

const RETRY_MS = 5_000;
/** The other tabs of this browser, which share the session. */
const tabs = new BroadcastChannel('dawatch-session');

const root = document.getElementById('app');
if (root) render(html`<${App} />`, root);

/** Shows the sign-in form or the signed-in page, or both after the session has ended. */
function App() {
  const [session, setSession] = useState(/** @type {Session | undefined} */ (undefined));
  const [hasEnded, setHasEnded] = useState(false);
  const [isChecking, setIsChecking] = useState(true);
  const [failure, setFailure] = useState(/** @type {Error | undefined} */ (undefined));
  const [reason, setReason] = useState(takeFailure);
  const [provider, setProvider] = useState(
    /** @type {import('./session/sign-in.js').Provider | null} */ (null),
  );

  const end = useCallback((/** @type {string | undefined} */ why) => {
    setReason(why);
    setHasEnded(true);
  }, []);
  const begin = (/** @type {Session} */ begun) => {
    setSession(begun);
    setHasEnded(false);
    tabs.postMessage('changed');
  };
  const signOut = async () => {
    setReason(await endSession());
    setSession(undefined);
    setHasEnded(false);
    tabs.postMessage('changed');
  };
  const check = useCallback(async () => {
    const fetched = await fetchSession();
    setProvider(fetched.provider);
    setSession(fetched.session);
    setHasEnded(false);
  }, []);
  const begun = useCallback(async () => {
    try {
      await check();
      setFailure(undefined);
    } catch (error) {
      const { message } = /** @type {Error} */ (error);
      // After a refusal, another token may be accepted. After any other failure, the session may be
      // open.
      if (error instanceof ApiError && error.status < 500 && error.status !== 429)
        setReason(message);
      else setFailure(/** @type {Error} */ (error));
    }
    setIsChecking(false);
  }, []);

  useEffect(() => {
    tabs.onmessage = () => check().catch(() => undefined);
    void begun();
  }, []);
  useEffect(() => {
    if (!failure) return undefined;
    const timer = setTimeout(begun, RETRY_MS);
    return () => clearTimeout(timer);
  }, [failure]);
  // The person may have signed in at the provider in another tab.
  useEffect(() => {
    if (!hasEnded) return undefined;
    const shown = () => document.hidden || continueSession();
    document.addEventListener('visibilitychange', shown);
    return () => document.removeEventListener('visibilitychange', shown);
  }, [hasEnded]);
  const continueSession = async () => {
    const fetched = await fetchSession().catch(() => undefined);
    if (!fetched?.session) return;
    setSession(fetched.session);
    setHasEnded(false);
  };

  if (isChecking) return html`<main class="sign-in"><h1>dawatch</h1><${Loading} /></main>`;
  if (failure && !session)
    return html`<main class="sign-in"><h1>dawatch</h1><${Failure} error=${failure} retry=${begun} /></main>`;
  const signIn = { reason, provider, onSignedIn: begin };
  if (!session) return html`<${SignInPage} ...${signIn} />`;
  return html`<${SignedIn} key=${JSON.stringify(session)} session=${session} signOut=${signOut} onEnded=${end} />
    ${hasEnded && html`<${SignInAgain} ...${signIn} />`}`;
}

import { render } from 'preact';
import { useCallback, useEffect, useLayoutEffect, useState } from 'preact/hooks';
import { ApiError } from './data/api.js';
import { usePreference } from './data/preferences.js';
import { html, Mark } from './parts/html.js';
import { Failure, Loading } from './parts/parts.js';
import { endSession, fetchSession, SignInPage, takeFailure } from './session/sign-in.js';
import { SignedIn } from './session/signed-in.js';

/** @typedef {import('./data/context.js').Session} Session */

const RETRY_MS = 5_000;
/** The other tabs of this browser, which share the session. */
const tabs = new BroadcastChannel('dawatch-session');

const root = document.getElementById('app');
if (root) render(html`<${App} />`, root);

function App() {
  const [session, setSession] = useState(/** @type {Session | undefined} */ (undefined));
  const [isChecking, setIsChecking] = useState(true);
  const [failure, setFailure] = useState(/** @type {Error | undefined} */ (undefined));
  const [reason, setReason] = useState(takeFailure);
  const [provider, setProvider] = useState(
    /** @type {import('./session/sign-in.js').Provider | null} */ (null),
  );

  const theme = usePreference('theme', 'system');
  useLayoutEffect(() => {
    document.documentElement.dataset.theme = theme;
  }, [theme]);
  const change = (changed, /** @type {string | undefined} */ why) => {
    setReason(why);
    setSession(changed);
    tabs.postMessage('changed');
  };
  const onEnded = useCallback(() => {
    setReason('The session has ended. Sign in again.');
    setSession(undefined);
  }, []);
  const signOut = async () => {
    setIsChecking(true);
    change(undefined, await endSession());
    setIsChecking(false);
  };
  const check = useCallback(async () => {
    const fetched = await fetchSession();
    setProvider(fetched.provider);
    setSession(fetched.session);
  }, []);
  const begin = useCallback(async () => {
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
    void begin();
  }, []);
  useEffect(() => {
    if (!failure) return undefined;
    const timer = setTimeout(begin, RETRY_MS);
    return () => clearTimeout(timer);
  }, [failure]);

  if (isChecking)
    return html`<main class="sign-in"><h1 class="brand"><${Mark} />dawatch</h1><${Loading} /></main>`;
  if (session)
    return html`<${SignedIn} key=${JSON.stringify(session)} session=${session} signOut=${signOut} onEnded=${onEnded} />`;
  if (failure)
    return html`<main class="sign-in"><h1 class="brand"><${Mark} />dawatch</h1><${Failure} error=${failure} retry=${begin} /></main>`;
  return html`<${SignInPage} reason=${reason} provider=${provider} onSignedIn=${change} />`;
}

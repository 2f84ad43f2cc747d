import { useEffect, useRef, useState } from 'preact/hooks';
import { useDashboard, useFeedState } from './context.js';
import { html } from '../parts/html.js';

const LABELS = { connecting: 'Connecting…', live: 'Live', lost: 'Disconnected' };

/** State of the live feed. */
export function Connection() {
  const state = useFeedState();
  return html`<span class="connection ${state.kind}">${LABELS[state.kind]}</span>`;
}

/** Banner that is shown while the live feed is disconnected. */
export function Disconnected() {
  const { feed, announce } = useDashboard();
  const state = useFeedState();
  const wasLost = useRef(false);
  useEffect(() => {
    if (state.kind === 'lost' && !wasLost.current) announce('Disconnected from the server. Trying again.');
    if (state.kind === 'live' && wasLost.current) announce('Reconnected.');
    wasLost.current = state.kind === 'lost' || (wasLost.current && state.kind !== 'live');
  }, [state]);
  if (state.kind !== 'lost') return null;
  return html`<section class="disconnected" aria-label="Connection">
    <span>Disconnected: this page may be outdated. <${Countdown} until=${state.retryAt} /></span>
    <button type="button" onClick=${() => feed.retry()}>Try now</button>
  </section>`;
}

/** @param {{ until: number }} props */
function Countdown({ until }) {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1_000);
    return () => clearInterval(timer);
  }, []);
  const leftS = Math.ceil((until - now) / 1_000);
  return html`<span>${leftS > 0 ? `Trying again in ${leftS} s.` : 'Trying again…'}</span>`;
}

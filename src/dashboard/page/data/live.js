import { createContext } from 'preact';
import { useContext } from 'preact/hooks';
import { html } from '../parts/html.js';
import { maySeeSubmissions, useDashboard, useLive, useLoad } from './context.js';

/**
 * @typedef {{
 *   overview: import('./context.js').Loaded<any>,
 *   alerts: import('./context.js').Loaded<any>,
 * }} LiveData `alerts`: the firing ones, newest first
 */

/** Reload intervals: ages and budgets change without an event. */
const OVERVIEW_MS = 10_000;
const ALERTS_MS = 30_000;
/** Further alerts are on the page of alerts. */
const ALERTS = 100;

const LiveContext = createContext(/** @type {LiveData | undefined} */ (undefined));

/** Shared by the navigation and the pages: the overview and the firing alerts. */
export function useLiveData() {
  const live = useContext(LiveContext);
  if (!live) throw new Error('no live data');
  return live;
}

/** Keeps them current. @param {{ children?: any }} props */
export function LiveDataProvider({ children }) {
  const { session } = useDashboard();
  const isAllowed = maySeeSubmissions(session);
  const overview = useKept('v1/overview', isAllowed, OVERVIEW_MS);
  const alerts = useKept(`v1/alerts?limit=${ALERTS}`, isAllowed, ALERTS_MS, isAlert);
  return html`<${LiveContext.Provider} value=${{ overview, alerts }}>${children}<//>`;
}

/** @param {import('./feed.js').FeedEvent} event */
export function isAlert({ type }) {
  return type.startsWith('alert.');
}

/**
 * @param {string} path @param {boolean} isAllowed @param {number} everyMs
 * @param {(event: import('./feed.js').FeedEvent) => boolean} [concerns]
 */
function useKept(path, isAllowed, everyMs, concerns) {
  const { api } = useDashboard();
  const loaded = useLoad(
    async (signal) => (isAllowed ? await api.get(path, { signal }) : undefined),
    path,
  );
  useLive(() => isAllowed && loaded.reload(), everyMs, concerns);
  return loaded;
}

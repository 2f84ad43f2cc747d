import { createContext } from 'preact';
import { useContext, useEffect, useRef, useState } from 'preact/hooks';

/**
 * @typedef {'submissions:read' | 'submissions:write' | 'users:read' | 'webhooks:write' | 'operations:read' | 'admin'} Scope
 * @typedef {{ role: string | null, scopes: readonly Scope[], name: string, users_bearer: 'dawatch' | 'upstream' }} Session
 * @typedef {{
 *   api: import('./api.js').Api,
 *   feed: import('./feed.js').Feed,
 *   session: Session,
 *   announce: (text: string) => void,
 * }} Dashboard
 */

/** Shared by all components of a signed-in page. */
export const DashboardContext = createContext(/** @type {Dashboard | undefined} */ (undefined));

export function useDashboard() {
  const dashboard = useContext(DashboardContext);
  if (!dashboard) throw new Error('no dashboard session');
  return dashboard;
}

/**
 * Calls the listener with each batch of the live feed while the component is mounted. @param
 * {(batch: import('./feed.js').Batch) => void} listener
 */
export function useFeed(listener) {
  const { feed } = useDashboard();
  const newest = useRef(listener);
  newest.current = listener;
  useEffect(() => feed.onBatch((batch) => newest.current(batch)), [feed]);
}

export function useFeedState() {
  const { feed } = useDashboard();
  const [state, setState] = useState(feed.state);
  useEffect(() => {
    setState(feed.state);
    return feed.onState(() => setState(feed.state));
  }, [feed]);
  return state;
}

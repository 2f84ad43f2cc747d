import { createContext } from 'preact';
import { useContext, useEffect, useRef, useState, useCallback } from 'preact/hooks';

/** @import { Whoami } from '../../../client/api.ts' */

/**
 * @typedef {Whoami} Session
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

/** @param {Session} session */
export function maySeeSubmissions({ scopes }) {
  return scopes.includes('submissions:read');
}

/** @param {Session} session */
export function mayChangeSubmissions({ scopes }) {
  return scopes.includes('submissions:write');
}

/** @param {Session} session */
export function maySeeNotifications({ scopes }) {
  return scopes.includes('operations:read') || scopes.includes('webhooks:write');
}

/** Changes and tests of webhooks, and replays. @param {Session} session */
export function mayChangeNotifications({ scopes }) {
  return scopes.includes('webhooks:write');
}

/** With forwarded upstream tokens, the upstream decides about access. @param {Session} session */
export function mayLookUpUsers({ scopes, users_bearer }) {
  return users_bearer === 'upstream' || scopes.includes('users:read');
}

/** @param {Session} session */
export function mayListUsers({ users_bearer, ...session }) {
  return users_bearer === 'upstream' || isAdmin(session);
}

/** @param {Pick<Session, 'scopes'>} session */
export function isAdmin({ scopes }) {
  return scopes.includes('admin');
}

/** Channels and mutes. @param {Session} session */
export function maySeeOperations({ scopes }) {
  return scopes.includes('operations:read');
}

const REFRESH = 'dawatch-refresh';

/** Reloads all data of the page. */
export function refreshAll() {
  window.dispatchEvent(new Event(REFRESH));
}

/**
 * Reloads after a change, also if a load is in flight, because that load may have begun before the
 * change.
 */
export function reloadAll() {
  window.dispatchEvent(new CustomEvent(REFRESH, { detail: 'changed' }));
}

/**
 * @template T
 * @typedef {{ data: T | undefined, error: Error | undefined, isLoading: boolean, reload: () => void, refresh: () => void, setData: (change: (data: T) => T) => void }} Loaded
 */

/**
 * Loads when the component mounts, when `of` or `version` changes, and on `reload`. The previous
 * data stays until new data arrives, and beside an error if it belongs to the same `of`. `refresh`
 * reloads unless a load is in flight, for periodic use.
 * @template T
 * @param {(signal: AbortSignal) => Promise<T>} load
 * @param {string} of identifies what is loaded
 * @param {unknown} [version] a change reloads the same item
 * @returns {Loaded<T>}
 */
export function useLoad(load, of, version) {
  const [state, setState] = useState(
    /**
     * @type {{ data: T | undefined, dataOf: string | undefined, error: Error | undefined,
     * isLoading: boolean }}
     */
    ({ data: undefined, dataOf: undefined, error: undefined, isLoading: true }),
  );
  const newest = useRef({ load, of });
  newest.current = { load, of };
  const running = useRef(/** @type {AbortController | undefined} */ (undefined));

  const reload = useCallback(() => {
    running.current?.abort();
    const controller = new AbortController();
    running.current = controller;
    setState((before) => ({ ...before, isLoading: true }));
    const requested = newest.current;
    const end = (
      /** @type {(before: T | undefined) => { data: T | undefined, error: Error | undefined }} */ change,
    ) => {
      if (controller.signal.aborted) return;
      running.current = undefined;
      setState(({ data, dataOf }) => ({
        ...change(dataOf === requested.of ? data : undefined),
        dataOf: requested.of,
        isLoading: false,
      }));
    };
    requested.load(controller.signal).then(
      (data) => end(() => ({ data, error: undefined })),
      (error) => end((data) => ({ data, error })),
    );
  }, []);
  const refresh = useCallback(() => {
    if (running.current === undefined) reload();
  }, []);

  useEffect(() => {
    reload();
    return () => running.current?.abort();
  }, [of, version]);
  useEffect(() => {
    const again = (/** @type {any} */ { detail }) => (detail === 'changed' ? reload() : refresh());
    window.addEventListener(REFRESH, again);
    return () => window.removeEventListener(REFRESH, again);
  }, []);

  const setData = useCallback((/** @type {(data: T) => T} */ change) => {
    setState((before) => (before.data === undefined ? before : { ...before, data: change(before.data) }));
  }, []);
  const { data, error, isLoading } = state;
  return { data, error, isLoading, reload, refresh, setData };
}

/**
 * Returns a throttled `work`: it runs immediately if it has not run for `everyMs`, otherwise once
 * at the end of that time.
 * @param {() => void} work @param {number} everyMs @returns {() => void}
 */
export function useThrottled(work, everyMs) {
  const newest = useRef(work);
  newest.current = work;
  const lastAt = useRef(Number.NEGATIVE_INFINITY);
  const timer = useRef(/** @type {number | undefined} */ (undefined));
  useEffect(() => () => clearTimeout(timer.current), []);
  return useCallback(() => {
    if (timer.current !== undefined) return;
    const waitMs = Math.max(0, lastAt.current + everyMs - performance.now());
    timer.current = setTimeout(() => {
      timer.current = undefined;
      lastAt.current = performance.now();
      newest.current();
    }, waitMs);
  }, [everyMs]);
}

/**
 * Calls `work` every `everyMs` while the page is visible and `isOn`. @param {() => void} work
 * @param {number} everyMs @param {boolean} [isOn]
 */
export function useWhileVisible(work, everyMs, isOn = true) {
  const newest = useRef(work);
  newest.current = work;
  useEffect(() => {
    if (!isOn) return undefined;
    const timer = setInterval(() => document.hidden || newest.current(), everyMs);
    const change = () => document.hidden || newest.current();
    document.addEventListener('visibilitychange', change);
    return () => {
      clearInterval(timer);
      document.removeEventListener('visibilitychange', change);
    };
  }, [everyMs, isOn]);
}

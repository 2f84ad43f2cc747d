import { createContext } from 'preact';
import { useCallback, useContext, useEffect, useRef, useState } from 'preact/hooks';
import { html } from '../parts/html.js';

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

export const DashboardContext = createContext(/** @type {Dashboard | undefined} */ (undefined));

export function useDashboard() {
  const dashboard = useContext(DashboardContext);
  if (!dashboard) throw new Error('no dashboard session');
  return dashboard;
}

/** @param {(batch: import('./feed.js').Batch) => void} listener called while mounted */
export function useFeed(listener) {
  const { feed } = useDashboard();
  const newest = useRef(listener);
  newest.current = listener;
  useEffect(() => {
    const pass = (/** @type {any} */ { detail }) => newest.current(detail);
    feed.addEventListener('batch', pass);
    return () => feed.removeEventListener('batch', pass);
  }, [feed]);
}

export function useFeedState() {
  const { feed } = useDashboard();
  const [state, setState] = useState(feed.state);
  useEffect(() => {
    const change = () => setState(feed.state);
    change();
    feed.addEventListener('state', change);
    return () => feed.removeEventListener('state', change);
  }, [feed]);
  return state;
}

/** @param {Session} session */
export function maySeeSubmissions({ role }) {
  return role !== 'user';
}

/** @param {Session} session */
export function mayChangeSubmissions({ role }) {
  return role === 'service' || role === 'admin';
}

/** With forwarded upstream tokens, the upstream decides about access. @param {Session} session */
export function mayLookUpUsers({ role, users_bearer }) {
  return users_bearer === 'upstream' || role === 'user' || role === 'admin';
}

/** @param {Session} session */
export function mayListUsers({ users_bearer, ...session }) {
  return users_bearer === 'upstream' || isAdmin(session);
}

/** @param {Pick<Session, 'role'>} session */
export function isAdmin({ role }) {
  return role === 'admin';
}

/** Webhooks, deliveries, channels and mutes. @param {Session} session */
export function maySeeOperations({ role }) {
  return role === 'operator' || role === 'admin';
}

const CHANGED = 'dawatch-changed';

export function reloadAll() {
  window.dispatchEvent(new Event(CHANGED));
}

/**
 * @template T
 * @typedef {{ data: T | undefined, error: Error | undefined, isLoading: boolean, reload: () => void }} Loaded
 */

/**
 * Loads when the component mounts, when `of` or `version` changes, and on `reload`. The previous
 * data stays until new data arrives, and beside an error if it belongs to the same `of`. A reload
 * during a load follows it, because that load may have begun before a change.
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
  const isAgain = useRef(false);

  const start = useCallback(async () => {
    running.current?.abort();
    const controller = new AbortController();
    running.current = controller;
    isAgain.current = false;
    setState((before) => ({ ...before, isLoading: true }));
    const { load, of } = newest.current;
    const result = await load(controller.signal).then(
      (data) => ({ data, error: undefined }),
      (error) => ({ error }),
    );
    if (controller.signal.aborted) return;
    running.current = undefined;
    setState(({ data, dataOf }) => ({
      data: dataOf === of ? data : undefined,
      ...result,
      dataOf: of,
      isLoading: false,
    }));
    if (isAgain.current) void start();
  }, []);
  const reload = useCallback(() => {
    if (running.current) isAgain.current = true;
    else void start();
  }, []);

  useEffect(() => {
    void start();
    return () => running.current?.abort();
  }, [of, version]);
  useEffect(() => {
    window.addEventListener(CHANGED, reload);
    return () => window.removeEventListener(CHANGED, reload);
  }, []);

  const { data, error, isLoading } = state;
  return { data, error, isLoading, reload };
}

/** Minimum time between reloads, however many events arrive. */
const LEAST_MS = 2_000;

/**
 * Reloads after events that concern the page, and every `everyMs` if changes without an event
 * matter.
 * Never while the tab is hidden.
 * @param {() => void} reload
 * @param {number | undefined} everyMs
 * @param {(event: import('./feed.js').FeedEvent) => boolean} [concerns] default: every event does
 */
export function useLive(reload, everyMs, concerns = () => true) {
  const lastAt = useRef(Number.NEGATIVE_INFINITY);
  const timer = useRef(/** @type {number | undefined} */ (undefined));
  useEffect(() => () => clearTimeout(timer.current), []);
  const soon = () => {
    timer.current ??= setTimeout(
      () => {
        timer.current = undefined;
        lastAt.current = performance.now();
        reload();
      },
      Math.max(0, lastAt.current + LEAST_MS - performance.now()),
    );
  };
  useFeed(({ events, isWhole }) => {
    if (!isWhole || events.some(concerns)) soon();
  });
  useWhileVisible(soon, everyMs ?? 0, everyMs !== undefined);
}

export function useWhileVisible(work, everyMs, isOn = true) {
  const newest = useRef(work);
  newest.current = work;
  useEffect(() => {
    if (!isOn) return undefined;
    const run = () => document.hidden || newest.current();
    const timer = setInterval(run, everyMs);
    document.addEventListener('visibilitychange', run);
    return () => {
      clearInterval(timer);
      document.removeEventListener('visibilitychange', run);
    };
  }, [everyMs, isOn]);
}

/** @typedef {{ overview: Loaded<any>, alerts: Loaded<any> }} LiveData `alerts`: the firing ones */

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

function useKept(path, isAllowed, everyMs, concerns = (/** @type {any} */ _event) => true) {
  const { api } = useDashboard();
  const loaded = useLoad(
    async (signal) => (isAllowed ? await api.get(path, { signal }) : undefined),
    path,
  );
  useLive(() => isAllowed && loaded.reload(), everyMs, concerns);
  return loaded;
}

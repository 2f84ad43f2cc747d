import { useCallback, useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { AlertBanner } from '../alerts/alert-banner.js';
import { Api } from '../data/api.js';
import { DashboardContext, useDashboard, useFeedState } from '../data/context.js';
import { Feed } from '../data/feed.js';
import { reloadAll } from '../data/use-load.js';
import { Header } from '../frame/header.js';
import { firstFocus, shortcutsOf, useShortcutSetting, useShortcuts } from '../frame/shortcuts.js';
import { ShortcutsDialog } from '../frame/shortcuts-dialog.js';
import { PAGES } from '../pages.js';
import { html } from '../parts/html.js';
import { Empty } from '../parts/parts.js';
import { hrefTo, useRoute } from '../router.js';
import { maySeeSubmissions } from './access.js';

/**
 * @typedef {{ session: import('../data/context.js').Session, signOut: () => void, onEnded: (reason:
 * string) => void }} Props
 */

/** The frame of every page. @param {Props} props */
export function SignedIn({ session, signOut, onEnded }) {
  const [announce, announcements] = useAnnouncer();
  const isLeaving = useRef(false);
  const dashboard = useMemo(() => {
    const onRefused = () => isLeaving.current || onEnded('The session has ended. Sign in again.');
    const api = new Api({ onRefused });
    return { api, session, announce, feed: new Feed(api) };
  }, [session, announce, onEnded]);
  const leave = () => {
    isLeaving.current = true;
    signOut();
  };
  const isContinued = useRef(false);
  useEffect(() => {
    // The same person has begun a new session.
    if (isContinued.current) reloadAll();
    isContinued.current = true;
    if (!maySeeSubmissions(session)) return undefined;
    dashboard.feed.start();
    return () => dashboard.feed.stop();
  }, [dashboard, session]);

  const route = useRoute();
  const allowed = Object.entries(PAGES).filter(([, { may }]) => may(session));
  const isFirst = route.page === 'overview' && !maySeeSubmissions(session);
  const page = isFirst ? (allowed[0]?.[0] ?? '') : route.page;
  const hasFeed = maySeeSubmissions(session);
  const isLater = useRef(false);
  useEffect(() => {
    isLater.current = true;
    return () => {
      isLeaving.current = true;
    };
  }, []);

  const dialog = useRef(/** @type {HTMLDialogElement | null} */ (null));
  const [areKeysOn, setAreKeysOn] = useShortcutSetting();
  const showShortcuts = () => dialog.current?.showModal();
  const shortcuts = shortcutsOf(allowed, showShortcuts);
  useShortcuts(shortcuts, areKeysOn);

  const place = `${page}/${route.id ?? ''}`;
  return html`<${DashboardContext.Provider} value=${dashboard}>
    <a class="skip" href="#main" onClick=${skip}>Skip to content</a>
    <div class="frame">
      <${Header} pages=${allowed} page=${page} place=${place} signOut=${leave} showShortcuts=${showShortcuts} />
      <div class="content">
        ${hasFeed && html`<${Disconnected} />`}
        ${hasFeed && html`<${AlertBanner} />`}
        <${Main} key=${place} page=${page} route=${route} session=${session} isLater=${isLater.current} />
      </div>
    </div>
    <${ShortcutsDialog} dialog=${dialog} shortcuts=${shortcuts} isOn=${areKeysOn} setIsOn=${setAreKeysOn} />
    ${announcements}
  <//>`;
}

/**
 * `isLater`: false for the first page, which the browser announces itself.
 * @param {{ page: string, route: import('../router.js').Route, session: import('../data/context.js').Session, isLater: boolean }} props
 */
function Main({ page, route, session, isLater }) {
  const main = useRef(/** @type {HTMLElement | null} */ (null));
  /** @type {{ title: string, may: (session: any) => boolean, All: any, One?: any } | undefined} */
  const shown = Object.entries(PAGES).find(([name]) => name === page)?.[1];
  const View = shown?.may(session) ? (route.id === undefined ? shown.All : shown.One) : undefined;
  useEffect(() => {
    const heading = route.id === 'new' ? main.current?.querySelector('h1')?.textContent : route.id;
    document.title = `${View ? (heading ?? shown?.title) : 'Not found'} · dawatch`;
    if (isLater && main.current) firstFocus(main.current)?.focus();
  }, []);
  return html`<main id="main" ref=${main} tabindex="-1">
    ${
      View
        ? html`<${View} id=${route.id} query=${route.query} />`
        : html`<h1 tabindex="-1">Not found</h1>
          <${Empty} title="This page does not exist or you have no access to it."><p><a href=${hrefTo('overview')}>Overview</a></p><//>`
    }
  </main>`;
}

/**
 * Moves the focus without changing the hash, because the hash selects the page. @param {Event}
 * event
 */
function skip(event) {
  event.preventDefault();
  document.getElementById('main')?.focus();
}

/** Banner that is shown while the live feed is disconnected. */
function Disconnected() {
  const { feed, announce } = useDashboard();
  const state = useFeedState();
  const wasLost = useRef(false);
  useEffect(() => {
    if (state.kind === 'lost' && !wasLost.current)
      announce('Disconnected from the server. Trying again.');
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

/**
 * Minimum time between announcements, so that a screen reader can finish one. Of several within it,
 * the newest is announced.
 */
const EVERY_MS = 3_000;

/**
 * Text for assistive technology, in a polite live region. @returns {[(text: string) => void, any]}
 */
function useAnnouncer() {
  const [text, setText] = useState('');
  const next = useRef(/** @type {string | undefined} */ (undefined));
  const timer = useRef(/** @type {number | undefined} */ (undefined));
  useEffect(() => () => clearTimeout(timer.current), []);

  const show = useCallback(() => {
    timer.current = undefined;
    if (next.current === undefined) return;
    const { current } = next;
    // Screen readers announce only a text that differs from the previous one.
    setText((before) => (before === current ? `${current}\u00a0` : current));
    next.current = undefined;
    timer.current = setTimeout(show, EVERY_MS);
  }, []);
  const announce = useCallback((/** @type {string} */ message) => {
    next.current = message;
    if (timer.current === undefined) show();
  }, []);
  return [announce, html`<div class="unseen" role="status" aria-live="polite">${text}</div>`];
}

import { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { AlertBanner, AlertsPage } from '../alerts/alerts-page.js';
import { AuditPage } from '../audit/audit-page.js';
import { Api } from '../data/api.js';
import {
  DashboardContext,
  isAdmin,
  mayLookUpUsers,
  maySeeNotifications,
  maySeeOperations,
  maySeeSubmissions,
  refreshAll,
  reloadAll,
  useDashboard,
  useFeedState,
} from '../data/context.js';
import { Feed } from '../data/feed.js';
import { ChannelsPage } from '../notifications/channels-page.js';
import { DeliveriesPage } from '../notifications/deliveries-page.js';
import { WebhookPage } from '../notifications/webhook-page.js';
import { WebhooksPage } from '../notifications/webhooks-page.js';
import { OverviewPage } from '../overview/overview-page.js';
import { PacingPage } from '../pacing/pacing-page.js';
import { switchTimes, useAbsoluteTimes } from '../parts/format.js';
import { html } from '../parts/html.js';
import { Empty } from '../parts/parts.js';
import { ReportsPage } from '../reports/reports-page.js';
import { hrefTo, useRoute } from '../router.js';
import { SubmissionPage } from '../submissions/submission-page.js';
import { SubmissionsPage } from '../submissions/submissions-page.js';
import { TokensPage } from '../tokens/tokens-page.js';
import { UsersPage } from '../users/users-page.js';

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

/**
 * Pages by their name in the URL, in navigation order. `key`: a letter of its own, which opens it
 * after `g`; `All`: the list; `One`: the page of a single item.
 * @satisfies {Record<string, { title: string, key: string, may: (session: any) => boolean, All: any, One?: any }>}
 */
const PAGES = {
  overview: { title: 'Overview', key: 'o', may: maySeeSubmissions, All: OverviewPage },
  submissions: {
    title: 'Submissions',
    key: 's',
    may: maySeeSubmissions,
    All: SubmissionsPage,
    One: SubmissionPage,
  },
  pacing: { title: 'Pacing', key: 'p', may: maySeeSubmissions, All: PacingPage },
  reports: { title: 'Reports', key: 'r', may: maySeeSubmissions, All: ReportsPage },
  webhooks: {
    title: 'Webhooks',
    key: 'w',
    may: maySeeNotifications,
    All: WebhooksPage,
    One: WebhookPage,
  },
  deliveries: { title: 'Deliveries', key: 'd', may: maySeeNotifications, All: DeliveriesPage },
  channels: { title: 'Channels', key: 'c', may: maySeeOperations, All: ChannelsPage },
  alerts: { title: 'Alerts', key: 'a', may: maySeeSubmissions, All: AlertsPage },
  users: { title: 'Users', key: 'u', may: mayLookUpUsers, All: UsersPage },
  tokens: { title: 'Tokens', key: 't', may: isAdmin, All: TokensPage },
  audit: { title: 'Audit', key: 'l', may: isAdmin, All: AuditPage },
};

/**
 * The navigation, the state of the live feed, and the session. In a narrow window all but the state
 * is in a menu.
 * @param {{ pages: readonly [name: string, page: { title: string }][], page: string, place: string, signOut: () => void, showShortcuts: () => void }} props
 *   `place`: changes with each navigation, which closes the menu
 */
function Header({ pages, page, place, signOut, showShortcuts }) {
  const { session } = useDashboard();
  const areAbsolute = useAbsoluteTimes();
  const [isOpen, setIsOpen] = useState(false);
  useEffect(() => setIsOpen(false), [place]);
  const close = (/** @type {KeyboardEvent} */ { key }) => key === 'Escape' && setIsOpen(false);
  return html`<header class=${isOpen ? 'top open' : 'top'} onKeyDown=${close}>
    <a class="brand" href=${hrefTo('overview')}>dawatch</a>
    ${maySeeSubmissions(session) && html`<${Connection} />`}
    <button type="button" class="menu" aria-expanded=${isOpen} aria-controls="menu" onClick=${() => setIsOpen(!isOpen)}>Menu</button>
    <div class="folded" id="menu">
      <nav aria-label="Pages">
        <ul>
          ${pages.map(
            ([name, { title }]) => html`<li key=${name}>
              <a href=${hrefTo(name)} aria-current=${name === page ? 'page' : undefined}>${title}</a>
            </li>`,
          )}
        </ul>
      </nav>
      <div class="session">
        <dl class="who">
          <div>
            <dt>Signed in as</dt>
            <dd>${session.name} <span class="muted">(${session.role ?? session.scopes.join(', ')})</span></dd>
          </div>
        </dl>
        <button type="button" aria-pressed=${areAbsolute} onClick=${switchTimes}>Absolute times</button>
        <button type="button" onClick=${showShortcuts}>Keyboard shortcuts</button>
        <button type="button" onClick=${signOut}>Sign out</button>
      </div>
    </div>
  </header>`;
}

const LABELS = { connecting: 'Connecting…', live: 'Live', lost: 'Disconnected' };

/** State of the live feed. */
function Connection() {
  const state = useFeedState();
  return html`<span class="connection ${state.kind}">${LABELS[state.kind]}</span>`;
}

/**
 * The list of shortcuts, and the switch that turns them off, which users of speech input need.
 * Closed until `showModal` is called.
 * @param {{ dialog: { current: HTMLDialogElement | null }, shortcuts: readonly Shortcut[], isOn: boolean, setIsOn: (isOn: boolean) => void }} props
 */
function ShortcutsDialog({ dialog, shortcuts, isOn, setIsOn }) {
  return html`<dialog class="shortcuts" ref=${dialog} aria-labelledby="shortcuts">
    <div class="title">
      <h2 id="shortcuts">Keyboard shortcuts</h2>
      <button type="button" onClick=${() => dialog.current?.close()}>Close</button>
    </div>
    <dl>
      ${shortcuts.map(
        ({ keys, title }) => html`<div key=${keys}>
          <dt>${keys.split(' ').map((key) => html`<kbd key=${key}>${key}</kbd>`)}</dt>
          <dd>${title}</dd>
        </div>`,
      )}
    </dl>
    <label>
      <input type="checkbox" checked=${isOn} onChange=${(/** @type {any} */ event) => setIsOn(event.target.checked)} />
      ${' '}Shortcuts are on
    </label>
  </dialog>`;
}

/** Maximum time between two keys of a sequence. */
const SEQUENCE_MS = 1_500;
const STORED = 'dawatch.shortcuts';
const NOT_HERE =
  'input:not([type="checkbox"], [type="radio"]), textarea, select, [contenteditable]';
const ROW = 'main tbody tr:has(> th[scope="row"])';
const TARGET = ':is(a, button)';

/**
 * @typedef {{ keys: string, title: string, run?: () => void }} Shortcut `keys`: pressed one after
 * another; without `run`, the browser acts
 */

/**
 * Every shortcut of the dashboard.
 * @param {readonly [name: string, page: { title: string, key: string }][]} pages those of this session
 * @param {() => void} showList
 * @returns {readonly Shortcut[]}
 */
function shortcutsOf(pages, showList) {
  return [
    { keys: '?', title: 'Show this list', run: showList },
    ...(pages.some(([name]) => name === 'submissions')
      ? [{ keys: '/', title: 'Search', run: search }]
      : []),
    { keys: 'r', title: 'Refresh the page', run: refreshAll },
    { keys: 't', title: 'Absolute or relative times', run: switchTimes },
    { keys: 'j', title: 'Next row', run: () => moveToRow(1) },
    { keys: 'k', title: 'Previous row', run: () => moveToRow(-1) },
    { keys: 'Enter', title: 'Open the row' },
    ...pages.map(([name, { title, key }]) => {
      return {
        keys: `g ${key}`,
        title: `Go to ${title}`,
        run: () => location.assign(hrefTo(name)),
      };
    }),
  ];
}

/**
 * Runs shortcuts when their keys are pressed, except in fields, in dialogs, and with modifiers.
 * @param {readonly Shortcut[]} shortcuts @param {boolean} isOn
 */
function useShortcuts(shortcuts, isOn) {
  const newest = useRef(shortcuts);
  newest.current = shortcuts;
  useLayoutEffect(() => {
    if (!isOn) return undefined;
    let previous = { key: '', at: 0 };
    const press = (/** @type {KeyboardEvent} */ event) => {
      if (isForPage(event)) return;
      // Caps Lock changes the key to a capital letter.
      const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
      const isSequence = previous.key !== '' && event.timeStamp - previous.at < SEQUENCE_MS;
      const keys = isSequence ? `${previous.key} ${key}` : key;
      const run = newest.current.find((shortcut) => shortcut.keys === keys)?.run;
      const isFirst =
        !isSequence && newest.current.some((shortcut) => shortcut.keys.startsWith(`${key} `));
      previous = { key: isFirst ? key : '', at: event.timeStamp };
      if (!run) return;
      event.preventDefault();
      run();
    };
    document.addEventListener('keydown', press);
    return () => document.removeEventListener('keydown', press);
  }, [isOn]);
}

/**
 * Whether shortcuts are on. The choice is stored in the browser. @returns {[boolean, (isOn:
 * boolean) => void]}
 */
function useShortcutSetting() {
  const [isOn, setIsOn] = useState(() => localStorage.getItem(STORED) !== 'off');
  const change = (/** @type {boolean} */ wanted) => {
    localStorage.setItem(STORED, wanted ? 'on' : 'off');
    setIsOn(wanted);
  };
  return [isOn, change];
}

/** @param {KeyboardEvent} event */
function isForPage(event) {
  const { target, key, defaultPrevented, ctrlKey, altKey, metaKey, shiftKey, isComposing } = event;
  if (defaultPrevented || ctrlKey || altKey || metaKey || isComposing || key === 'Shift')
    return true;
  if (shiftKey && /^[a-z]$/i.test(key)) return true;
  return (
    (target instanceof Element && target.closest(NOT_HERE) !== null) ||
    document.querySelector('dialog[open]') !== null
  );
}

/** Whether the next page is opened for its search field. */
let isSearching = false;

/** Moves the focus to the search field of the page, or opens the list of submissions for it. */
function search() {
  const field = searchFieldIn(document);
  if (field) return field.select();
  isSearching = true;
  location.assign(hrefTo('submissions'));
}

/**
 * Returns the element of a new page that gets the focus: its title, or its search field after `/`.
 * @param {ParentNode} page
 */
function firstFocus(page) {
  const field = isSearching ? searchFieldIn(page) : null;
  isSearching = false;
  return field ?? page.querySelector('h1');
}

/** @param {ParentNode} page @returns {HTMLInputElement | null} */
function searchFieldIn(page) {
  return page.querySelector('input[type="search"]');
}

/**
 * Moves the focus to another row: to the link in its first cell, or else to its first link or
 * button. @param {1 | -1} step
 */
function moveToRow(step) {
  const rows = [...document.querySelectorAll(ROW)].flatMap((row) => {
    const target = row.querySelector(`th ${TARGET}`) ?? row.querySelector(TARGET);
    return target instanceof HTMLElement ? [{ row, target }] : [];
  });
  const now = rows.findIndex(({ row }) => row.contains(document.activeElement));
  const next = now < 0 ? 0 : Math.min(rows.length - 1, Math.max(0, now + step));
  rows[next]?.target.focus();
}

import { useCallback, useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { AlertPage, AlertsPage } from '../alerts/alerts-page.js';
import { AlertNotice } from '../alerts/problems.js';
import { AuditPage } from '../audit/audit-page.js';
import { Api } from '../data/api.js';
import {
  DashboardContext,
  isAdmin,
  LiveDataProvider,
  mayLookUpUsers,
  maySeeOperations,
  maySeeSubmissions,
  useDashboard,
  useFeedState,
  useLiveData,
} from '../data/context.js';
import { Feed } from '../data/feed.js';
import { setPreference, usePreference } from '../data/preferences.js';
import { ChannelsPage } from '../notifications/channels-page.js';
import { DeliveriesPage, DeliveryPage } from '../notifications/deliveries-page.js';
import { WebhookPage } from '../notifications/webhook-page.js';
import { WebhooksPage } from '../notifications/webhooks-page.js';
import { OverviewPage } from '../overview/overview-page.js';
import { PacingPage } from '../pacing/pacing-page.js';
import { count } from '../parts/format.js';
import { html, Icon, Mark } from '../parts/html.js';
import { Empty, PageHeader } from '../parts/parts.js';
import { hrefTo, useRoute } from '../router.js';
import { SubmissionPage } from '../submissions/submission-page.js';
import { OPEN_STATUSES } from '../submissions/submission-table.js';
import { SubmissionsPage } from '../submissions/submissions-page.js';
import { TokensPage } from '../tokens/tokens-page.js';
import { UsersPage } from '../users/users-page.js';
import { Keyboard } from './keyboard.js';

/**
 * The frame of every page. `onEnded`: called when the server refuses the session.
 * @param {{ session: import('../data/context.js').Session, signOut: () => void, onEnded: () => void }} props
 */
export function SignedIn({ session, signOut, onEnded }) {
  const [announce, announcements] = useAnnouncer();
  const dashboard = useMemo(() => {
    const api = new Api({ onRefused: onEnded });
    return { api, session, announce, feed: new Feed(api) };
  }, [session, announce, onEnded]);
  const hasFeed = maySeeSubmissions(session);
  useEffect(() => {
    if (!hasFeed) return undefined;
    dashboard.feed.connect();
    return () => dashboard.feed.stop();
  }, [dashboard]);

  const route = useRoute();
  const allowed = Object.entries(PAGES).filter(([, { may }]) => may(session));
  const isFirst = route.page === 'overview' && !hasFeed;
  const page = isFirst ? (allowed[0]?.[0] ?? '') : route.page;
  const isLater = useRef(false);
  useEffect(() => {
    isLater.current = true;
  }, []);

  const place = `${page}/${route.id ?? ''}`;
  return html`<${DashboardContext.Provider} value=${dashboard}>
    <a class="skip" href="#main" onClick=${skip}>Skip to content</a>
    <${LiveDataProvider}>
      <div class="frame">
        <${Navigation} pages=${allowed} page=${page} place=${place} signOut=${signOut} />
        <div class="content">
          ${hasFeed && html`<${Disconnected} />`}
          ${hasFeed && html`<${AlertNotice} isHidden=${['overview/', 'alerts/'].includes(place)} />`}
          <${Main} key=${place} page=${page} route=${route} session=${session} isLater=${isLater.current} />
        </div>
      </div>
    <//>
    ${announcements}
  <//>`;
}

/**
 * `isLater`: false for the first page, which the browser announces itself.
 * @param {{ page: string, route: import('../router.js').Route, session: import('../data/context.js').Session, isLater: boolean }} props
 */
function Main({ page, route, session, isLater }) {
  const main = useRef(/** @type {HTMLElement | null} */ (null));
  const found = Object.hasOwn(PAGES, page) ? PAGES[page] : undefined;
  const View = found?.may(session) ? (route.id === undefined ? found.All : found.One) : undefined;
  useEffect(() => {
    document.title = `${View ? (route.id ?? found?.title) : 'Not found'} · dawatch`;
    if (isLater) main.current?.querySelector('h1')?.focus();
  }, []);
  return html`<main id="main" ref=${main} tabindex="-1">
    ${
      View
        ? html`<${View} id=${route.id} query=${route.query} />`
        : html`<${PageHeader} title="Not found" />
          <${Empty} title="This page does not exist or you have no access to it."><p><a href=${hrefTo('overview')}>Overview</a></p><//>`
    }
  </main>`;
}

/** Moves the focus without changing the hash, because the hash selects the page. */
function skip(event) {
  event.preventDefault();
  document.getElementById('main')?.focus();
}

function Disconnected() {
  const { feed, announce } = useDashboard();
  const state = useFeedState();
  const wasLost = useRef(false);
  useEffect(() => {
    if (state === 'lost' && !wasLost.current)
      announce('Disconnected from the server. Trying again.');
    if (state === 'live' && wasLost.current) announce('Reconnected.');
    wasLost.current = state === 'lost';
  }, [state]);
  if (state !== 'lost') return null;
  return html`<section class="notice disconnected" aria-label="Connection">
    <span>Disconnected: this page may be outdated. Trying again…</span>
    <button type="button" onClick=${() => feed.connect()}>Try now</button>
  </section>`;
}

/** For assistive technology. @returns {[(text: string) => void, any]} */
function useAnnouncer() {
  const [text, setText] = useState('');
  const announce = useCallback((message) => {
    // Screen readers announce only a text that differs from the previous one.
    setText((before) => (before === message ? `${message}\u00a0` : message));
  }, []);
  return [announce, html`<div class="unseen" role="status" aria-live="polite">${text}</div>`];
}

const MONITOR = { group: 'Monitor', may: maySeeSubmissions };
const NOTIFY = { group: 'Notify', may: maySeeOperations };
const MANAGE = { group: 'Manage', may: isAdmin };
/**
 * Pages by their name in the URL, in navigation order. `All`: the list; `One`: the page of a single
 * item.
 * @type {Record<string, { title: string, group: string, may: (session: any) => boolean, All: any, One?: any }>}
 */
const PAGES = {
  overview: { title: 'Overview', ...MONITOR, All: OverviewPage },
  submissions: { title: 'Submissions', ...MONITOR, All: SubmissionsPage, One: SubmissionPage },
  pacing: { title: 'Pacing', ...MONITOR, All: PacingPage },
  alerts: { title: 'Alerts', ...MONITOR, All: AlertsPage, One: AlertPage },
  webhooks: { title: 'Webhooks', ...NOTIFY, All: WebhooksPage, One: WebhookPage },
  channels: { title: 'Channels', ...NOTIFY, All: ChannelsPage },
  deliveries: { title: 'Deliveries', ...NOTIFY, All: DeliveriesPage, One: DeliveryPage },
  users: { title: 'Users', ...MANAGE, may: mayLookUpUsers, All: UsersPage },
  tokens: { title: 'Tokens', ...MANAGE, All: TokensPage },
  audit: { title: 'Audit', ...MANAGE, All: AuditPage },
};

const THEMES = { system: 'System theme', light: 'Light theme', dark: 'Dark theme' };

/** @typedef {{ title: string, group: string }} Named */

/**
 * The navigation, the state of the live feed, and the session. In a narrow window all but the state
 * is in a menu.
 * @param {{ pages: readonly [name: string, page: Named][], page: string, place: string, signOut: () => void }} props
 *   `place`: changes with each navigation, which closes the menu
 */
function Navigation({ pages, page, place, signOut }) {
  const { session } = useDashboard();
  const areAbsolute = usePreference('times', 'relative') === 'absolute';
  const theme = usePreference('theme', 'system');
  const [isOpen, setIsOpen] = useState(false);
  useEffect(() => setIsOpen(false), [place]);
  const close = ({ key }) => key === 'Escape' && setIsOpen(false);
  const groups = [...new Set(pages.map(([, { group }]) => group))];
  return html`<header class=${isOpen ? 'top open' : 'top'} onKeyDown=${close}>
    <a class="brand" href=${hrefTo('overview')}><${Mark} />dawatch</a>
    ${maySeeSubmissions(session) && html`<${Connection} />`}
    <button type="button" class="menu" aria-expanded=${isOpen} aria-controls="menu" onClick=${() => setIsOpen(!isOpen)}>
      <${Icon} name="menu" />Menu
    </button>
    <div class="folded" id="menu">
      <nav aria-label="Pages">
        ${groups.map(
          (group) => html`<div key=${group}>
            <h2>${group}</h2>
            <ul>
              ${pages
                .filter(([, one]) => one.group === group)
                .map(
                  ([name, { title }]) => html`<li key=${name}>
                    <a href=${hrefTo(name)} aria-current=${name === page ? 'page' : undefined}>
                      <${Icon} name=${name} />${title} <${Counter} page=${name} />
                    </a>
                  </li>`,
                )}
            </ul>
          </div>`,
        )}
      </nav>
      <div class="session">
        <p>
          <span class="muted">Signed in as</span> ${session.name} <span class="muted">(${session.role})</span>
        </p>
        <button type="button" aria-pressed=${areAbsolute} onClick=${() => setPreference('times', areAbsolute ? 'relative' : 'absolute')}><${Icon} name="clock" />Absolute times</button>
        <select aria-label="Theme" onChange=${({ target }) => setPreference('theme', target.value)}>
          ${Object.entries(THEMES).map(([name, label]) => html`<option key=${name} value=${name} selected=${name === theme}>${label}</option>`)}
        </select>
        <${Keyboard} place=${place} />
        <button type="button" onClick=${signOut}><${Icon} name="out" />Sign out</button>
      </div>
    </div>
  </header>`;
}

function Counter({ page }) {
  const { overview, alerts } = useLiveData();
  const { submissions, deliveries } = overview.data ?? {};
  /** @type {Record<string, [number: number | undefined, about: string]>} */
  const counters = {
    submissions: [
      submissions && OPEN_STATUSES.reduce((sum, status) => sum + (submissions[status] ?? 0), 0),
      'open',
    ],
    alerts: [alerts.data?.alerts.length, 'firing'],
    deliveries: [deliveries?.dead, 'dead letters'],
  };
  const [number, about] = counters[page] ?? [];
  if (!number) return null;
  return html`<span class=${page === 'submissions' ? 'number' : 'number wrong'} title=${about}>${count(number)}<span class="unseen"> ${about}</span></span>`;
}

const LABELS = { connecting: 'Connecting…', live: 'Live', lost: 'Disconnected' };

function Connection() {
  const state = useFeedState();
  return html`<span class="connection ${state}">${LABELS[state]}</span>`;
}

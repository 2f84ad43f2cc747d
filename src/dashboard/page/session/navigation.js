import { useEffect, useState } from 'preact/hooks';
import { maySeeSubmissions, useDashboard, useFeedState, useLiveData } from '../data/context.js';
import { count, switchTimes, useAbsoluteTimes } from '../parts/format.js';
import { html } from '../parts/html.js';
import { Icon } from '../parts/icons.js';
import { hrefTo } from '../router.js';
import { OPEN_STATUSES } from '../submissions/submission-table.js';

/** @typedef {{ title: string, group: string }} Named */

/**
 * The navigation, the state of the live feed, and the session. In a narrow window all but the state
 * is in a menu.
 * @param {{ pages: readonly [name: string, page: Named][], page: string, place: string, signOut: () => void }} props
 *   `place`: changes with each navigation, which closes the menu
 */
export function Navigation({ pages, page, place, signOut }) {
  const { session } = useDashboard();
  const areAbsolute = useAbsoluteTimes();
  const [isOpen, setIsOpen] = useState(false);
  useEffect(() => setIsOpen(false), [place]);
  const close = ({ key }) => key === 'Escape' && setIsOpen(false);
  const groups = [...new Set(pages.map(([, { group }]) => group))];
  return html`<header class=${isOpen ? 'top open' : 'top'} onKeyDown=${close}>
    <a class="brand" href=${hrefTo('overview')}>dawatch</a>
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
                      <${Icon} name=${name} />${title}
                    </a>
                    <${Counter} page=${name} />
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
        <button type="button" aria-pressed=${areAbsolute} onClick=${switchTimes}><${Icon} name="clock" />Absolute times</button>
        <button type="button" onClick=${signOut}><${Icon} name="out" />Sign out</button>
      </div>
    </div>
  </header>`;
}

/** What waits for attention on a page. */
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

/** State of the live feed. */
function Connection() {
  const state = useFeedState();
  return html`<span class="connection ${state}">${LABELS[state]}</span>`;
}

import { useEffect, useState } from 'preact/hooks';
import { useDashboard, useFeedState } from '../data/context.js';
import { html } from '../parts/html.js';
import { switchTimes, useAbsoluteTimes } from '../parts/times.js';
import { hrefTo } from '../router.js';
import { maySeeSubmissions } from '../session/access.js';

/**
 * The navigation, the state of the live feed, and the session. In a narrow window all but the state
 * is in a menu.
 * @param {{ pages: readonly [name: string, page: { title: string }][], page: string, place: string, signOut: () => void, showShortcuts: () => void }} props
 *   `place`: changes with each navigation, which closes the menu
 */
export function Header({ pages, page, place, signOut, showShortcuts }) {
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

import { useRef, useState } from 'preact/hooks';
import { withQuery } from '../data/api.js';
import { useDashboard, useFeed } from '../data/context.js';
import { reloadAll, useLoad, useThrottled, useWhileVisible } from '../data/use-load.js';
import { conditionsIn, UnknownFilters } from '../parts/filters.js';
import { count } from '../parts/format.js';
import { html } from '../parts/html.js';
import { Pager } from '../parts/pager.js';
import { Action, Badge, Empty, Loadable, Time } from '../parts/parts.js';
import { Table } from '../parts/table.js';
import { hrefTo } from '../router.js';
import { isAdmin, maySeeOperations } from '../session/access.js';
import { Acknowledgement } from './alert-banner.js';
import { MuteForm, Mutes } from './mutes.js';

const PER_PAGE = 50;
const REFRESH_MS = 30_000;
const RELOAD_EVERY_MS = 1_000;
const STATES = ['firing', 'resolved', 'all'];

/**
 * @typedef {import('./alert-banner.js').Alert & { count: number | null, firing: boolean,
 * resolved_at: string | null }} Alert
 */
/**
 * @typedef {{ id: number, rule: string | null, subject: string | null, from: string, until: string,
 * active: boolean, reason: string, created_by: string }} Mute
 */
/** @typedef {{ rule: string, subject: string }} Covered what the form mutes; empty: all */

/** The alerts, the mutes and the maintenance windows. @param {{ query: URLSearchParams }} props */
export function AlertsPage({ query }) {
  const { api, session } = useDashboard();
  const { given, cursor, unknown } = conditionsIn(query, ['state']);
  const state = given.state || 'firing';
  const path = withQuery('v1/alerts', { state, cursor, limit: PER_PAGE });
  const alerts = useLoad((signal) => api.get(path, { signal }), path);
  const seesMutes = maySeeOperations(session);
  const mutes = useLoad(
    async (signal) =>
      seesMutes ? await api.get('v1/mutes?limit=1000', { signal }) : { mutes: [] },
    'mutes',
  );
  const [covered, setCovered] = useState(/** @type {Covered | undefined} */ (undefined));
  const plan = useRef(/** @type {HTMLElement | null} */ (null));
  const closeForm = () => {
    setCovered(undefined);
    plan.current?.focus();
  };
  const reload = () => {
    alerts.reload();
    mutes.reload();
  };
  useWhileVisible(() => {
    alerts.refresh();
    mutes.refresh();
  }, REFRESH_MS);
  const reloadSoon = useThrottled(reload, RELOAD_EVERY_MS);
  useFeed(({ events, isWhole }) => {
    if (!isWhole || events.some(({ type }) => type.startsWith('alert.'))) reloadSoon();
  });
  if (unknown.length > 0)
    return html`<h1 tabindex="-1">Alerts</h1>
      <${UnknownFilters} names=${unknown} href=${hrefTo('alerts', undefined, given)} />`;
  const mayChange = isAdmin(session);
  const columns = mayChange
    ? [...COLUMNS, actionsColumn({ mutes: mutes.data?.mutes ?? [], mute: setCovered })]
    : COLUMNS;

  return html`<h1 tabindex="-1">Alerts</h1>
    <div class="filter">
      <label>
        <span>State</span>
        <select
          onChange=${(/** @type {any} */ event) => {
            location.hash = hrefTo('alerts', undefined, { state: event.target.value });
          }}
        >
          ${STATES.map((name) => html`<option key=${name} value=${name} selected=${name === state}>${name}</option>`)}
        </select>
      </label>
      <button type="button" onClick=${reload}>Refresh</button>
      ${mayChange && html`<button type="button" ref=${plan} onClick=${() => setCovered({ rule: '', subject: '' })}>Plan a maintenance window</button>`}
    </div>
    ${!mayChange && html`<p class="muted">This session cannot acknowledge or mute alerts.</p>`}
    ${
      covered &&
      html`<${MuteForm}
        key=${`${covered.rule} ${covered.subject}`}
        covered=${covered}
        onMuted=${() => {
          closeForm();
          reloadAll();
        }}
        onCancel=${closeForm}
      />`
    }
    <${Loadable} loaded=${alerts}>
      ${(/** @type {{ alerts: Alert[], next_cursor: string | null }} */ page) => html`
        ${
          page.alerts.length === 0
            ? html`<${Empty} title=${state === 'firing' ? 'No alert is firing.' : 'No alerts.'}><p>Resolved alerts are kept for 30 days.</p><//>`
            : html`<${Table} caption=${`Alerts${state === 'all' ? '' : ` that are ${state}`}, newest first`} columns=${columns} rows=${page.alerts} />`
        }
        <${Pager}
          key=${state}
          cursor=${cursor}
          next=${page.next_cursor}
          to=${(/** @type {string | undefined} */ place) => hrefTo('alerts', undefined, { state, cursor: place })}
        />
      `}
    <//>
    ${seesMutes && html`<${Mutes} loaded=${mutes} mayChange=${mayChange} />`}`;
}

/** @type {readonly import('../parts/table.js').Column[]} */
const COLUMNS = [
  // The link may name another address of this server.
  {
    title: 'Alert',
    cell: ({ summary, link }) =>
      html`<a class="summary" href=${link.slice(link.indexOf('#'))}>${summary}</a>`,
  },
  {
    title: 'Rule',
    cell: ({ rule, subject }) => html`${rule} <span class="muted id">${subject}</span>`,
  },
  {
    title: 'Affected',
    class: 'number',
    cell: (alert) => (alert.count === null ? '' : count(alert.count)),
  },
  { title: 'Since', cell: ({ since }) => html`<${Time} at=${since} />` },
  { title: 'State', cell: (alert) => html`<${State} alert=${alert} />` },
];

/** @param {{ alert: Alert }} props */
function State({ alert: { firing, resolved_at, acknowledged, muted_until } }) {
  return html`<${Badge} state=${firing ? 'failed' : 'closed'} label=${firing ? 'firing' : 'resolved'} />
    ${resolved_at !== null && html` <${Time} at=${resolved_at} />`}
    ${acknowledged && html`<br /><span class="muted">acknowledged by ${acknowledged.by} <${Time} at=${acknowledged.at} /></span>`}
    ${muted_until !== null && html`<br /><span class="muted">mute ends <${Time} at=${muted_until} /></span>`}`;
}

/** @typedef {{ mutes: readonly Mute[], mute: (covered: Covered) => void }} Handling */

/** @param {Handling} handling @returns {import('../parts/table.js').Column} */
function actionsColumn(handling) {
  return {
    title: 'Action',
    cell: (alert) => alert.firing && html`<${Actions} alert=${alert} ...${handling} />`,
  };
}

/** @param {{ alert: Alert } & Handling} props */
function Actions({ alert, mutes, mute }) {
  const { api, announce } = useDashboard();
  const { rule, subject, summary } = alert;
  // A mute that covers other alerts, too, is ended in the list of mutes, which shows its whole
  // scope.
  const own = mutes.find((one) => one.active && one.rule === rule && one.subject === subject);
  const unmute = async () => {
    await api.delete(`v1/mutes/${own?.id}`);
    announce('The mute has ended.');
    reloadAll();
    return '';
  };
  return html`<div class="action">
    <${Acknowledgement} alert=${alert} />
    ${
      own
        ? html`<${Action} key="unmute" label="Unmute" name=${`Unmute: ${summary}`} act=${unmute} />`
        : html`<button type="button" aria-label=${`Mute: ${summary}`} onClick=${() => mute({ rule, subject })}>Mute</button>`
    }
  </div>`;
}

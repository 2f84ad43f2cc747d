import { useEffect, useRef } from 'preact/hooks';
import {
  isAdmin,
  isAlert,
  maySeeOperations,
  reloadAll,
  useDashboard,
  useLive,
  useLiveData,
  useLoad,
} from '../data/context.js';
import { fromUtcText, invalidField, TextField, textOf, toUtcText } from '../parts/form.js';
import { count } from '../parts/format.js';
import { html, Icon } from '../parts/html.js';
import { List, useList } from '../parts/list.js';
import { Action, Badge, Command, Empty, Loadable, PageHeader, Tabs, Time } from '../parts/parts.js';
import { Table } from '../parts/table.js';
import { hrefTo } from '../router.js';

/** @import { Alert, Mute, MuteList } from '../../../client/api.ts' */

const REFRESH_MS = 30_000;
/** @type {Record<string, string>} */
const TITLES = { firing: 'Firing', resolved: 'Resolved', all: 'All' };

export function AlertsPage({ query }) {
  const { api, session } = useDashboard();
  const list = useList('v1/alerts', { query });
  const seesMutes = maySeeOperations(session);
  const mutes = useLoad(
    async (signal) => (seesMutes ? await api.get('v1/mutes', { signal }) : { mutes: [] }),
    'mutes',
  );
  const reload = () => {
    list.loaded.reload();
    mutes.reload();
  };
  useLive(reload, REFRESH_MS, isAlert);
  const mayChange = isAdmin(session);
  const { state = 'firing' } = list.filters;
  const columns = COLUMNS.filter(({ title }) => title !== 'State' || state === 'all');
  if (mayChange) columns.push(muteColumn(mutes.data?.mutes ?? []));

  return html`<${PageHeader} title="Alerts" about=${!mayChange && 'This session cannot mute alerts.'}>
      ${mayChange && html`<${MuteAction} label="Mute all alerts" rule=${null} subject=${null} />`}
    <//>
    <${Tabs} label="Alerts by state" of=${['firing', 'resolved', 'all'].map((one) => ({ label: TITLES[one], href: list.hrefOf({ state: one === 'firing' ? undefined : one }), isCurrent: one === state }))} />
    <${List}
      list=${list}
      of="alerts"
      caption=${`Alerts${state === 'all' ? '' : ` that are ${state}`}, newest first`}
      columns=${columns}
      empty=${html`<${Empty} title=${state === 'firing' ? 'No alert is firing.' : 'No alerts.'}>
        <p>Resolved alerts are kept for 30 days. The same list in a terminal or a script:</p>
        <${Command}>npx dawatch api '/v1/alerts?state=all'<//>
      <//>`}
    />
    ${seesMutes && html`<${Mutes} loaded=${mutes} mayChange=${mayChange} />`}`;
}

/** @type {readonly import('../parts/table.js').Column<Alert>[]} */
const COLUMNS = [
  {
    title: 'Alert',
    class: 'wraps',
    cell: (alert) => html`<a href=${pageOf(alert)}>${alert.summary}</a>`,
  },
  {
    title: 'Rule',
    class: 'from-l',
    width: 12,
    cell: ({ rule, subject }) => html`${rule} <span class="muted id">${subject}</span>`,
  },
  { title: 'Since', width: 7, cell: ({ since }) => html`<${Time} at=${since} />` },
  {
    title: 'State',
    width: 6.5,
    cell: ({ firing }) =>
      html`<${Badge} state=${firing ? 'failed' : 'up'} label=${firing ? 'firing' : 'resolved'} />`,
  },
  {
    title: 'Handled',
    class: 'from-m',
    width: 13,
    has: ({ resolved_at, muted_until }) => resolved_at ?? muted_until,
    cell: ({ resolved_at, muted_until }) => html`
      ${resolved_at !== null && html`resolved <${Time} at=${resolved_at} /> `}
      ${muted_until !== null && html`mute ends <${Time} at=${muted_until} />`}
    `,
  },
];

/** @param {readonly Mute[]} mutes @returns {import('../parts/table.js').Column<Alert>} */
function muteColumn(mutes) {
  return {
    title: 'Action',
    width: 7,
    class: 'end',
    cell: ({ id, firing, rule, subject, summary }) => {
      // An alert without an id is not in the ledger.
      if (!firing || id <= 0) return null;
      // A mute that covers other alerts, too, is ended in the list of mutes.
      const mute = mutes.find((one) => one.rule === rule && one.subject === subject);
      return mute
        ? html`<${End} key="unmute" mute=${mute} label="Unmute" name=${`Unmute: ${summary}`} />`
        : html`<${MuteAction} key="mute" label="Mute" name=${`Mute: ${summary}`} rule=${rule} subject=${subject} />`;
    },
  };
}

/** The newest firing alert that nobody has muted, and the number of others, as one line. */
export function AlertNotice({ isHidden }) {
  const { announce } = useDashboard();
  const { data } = useLiveData().alerts;
  /** @type {readonly Alert[]} */
  const alerts = data?.alerts ?? [];
  const loud = alerts.filter(({ muted_until }) => muted_until === null);
  const announced = useRef(/** @type {Set<number>} */ (new Set()));
  useEffect(() => {
    const added = loud.find(({ id }) => !announced.current.has(id));
    if (added) announce(`Alert: ${added.summary}`);
    announced.current = new Set(loud.map(({ id }) => id));
  }, [data]);

  if (alerts.length === 0 || isHidden) return null;
  const [alert, ...others] = loud;
  const muted = alerts.length - loud.length;
  const rest = [
    others.length > 0 && `${count(others.length)} more`,
    muted > 0 && `${count(muted)} muted`,
  ].filter(Boolean);
  return html`<section class="notice" aria-label="Alerts">
    ${
      alert &&
      html`<${Icon} name="warning" />
        <a class="text" href=${pageOf(alert)} title=${alert.summary}>${alert.summary}</a>
        <span class="since muted">began <${Time} at=${alert.since} /></span>`
    }
    <a class="all" href=${hrefTo('alerts')}>${rest.join(', ') || 'Details'}</a>
  </section>`;
}

/**
 * The page about an alert. Its link may name another address of this server. @param {Alert} alert
 */
function pageOf({ link }) {
  return link.slice(link.indexOf('#'));
}

const MIN_MS = 60_000;
const HOUR_MS = 60 * MIN_MS;

/** Mutes an alert, or with null all alerts, until a time. */
function MuteAction({ label, name = label, rule, subject }) {
  const { api } = useDashboard();
  const mute = async (form) => {
    const until = fromUtcText(textOf(form, 'until'));
    if (until === '') throw invalidField('until', 'write a date and a time like 2026-01-31 14:00');
    await api.post('v1/mutes', { rule, subject, until, reason: textOf(form, 'reason') });
    reloadAll();
    return 'The alerts are muted.';
  };
  const until = toUtcText(Math.floor(Date.now() / MIN_MS) * MIN_MS + HOUR_MS);
  return html`<${Action} label=${label} name=${name} title=${name} submit="Mute" fields=${['until', 'reason']} act=${mute}>
    ${(errorOf) => html`
      <p class="muted">Alerts that begin meanwhile are recorded and not sent. Those that still fire at the end are sent then.</p>
      <${TextField} label="Until" name="until" value=${until} hint="UTC, like 2026-01-31 14:00" error=${errorOf('until')} />
      <${TextField} label="Reason" name="reason" error=${errorOf('reason')} />
    `}
  <//>`;
}

/** @param {{ loaded: import('../data/context.js').Loaded<MuteList>, mayChange: boolean }} props */
function Mutes({ loaded, mayChange }) {
  const columns = mayChange ? [...MUTE_COLUMNS, END_COLUMN] : MUTE_COLUMNS;
  return html`<section aria-labelledby="mutes">
    <h2 id="mutes">Mutes</h2>
    <${Loadable} loaded=${loaded}>
      ${(/** @type {MuteList} */ { mutes }) =>
        mutes.length === 0
          ? html`<p class="muted">Nothing is muted.</p>`
          : html`<${Table} caption="Mutes, newest first" hidesCaption columns=${columns} rows=${mutes} />`}
    <//>
  </section>`;
}

/** @type {readonly import('../parts/table.js').Column<Mute>[]} */
const MUTE_COLUMNS = [
  { title: 'Covers', width: 14, cell: (mute) => coveredBy(mute) },
  { title: 'Until', width: 8, cell: ({ until }) => html`<${Time} at=${until} />` },
  { title: 'Reason', cell: ({ reason }) => reason },
  { title: 'By', width: 12, class: 'from-l', cell: ({ created_by }) => created_by },
];

/** @param {Mute} mute */
function coveredBy({ rule, subject }) {
  if (rule === null) return 'all alerts';
  return subject === null ? `all ${rule}` : `${rule} ${subject}`;
}

/** @type {import('../parts/table.js').Column<Mute>} */
const END_COLUMN = {
  title: 'Action',
  width: 7,
  class: 'end',
  cell: (mute) =>
    html`<${End} mute=${mute} label="End" name=${`End the mute of ${coveredBy(mute)}`} />`,
};

/** @param {{ mute: Mute, label: string, name: string }} props */
function End({ mute, label, name }) {
  const { api } = useDashboard();
  const end = async () => {
    await api.delete(`v1/mutes/${mute.id}`);
    reloadAll();
    return 'The mute has ended.';
  };
  return html`<${Action} label=${label} name=${name} confirm="Alerts that it covers and that still fire are sent now." act=${end} />`;
}

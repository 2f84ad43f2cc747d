import { useEffect, useRef, useState } from 'preact/hooks';
import {
  isAdmin,
  maySeeOperations,
  reloadAll,
  useDashboard,
  useLive,
  useLoad,
} from '../data/context.js';
import { isAlert, useLiveData } from '../data/live.js';
import {
  ChoiceField,
  fromUtcText,
  invalidField,
  TextField,
  TimeField,
  textOf,
} from '../parts/form.js';
import { count } from '../parts/format.js';
import { html } from '../parts/html.js';
import { Icon } from '../parts/icon.js';
import { List, useList } from '../parts/list.js';
import { Action, Badge, Command, Empty, Loadable, PageHeader, Tabs, Time } from '../parts/parts.js';
import { Table } from '../parts/table.js';
import { hrefTo } from '../router.js';

/** @import { Alert, Mute, MutePage } from '../../../client/api.ts' */

const REFRESH_MS = 30_000;
/** @type {Record<string, string>} */
const TITLES = { firing: 'Firing', resolved: 'Resolved', all: 'All' };

/** The alerts, the mutes and the maintenance windows. @param {{ query: URLSearchParams }} props */
export function AlertsPage({ query }) {
  const { api, session } = useDashboard();
  const list = useList('v1/alerts', {
    query,
    hrefOf: (given) => hrefTo('alerts', undefined, given),
  });
  const seesMutes = maySeeOperations(session);
  const mutes = useLoad(
    async (signal) =>
      seesMutes ? await api.get('v1/mutes?limit=1000', { signal }) : { mutes: [] },
    'mutes',
  );
  const reload = () => {
    list.loaded.reload();
    mutes.reload();
  };
  useLive(reload, REFRESH_MS, isAlert);
  const mayChange = isAdmin(session);
  const { state = 'firing' } = list.given;
  const columns = COLUMNS.filter(({ title }) => title !== 'State' || state === 'all');
  if (mayChange) columns.push(actionsColumn(mutes.data?.mutes ?? []));

  return html`<${PageHeader} title="Alerts" about=${!mayChange && 'This session cannot acknowledge or mute alerts.'}>
      ${mayChange && html`<${MuteAction} label="Plan a maintenance window" rule="" subject="" />`}
    <//>
    <${Tabs} label="Alerts by state" of=${['firing', 'resolved', 'all'].map((one) => ({ label: TITLES[one], href: list.hrefOf({ state: one === 'firing' ? undefined : one }), isCurrent: one === state }))} />
    <${List}
      list=${list}
      of="alerts"
      caption=${`Alerts${state === 'all' ? '' : ` that are ${state}`}, newest first`}
      columns=${columns}
      empty=${html`<${Empty} title=${state === 'firing' ? 'No alert is firing.' : 'No alerts.'}>
        <p>Resolved alerts are kept for 30 days. The same list in a terminal or a script:</p>
        <${Command}>npx dawatch alerts list --state all --json<//>
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
  {
    title: 'Since',
    width: 7,
    class: 'at-left',
    cell: ({ since }) => html`<${Time} at=${since} />`,
  },
  {
    title: 'State',
    width: 6.5,
    class: 'at-state',
    cell: (alert) => html`<${State} alert=${alert} />`,
  },
  {
    title: 'Handled',
    class: 'from-m at-middle',
    width: 13,
    has: ({ resolved_at, acknowledged, muted_until }) => resolved_at ?? acknowledged ?? muted_until,
    cell: (alert) => html`<${Handled} alert=${alert} />`,
  },
];

/** @param {{ alert: Alert }} props */
function State({ alert: { firing } }) {
  return html`<${Badge} state=${firing ? 'failed' : 'up'} label=${firing ? 'firing' : 'resolved'} />`;
}

/** @param {{ alert: Alert }} props */
function Handled({ alert: { resolved_at, acknowledged, muted_until } }) {
  return html`${resolved_at !== null && html`resolved <${Time} at=${resolved_at} /> `}
    ${muted_until !== null && html`mute ends <${Time} at=${muted_until} /> `}
    ${acknowledged && html`acknowledged by ${acknowledged.by} <${Time} at=${acknowledged.at} />`}`;
}

/** @param {readonly Mute[]} mutes @returns {import('../parts/table.js').Column<Alert>} */
function actionsColumn(mutes) {
  return {
    title: 'Action',
    class: 'at-below',
    width: 13,
    cell: (alert) =>
      alert.firing && isRecorded(alert) && html`<${Actions} alert=${alert} mutes=${mutes} />`,
  };
}

/** @param {{ alert: Alert, mutes: readonly Mute[] }} props */
function Actions({ alert, mutes }) {
  const { api } = useDashboard();
  const { rule, subject, summary } = alert;
  // A mute that covers other alerts, too, is ended in the list of mutes, which shows its whole
  // scope.
  const own = mutes.find((one) => one.active && one.rule === rule && one.subject === subject);
  const unmute = async () => {
    await api.delete(`v1/mutes/${own?.id}`);
    reloadAll();
    return 'The mute has ended.';
  };
  return html`<div class="action">
    <${Acknowledgement} alert=${alert} />
    ${
      own
        ? html`<${Action} key="unmute" label="Unmute" name=${`Unmute: ${summary}`} act=${unmute} />`
        : html`<${MuteAction} key="mute" label="Mute" name=${`Mute: ${summary}`} rule=${rule} subject=${subject} />`
    }
  </div>`;
}

/** An alert that is not in the ledger cannot be changed. @param {Alert} alert */
const isRecorded = ({ id }) => id > 0;

/**
 * The firing alerts that nobody has acknowledged or muted, as one line above every page but that of
 * the alerts: the newest, and the number of others. @param {{ isHidden: boolean }} props
 */
export function AlertNotice({ isHidden }) {
  const { session, announce } = useDashboard();
  const { data } = useLiveData().alerts;
  /** @type {readonly Alert[]} */
  const alerts = data?.alerts ?? [];
  const unhandled = alerts.filter(
    ({ acknowledged, muted_until }) => !acknowledged && muted_until === null,
  );
  const announced = useRef(/** @type {Set<number>} */ (new Set()));
  useEffect(() => {
    const added = unhandled.find(({ id }) => !announced.current.has(id));
    if (added) announce(`Alert: ${added.summary}`);
    announced.current = new Set(unhandled.map(({ id }) => id));
  }, [data]);

  if (alerts.length === 0 || isHidden) return null;
  const [alert, ...others] = unhandled;
  const handled = alerts.length - unhandled.length;
  const rest = [
    others.length > 0 && `${count(others.length)} more`,
    handled > 0 && `${count(handled)} acknowledged or muted`,
  ].filter(Boolean);
  return html`<section class=${alert ? 'notice' : 'notice handled'} aria-label="Alerts">
    ${
      alert &&
      html`<${Icon} name="warning" />
        <a class="text" href=${pageOf(alert)} title=${alert.summary}>${alert.summary}</a>
        <span class="since muted">began <${Time} at=${alert.since} /></span>
        ${isAdmin(session) && isRecorded(alert) && html`<${Acknowledgement} key=${alert.id} alert=${alert} />`}`
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

/**
 * Acknowledges an alert, or withdraws the acknowledgement. Used by the banner and the page of
 * alerts. @param {{ alert: Alert }} props
 */
function Acknowledgement({ alert: { id, summary, acknowledged } }) {
  const { api, announce } = useDashboard();
  const change = async () => {
    if (acknowledged) await api.delete(`v1/alerts/${id}/acknowledge`);
    else await api.post(`v1/alerts/${id}/acknowledge`);
    announce(acknowledged ? 'The acknowledgement is withdrawn.' : 'The alert is acknowledged.');
    reloadAll();
    return '';
  };
  const label = acknowledged ? 'Withdraw' : 'Acknowledge';
  return html`<${Action} label=${label} name=${`${label}${acknowledged ? ' the acknowledgement of' : ''}: ${summary}`} act=${change} />`;
}

const MIN_MS = 60_000;
const HOUR_MS = 60 * MIN_MS;

export const RULES = [
  'stuck',
  'failures',
  'contradicted',
  'upstream_down',
  'credentials_refused',
  'backlog',
  'dead_letters',
  'webhook_disabled',
  'wal_size',
  'disk_low',
  'ledger_not_writable',
  'redis_down',
  'no_workers',
];

/**
 * Mutes alerts, or plans a maintenance window.
 * @param {{ label: string, name?: string, rule: string, subject: string }} props `rule`, `subject`: what the form begins with; empty: all
 */
function MuteAction({ label, name, rule, subject }) {
  const { api } = useDashboard();
  const mute = async (/** @type {FormData} */ form) => {
    const [from, until] = ['from', 'until'].map((field) => {
      const text = textOf(form, field);
      const at = fromUtcText(text);
      if (at === '' && (text !== '' || field === 'until'))
        throw invalidField(field, 'write a date and a time like 2026-01-31 14:00');
      return at;
    });
    const made = await api.post('v1/mutes', {
      rule: textOf(form, 'rule') || null,
      subject: textOf(form, 'subject') || null,
      ...(from && { from }),
      until,
      reason: textOf(form, 'reason'),
    });
    reloadAll();
    return made.active ? 'The alerts are muted.' : 'The mute is planned.';
  };
  const fields = ['rule', 'subject', 'from', 'until', 'reason'];
  const title = rule === '' ? 'Plan a maintenance window' : 'Mute alerts';
  return html`<${Action} label=${label} name=${name} title=${title} submit=${rule === '' ? 'Plan' : 'Mute'} fields=${fields} act=${mute}>
    ${(/** @type {import('../parts/form.js').ErrorOf} */ errorOf) => html`<${MuteFields} rule=${rule} subject=${subject} errorOf=${errorOf} />`}
  <//>`;
}

/**
 * @param {{ rule: string, subject: string, errorOf: import('../parts/form.js').ErrorOf }} props
 */
function MuteFields({ rule, subject, errorOf }) {
  const [chosen, setChosen] = useState(rule);
  const rules = rule === '' || RULES.includes(rule) ? RULES : [...RULES, rule];
  const choices = {
    'all alerts: a maintenance window': '',
    ...Object.fromEntries(rules.map((one) => [one, one])),
  };
  return html`<p class="muted">Alerts that begin meanwhile are recorded and not sent. Those that still fire at the end are sent then.</p>
    <${ChoiceField} label="Alerts" name="rule" choices=${choices} value=${chosen} onChange=${setChosen} error=${errorOf('rule')} />
    ${
      chosen !== '' &&
      html`<${TextField}
        label="Subject"
        name="subject"
        value=${subject}
        hint="Such as the name of an upstream. Empty: all alerts of the rule."
        error=${errorOf('subject')}
      />`
    }
    <${TimeField} label="From" name="from" hint="Empty: now." error=${errorOf('from')} />
    <${TimeField} label="Until" name="until" value=${Math.floor(Date.now() / MIN_MS) * MIN_MS + HOUR_MS} error=${errorOf('until')} />
    <${TextField} label="Reason" name="reason" error=${errorOf('reason')} />`;
}

/**
 * The mutes and maintenance windows that have not ended.
 * @param {{ loaded: import('../data/context.js').Loaded<MutePage>, mayChange: boolean }} props
 */
function Mutes({ loaded, mayChange }) {
  const columns = mayChange ? [...MUTE_COLUMNS, END_COLUMN] : MUTE_COLUMNS;
  return html`<section aria-labelledby="mutes">
    <h2 id="mutes">Mutes and maintenance windows</h2>
    <${Loadable} loaded=${loaded}>
      ${(/** @type {MutePage} */ { mutes }) =>
        mutes.length === 0
          ? html`<p class="muted">None is active or planned.</p>`
          : html`<${Table} caption="Those that have not ended, newest first" hidesCaption columns=${columns} rows=${mutes} />`}
    <//>
  </section>`;
}

/** @type {readonly import('../parts/table.js').Column<Mute>[]} */
const MUTE_COLUMNS = [
  { title: 'Covers', width: 10, cell: (mute) => coveredBy(mute) },
  { title: 'From', width: 8, class: 'from-m', cell: ({ from }) => html`<${Time} at=${from} />` },
  {
    title: 'Until',
    width: 8,
    class: 'at-left',
    cell: ({ until }) => html`<${Time} at=${until} />`,
  },
  {
    title: 'State',
    width: 8,
    class: 'at-state',
    cell: ({ active }) =>
      html`<${Badge} state=${active ? 'waiting' : 'planned'} label=${active ? 'active' : 'planned'} />`,
  },
  { title: 'Reason', class: 'at-middle', cell: ({ reason }) => reason },
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
  class: 'at-end',
  width: 7,
  cell: (mute) => html`<${End} mute=${mute} />`,
};

/** @param {{ mute: Mute }} props */
function End({ mute }) {
  const { api, announce } = useDashboard();
  const { id, active } = mute;
  const label = active ? 'End' : 'Cancel';
  const end = async () => {
    await api.delete(`v1/mutes/${id}`);
    announce(active ? 'The mute has ended.' : 'The mute is cancelled.');
    reloadAll();
    return '';
  };
  const effect = active
    ? 'Alerts that it covers and that still fire are sent now.'
    : 'It will not start.';
  return html`<${Action} label=${label} name=${`${label} the mute of ${coveredBy(mute)}`} confirm=${effect} act=${end} />`;
}

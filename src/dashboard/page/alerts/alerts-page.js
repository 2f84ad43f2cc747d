import { useEffect, useRef, useState } from 'preact/hooks';
import {
  isAdmin,
  maySeeOperations,
  reloadAll,
  useDashboard,
  useLive,
  useLoad,
} from '../data/context.js';
import {
  ChoiceField,
  fromLocalTime,
  invalidField,
  TextField,
  textOf,
  toLocalTime,
} from '../parts/form.js';
import { count } from '../parts/format.js';
import { html } from '../parts/html.js';
import { Filters, List, useList } from '../parts/list.js';
import { Action, Badge, Empty, Loadable, Time } from '../parts/parts.js';
import { Table } from '../parts/table.js';
import { hrefTo } from '../router.js';

/** @import { Alert, Mute, MutePage } from '../../../client/api.ts' */

const REFRESH_MS = 30_000;
const FIELDS = [{ name: 'state', label: 'State', values: ['resolved', 'all'], none: 'firing' }];

/** @param {import('../data/feed.js').FeedEvent} event */
const isAlert = ({ type }) => type.startsWith('alert.');

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
  const columns = mayChange ? [...COLUMNS, actionsColumn(mutes.data?.mutes ?? [])] : COLUMNS;
  const { state = 'firing' } = list.given;

  return html`<h1 tabindex="-1">Alerts</h1>
    <${Filters} list=${list} label="Alerts" fields=${FIELDS} />
    ${
      mayChange
        ? html`<div class="actions"><${MuteAction} label="Plan a maintenance window" rule="" subject="" /></div>`
        : html`<p class="muted">This session cannot acknowledge or mute alerts.</p>`
    }
    <${List}
      list=${list}
      of="alerts"
      caption=${`Alerts${state === 'all' ? '' : ` that are ${state}`}, newest first`}
      columns=${columns}
      empty=${html`<${Empty} title=${state === 'firing' ? 'No alert is firing.' : 'No alerts.'}><p>Resolved alerts are kept for 30 days.</p><//>`}
    />
    ${seesMutes && html`<${Mutes} loaded=${mutes} mayChange=${mayChange} />`}`;
}

/** @type {readonly import('../parts/table.js').Column<Alert>[]} */
const COLUMNS = [
  {
    title: 'Alert',
    cell: (alert) => html`<a class="summary" href=${pageOf(alert)}>${alert.summary}</a>`,
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
  return html`<${Badge} state=${firing ? 'failed' : 'up'} label=${firing ? 'firing' : 'resolved'} />
    ${resolved_at !== null && html` <${Time} at=${resolved_at} />`}
    ${acknowledged && html`<br /><span class="muted">acknowledged by ${acknowledged.by} <${Time} at=${acknowledged.at} /></span>`}
    ${muted_until !== null && html`<br /><span class="muted">mute ends <${Time} at=${muted_until} /></span>`}`;
}

/** @param {readonly Mute[]} mutes @returns {import('../parts/table.js').Column<Alert>} */
function actionsColumn(mutes) {
  return {
    title: 'Action',
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

/** Further alerts are on the page of alerts. */
const SHOWN = 100;

/** The firing alerts that nobody has acknowledged or muted, above every page. */
export function AlertBanner() {
  const { api, session, announce } = useDashboard();
  const path = `v1/alerts?limit=${SHOWN}`;
  const { data, reload } = useLoad((signal) => api.get(path, { signal }), path);
  useLive(reload, REFRESH_MS, isAlert);

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

  if (alerts.length === 0) return null;
  const others = alerts.length - unhandled.length;
  return html`<section class=${unhandled.length === 0 ? 'alerts handled' : 'alerts'} aria-label="Alerts">
    <ul>
      ${unhandled.map(
        (alert) => html`<li key=${alert.id}>
          <a href=${pageOf(alert)}>${alert.summary}</a>
          <span class="muted">began <${Time} at=${alert.since} /></span>
          ${isAdmin(session) && isRecorded(alert) && html`<${Acknowledgement} alert=${alert} />`}
        </li>`,
      )}
    </ul>
    ${
      (others > 0 || data.next_cursor !== null) &&
      html`<a href=${hrefTo('alerts')}>${others > 0 ? `${count(others)} acknowledged or muted` : 'All alerts'}</a>`
    }
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
  const label = acknowledged ? 'Withdraw acknowledgement' : 'Acknowledge';
  return html`<${Action} label=${label} name=${`${label}${acknowledged ? ' of' : ''}: ${summary}`} act=${change} />`;
}

const HOUR_MS = 3_600_000;

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
  'error_budget',
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
    const [from, until] = ['from', 'until'].map((field) => fromLocalTime(textOf(form, field)));
    if (!until) throw invalidField('until', 'enter a date and a time');
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
    <${TextField} label="From" name="from" type="datetime-local" hint="Empty: now. In the time zone of this browser." error=${errorOf('from')} />
    <${TextField} label="Until" name="until" type="datetime-local" value=${toLocalTime(Date.now() + HOUR_MS).slice(0, 16)} error=${errorOf('until')} />
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
          : html`<${Table} caption="Those that have not ended, newest first" columns=${columns} rows=${mutes} />`}
    <//>
  </section>`;
}

/** @type {readonly import('../parts/table.js').Column<Mute>[]} */
const MUTE_COLUMNS = [
  { title: 'Covers', cell: (mute) => coveredBy(mute) },
  { title: 'From', cell: ({ from }) => html`<${Time} at=${from} />` },
  { title: 'Until', cell: ({ until }) => html`<${Time} at=${until} />` },
  {
    title: 'State',
    cell: ({ active }) =>
      html`<${Badge} state=${active ? 'waiting' : 'planned'} label=${active ? 'active' : 'planned'} />`,
  },
  { title: 'Reason', cell: ({ reason }) => reason },
  { title: 'By', cell: ({ created_by }) => created_by },
];

/** @param {Mute} mute */
function coveredBy({ rule, subject }) {
  if (rule === null) return 'all alerts';
  return subject === null ? `all ${rule}` : `${rule} ${subject}`;
}

/** @type {import('../parts/table.js').Column<Mute>} */
const END_COLUMN = { title: 'Action', cell: (mute) => html`<${End} mute=${mute} />` };

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

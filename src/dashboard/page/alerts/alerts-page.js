import { useEffect, useRef, useState } from 'preact/hooks';
import { withQuery } from '../data/api.js';
import {
  isAdmin,
  maySeeOperations,
  reloadAll,
  useDashboard,
  useFeed,
  useLoad,
  useThrottled,
  useWhileVisible,
} from '../data/context.js';
import { conditionsIn, UnknownFilters } from '../parts/filters.js';
import {
  Field,
  FormEnd,
  fromLocalTime,
  invalidField,
  textOf,
  toLocalTime,
  useForm,
} from '../parts/form.js';
import { count } from '../parts/format.js';
import { html } from '../parts/html.js';
import { Action, Badge, Empty, Loadable, Time } from '../parts/parts.js';
import { Pager, Table } from '../parts/table.js';
import { hrefTo } from '../router.js';

/** @import { Alert, AlertPage, AlertState, Mute, MutePage } from '../../../client/api.ts' */

const PER_PAGE = 50;
const REFRESH_MS = 30_000;
const RELOAD_EVERY_MS = 1_000;
/** @type {readonly AlertState[]} */
const STATES = ['firing', 'resolved', 'all'];

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
      ${(/** @type {AlertPage} */ page) => html`
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

/** @type {readonly import('../parts/table.js').Column<Alert>[]} */
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

/** @param {Handling} handling @returns {import('../parts/table.js').Column<Alert>} */
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

/** Further alerts are only counted. */
const SHOWN = 100;

/** The firing alerts, above every page. */
export function AlertBanner() {
  const { api, announce } = useDashboard();
  const path = `v1/alerts?limit=${SHOWN}`;
  const { data, reload, refresh } = useLoad((signal) => api.get(path, { signal }), path);
  useWhileVisible(refresh, REFRESH_MS);
  const reloadSoon = useThrottled(reload, RELOAD_EVERY_MS);
  useFeed(({ events, isWhole }) => {
    if (!isWhole || events.some(({ type }) => type.startsWith('alert.'))) reloadSoon();
  });

  /** @type {Alert[]} */
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
  const isMore = data.next_cursor !== null;
  return html`<section class=${unhandled.length === 0 ? 'alerts handled' : 'alerts'} aria-label="Alerts">
    ${
      unhandled.length > 0 &&
      html`<ul>
        ${unhandled.map((alert) => html`<${Row} key=${alert.id} alert=${alert} />`)}
      </ul>`
    }
    ${
      (unhandled.length < alerts.length || isMore) &&
      html`<details>
        <summary>${summaryOf(alerts, { isMore })}</summary>
        <ul>
          ${alerts
            .filter((alert) => !unhandled.includes(alert))
            .map((alert) => html`<${Row} key=${alert.id} alert=${alert} />`)}
          ${isMore && html`<li><a href=${hrefTo('alerts')}>All alerts</a></li>`}
        </ul>
      </details>`
    }
  </section>`;
}

/** @param {readonly Alert[]} alerts @param {{ isMore: boolean }} list */
function summaryOf(alerts, { isMore }) {
  const acknowledged = alerts.filter((alert) => alert.acknowledged).length;
  const muted = alerts.filter((alert) => !alert.acknowledged && alert.muted_until !== null).length;
  const counts = [
    ...(acknowledged > 0 ? [`${acknowledged} acknowledged`] : []),
    ...(muted > 0 ? [`${muted} muted`] : []),
    ...(isMore ? ['and older ones'] : []),
  ];
  return counts.join(', ');
}

/** @param {{ alert: Alert }} props */
function Row({ alert }) {
  const { session } = useDashboard();
  const { summary, since, link, acknowledged, muted_until } = alert;
  // The link may name another address of this server.
  const page = link.slice(link.indexOf('#'));
  return html`<li>
    <a href=${page}>${summary}</a>
    <span class="muted">began <${Time} at=${since} /></span>
    ${acknowledged && html`<span class="muted">acknowledged by ${acknowledged.by}</span>`}
    ${muted_until !== null && html`<span class="muted">mute ends <${Time} at=${muted_until} /></span>`}
    ${isAdmin(session) && html`<${Acknowledgement} alert=${alert} />`}
  </li>`;
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
  'upstream_down',
  'credentials_refused',
  'backlog',
  'dead_letters',
  'webhook_disabled',
  'wal_size',
  'error_budget',
];

/**
 * Mutes alerts, or plans a maintenance window.
 * @param {{ covered: Covered, onMuted: () => void, onCancel: () => void }} props
 */
function MuteForm({ covered, onMuted, onCancel }) {
  const { api, announce } = useDashboard();
  const [rule, setRule] = useState(covered.rule);
  const form = useForm({
    fields: ['rule', 'subject', 'from', 'until', 'reason'],
    async send(data) {
      const from = fromLocalTime(textOf(data, 'from'));
      const until = fromLocalTime(textOf(data, 'until'));
      if (until === '') throw invalidField('until', 'enter a date and a time');
      const mute = await api.post('v1/mutes', {
        rule: rule || null,
        subject: textOf(data, 'subject') || null,
        ...(from && { from }),
        until,
        reason: textOf(data, 'reason'),
      });
      announce(mute.active ? 'The alerts are muted.' : 'The mute is planned.');
      onMuted();
    },
  });
  const { errorOf } = form;
  useEffect(form.focusFirst, []);
  const rules = rule === '' || RULES.includes(rule) ? RULES : [...RULES, rule];
  return html`<section aria-labelledby="mute">
    <h2 id="mute">${rule === '' ? 'Plan a maintenance window' : 'Mute alerts'}</h2>
    <p class="muted">Alerts that begin meanwhile are recorded and not sent. Those that still fire at the end are sent then.</p>
    <form class="form" ref=${form.form} onSubmit=${form.submit} novalidate>
      <${Field} label="Alerts" error=${errorOf('rule')}>
        ${(
          /** @type {any} */ attributes,
        ) => html`<select ...${attributes} onChange=${(/** @type {any} */ event) => setRule(event.target.value)}>
          <option value="" selected=${rule === ''}>all alerts: a maintenance window</option>
          ${rules.map((name) => html`<option key=${name} value=${name} selected=${name === rule}>${name}</option>`)}
        </select>`}
      <//>
      ${
        rule !== '' &&
        html`<${Field} label="Subject" hint="Such as the name of an upstream. Empty: all alerts of the rule." error=${errorOf('subject')}>
          ${(/** @type {any} */ attributes) =>
            html`<input ...${attributes} name="subject" defaultValue=${covered.subject} maxlength="300" autocomplete="off" spellcheck="false" />`}
        <//>`
      }
      <${Field} label="From" hint="Empty: now. In the time zone of this browser." error=${errorOf('from')}>
        ${(/** @type {any} */ attributes) => html`<input ...${attributes} type="datetime-local" name="from" />`}
      <//>
      <${Field} label="Until" error=${errorOf('until')}>
        ${(/** @type {any} */ attributes) => html`<input ...${attributes} type="datetime-local" name="until" defaultValue=${inAnHour()} required />`}
      <//>
      <${Field} label="Reason" error=${errorOf('reason')}>
        ${(/** @type {any} */ attributes) => html`<input ...${attributes} name="reason" maxlength="200" autocomplete="off" />`}
      <//>
      <${FormEnd} of=${form} label=${rule === '' ? 'Plan' : 'Mute'} onCancel=${onCancel} />
    </form>
  </section>`;
}

/** To the minute. */
function inAnHour() {
  return toLocalTime(Date.now() + HOUR_MS).slice(0, 16);
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

import { useEffect, useState } from 'preact/hooks';
import { useDashboard } from '../data/context.js';
import { reloadAll } from '../data/use-load.js';
import {
  Field,
  FormEnd,
  fromLocalTime,
  invalidField,
  textOf,
  toLocalTime,
  useForm,
} from '../parts/form.js';
import { html } from '../parts/html.js';
import { Action, Badge, Loadable, Time } from '../parts/parts.js';
import { Table } from '../parts/table.js';

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
 * @param {{ covered: import('./alerts-page.js').Covered, onMuted: () => void, onCancel: () => void }} props
 */
export function MuteForm({ covered, onMuted, onCancel }) {
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
 * @param {{ loaded: import('../data/use-load.js').Loaded<any>, mayChange: boolean }} props
 */
export function Mutes({ loaded, mayChange }) {
  const columns = mayChange ? [...COLUMNS, END_COLUMN] : COLUMNS;
  return html`<section aria-labelledby="mutes">
    <h2 id="mutes">Mutes and maintenance windows</h2>
    <${Loadable} loaded=${loaded}>
      ${(/** @type {{ mutes: any[] }} */ { mutes }) =>
        mutes.length === 0
          ? html`<p class="muted">None is active or planned.</p>`
          : html`<${Table} caption="Those that have not ended, newest first" columns=${columns} rows=${mutes} />`}
    <//>
  </section>`;
}

/** @type {readonly import('../parts/table.js').Column[]} */
const COLUMNS = [
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

/** @param {import('./alerts-page.js').Mute} mute */
function coveredBy({ rule, subject }) {
  if (rule === null) return 'all alerts';
  return subject === null ? `all ${rule}` : `${rule} ${subject}`;
}

/** @type {import('../parts/table.js').Column} */
const END_COLUMN = { title: 'Action', cell: (mute) => html`<${End} mute=${mute} />` };

/** @param {{ mute: import('./alerts-page.js').Mute }} props */
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

import {
  isAdmin,
  isAlert,
  maySeeOperations,
  reloadAll,
  useDashboard,
  useLive,
  useLoad,
} from '../data/context.js';
import { html } from '../parts/html.js';
import { List, useList } from '../parts/list.js';
import { Action, Command, Loadable, PageHeader, Time } from '../parts/parts.js';
import { Table } from '../parts/table.js';
import { MuteAction, Problems, pageOf } from './problems.js';

/** @import { Alert, Mute, MuteList } from '../../../client/api.ts' */

const REFRESH_MS = 30_000;

export function AlertsPage({ query }) {
  const { api, session } = useDashboard();
  const resolved = useList('v1/alerts', { query, fixed: { state: 'resolved' } });
  const seesMutes = maySeeOperations(session);
  const mutes = useLoad(
    async (signal) => (seesMutes ? await api.get('v1/mutes', { signal }) : { mutes: [] }),
    'mutes',
  );
  const reload = () => {
    resolved.loaded.reload();
    mutes.reload();
  };
  useLive(reload, REFRESH_MS, isAlert);
  const mayChange = isAdmin(session);
  return html`<${PageHeader} title="Alerts" about=${!mayChange && 'This session cannot mute alerts.'}>
      ${mayChange && html`<${MuteAction} label="Mute all alerts" rule=${null} subject=${null} />`}
    <//>
    <${Problems} />
    ${seesMutes && html`<${Mutes} loaded=${mutes} mayChange=${mayChange} />`}
    <section aria-labelledby="resolved">
      <h2 id="resolved">Resolved</h2>
      <${List}
        list=${resolved}
        of="alerts"
        caption="Alerts that are resolved, newest first"
        columns=${COLUMNS}
        empty=${html`<p class="muted">None in the last 30 days. The same list in a terminal or a script:</p>
          <${Command}>npx dawatch api '/v1/alerts?state=all'<//>`}
      />
    </section>`;
}

/** @type {readonly import('../parts/table.js').Column<Alert>[]} */
const COLUMNS = [
  {
    title: 'Alert',
    class: 'wraps',
    cell: (alert) => html`<a href=${pageOf(alert)}>${alert.summary}</a>`,
  },
  { title: 'Began', width: 7, cell: ({ since }) => html`<${Time} at=${since} />` },
  { title: 'Ended', width: 7, cell: ({ resolved_at }) => html`<${Time} at=${resolved_at} />` },
];

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

import { withQuery } from '../data/api.js';
import {
  isAdmin,
  isAlert,
  maySeeOperations,
  reloadAll,
  useDashboard,
  useLive,
  useLoad,
} from '../data/context.js';
import { count } from '../parts/format.js';
import { html } from '../parts/html.js';
import { List, useList } from '../parts/list.js';
import {
  Action,
  Badge,
  Command,
  Empty,
  Facts,
  Loadable,
  PageHeader,
  Time,
} from '../parts/parts.js';
import { Table } from '../parts/table.js';
import { hrefTo } from '../router.js';
import { MuteAction, Problems, pageOf, REMEDIES } from './problems.js';

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

/** One occurrence of an alert, which the server has only in its list. */
export function AlertPage({ id }) {
  const { api, session } = useDashboard();
  const loaded = useLoad((signal) => findAlert(api, id, signal), id);
  useLive(loaded.reload, REFRESH_MS, isAlert);
  const alert = loaded.data;
  const mayMute = isAdmin(session) && alert?.firing && alert.muted_until === null;
  return html`<${PageHeader} title=${alert?.summary ?? `Alert ${id}`} id=${id} about=${alert?.firing && REMEDIES[alert.rule]}>
      ${alert && html`<a class="button" href=${pageOf(alert)}>Affected page</a>`}
      ${mayMute && html`<${MuteAction} label="Mute" rule=${alert.rule} subject=${alert.subject} />`}
    <//>
    <${Loadable} loaded=${loaded}>
      ${(/** @type {Alert | null} */ found) =>
        found === null
          ? html`<${Empty} title="There is no such alert. Resolved ones are kept for 30 days." />`
          : html`<section aria-label="Summary"><${Facts} of=${factsOf(found)} /></section>`}
    <//>`;
}

/** @returns {Promise<Alert | null>} */
async function findAlert(api, id, signal) {
  for (let cursor; cursor !== null; ) {
    const path = withQuery('v1/alerts', { state: 'all', limit: 1_000, cursor });
    const { alerts, next_cursor } = await api.get(path, { signal });
    const found = alerts.find((/** @type {Alert} */ one) => String(one.id) === id);
    if (found) return found;
    cursor = next_cursor;
  }
  return null;
}

/** @param {Alert} alert @returns {[string, any][]} */
function factsOf({ firing, rule, subject, count: number, since, resolved_at, muted_until }) {
  return [
    [
      'State',
      html`<${Badge} state=${firing ? 'failing' : 'good'} label=${firing ? 'firing' : 'resolved'} />`,
    ],
    ['Rule', rule],
    ['Subject', subject],
    ['Affected', number === null ? null : count(number)],
    ['Began', html`<${Time} at=${since} />`],
    ['Ended', resolved_at && html`<${Time} at=${resolved_at} />`],
    ['Mute ends', muted_until && html`<${Time} at=${muted_until} />`],
  ];
}

/** @type {readonly import('../parts/table.js').Column<Alert>[]} */
const COLUMNS = [
  {
    title: 'Alert',
    class: 'wraps',
    cell: ({ id, summary }) => html`<a href=${hrefTo('alerts', String(id))}>${summary}</a>`,
  },
  { title: 'Began', width: 7, class: 'from-m', cell: ({ since }) => html`<${Time} at=${since} />` },
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

import { withQuery } from '../data/api.js';
import { useDashboard } from '../data/context.js';
import { useLoad } from '../data/use-load.js';
import {
  conditionsIn,
  Filters,
  Suggestions,
  TextFilter,
  TimeFilter,
  UnknownFilters,
  Zone,
} from '../parts/filters.js';
import { html } from '../parts/html.js';
import { Pager } from '../parts/pager.js';
import { Empty, Loadable, Time } from '../parts/parts.js';
import { Table } from '../parts/table.js';
import { hrefTo, parseRoute } from '../router.js';
import { Chain } from './chain.js';

const PER_PAGE = 50;
/** The conditions, as in the address of the page and as the server names them. */
const CONDITIONS = /** @type {const} */ (['caller', 'action', 'subject', 'since', 'until']);
/** @typedef {Record<typeof CONDITIONS[number], string>} Conditions empty: no condition */

/**
 * Every change by a caller, and every lookup of users. @param {{ query: URLSearchParams }} props
 */
export function AuditPage({ query }) {
  const { api } = useDashboard();
  const { given, cursor, unknown } = conditionsIn(query, CONDITIONS);
  const path = withQuery('v1/audit', { ...given, cursor, limit: PER_PAGE });
  const loaded = useLoad((signal) => api.get(path, { signal }), path);
  const hasConditions = Object.values(given).some(Boolean);
  if (unknown.length > 0)
    return html`<h1 tabindex="-1">Audit</h1>
      <${UnknownFilters} names=${unknown} href=${hrefTo('audit', undefined, given)} />`;
  return html`<h1 tabindex="-1">Audit</h1>
    <${Chain} head=${loaded.data?.head ?? null} onExported=${loaded.reload} />
    <${Filter} given=${given} entries=${loaded.data?.entries ?? []} reload=${loaded.reload} />
    <${Loadable} loaded=${loaded}>
      ${(
        /** @type {{ entries: any[], next_cursor: string | null }} */ {
          entries,
          next_cursor: next,
        },
      ) => html`
        ${
          entries.length === 0
            ? html`<${Empty} title=${next !== null ? 'No match among the entries searched so far.' : hasConditions ? 'No entry matches.' : 'No entries yet.'}>
                ${next !== null && html`<p>The search continues on the next page.</p>`}
              <//>`
            : html`<${Table} caption="Entries, newest first" columns=${COLUMNS} rows=${entries} keyOf=${(/** @type {{ seq: number }} */ { seq }) => seq} isBusy=${loaded.isLoading} />`
        }
        <${Pager}
          key=${JSON.stringify(given)}
          cursor=${cursor}
          next=${next}
          to=${(/** @type {string | undefined} */ place) => hrefTo('audit', undefined, { ...given, cursor: place })}
        />
      `}
    <//>`;
}

/** @type {readonly import('../parts/table.js').Column[]} */
const COLUMNS = [
  { title: 'Time', cell: ({ at }) => html`<${Time} at=${at} />` },
  {
    title: 'Caller',
    cell: ({ caller }) => html`<a href=${hrefTo('audit', undefined, { caller })}>${caller}</a>`,
  },
  {
    title: 'Action',
    cell: ({ action }) => html`<a href=${hrefTo('audit', undefined, { action })}>${action}</a>`,
  },
  { title: 'Result', cell: ({ result }) => result },
  {
    title: 'Subject',
    cell: ({ subject }) =>
      subject !== null &&
      html`<a class="id" href=${hrefTo('audit', undefined, { subject })}>${subject}</a>`,
  },
  {
    title: 'Detail',
    cell: ({ detail, email_masked }) => [email_masked, detail].filter(Boolean).join(' · '),
  },
  { title: 'Address', class: 'secondary', cell: ({ address }) => address },
  { title: 'Entry', class: 'number', cell: ({ seq }) => seq },
];

/**
 * @param {{ given: Conditions, entries: readonly any[], reload: () => void }} props `entries`:
 * suggest values
 */
function Filter({ given, entries, reload }) {
  const apply = (/** @type {keyof Conditions} */ name) => (/** @type {string} */ value) => {
    // The address may already contain a later change that is not shown yet.
    const now = conditionsIn(parseRoute(location.hash).query, CONDITIONS).given;
    location.hash = hrefTo('audit', undefined, { ...now, [name]: value });
  };
  return html`<${Filters} label="Entries" given=${given}>
    <${TextFilter} label="Caller" value=${given.caller} list="audit-callers" maxlength="500" apply=${apply('caller')} />
    <${TextFilter} label="Actions" value=${given.action} list="audit-actions" placeholder="webhooks.create" apply=${apply('action')} />
    <${TextFilter} label="Subject" value=${given.subject} maxlength="500" apply=${apply('subject')} />
    <${TimeFilter} label="Since" value=${given.since} apply=${apply('since')} />
    <${TimeFilter} label="Until" value=${given.until} apply=${apply('until')} />
    <${Zone} />
    <button type="button" onClick=${reload}>Refresh</button>
    ${Object.values(given).some(Boolean) && html`<a href=${hrefTo('audit')}>Clear filters</a>`}
    <${Suggestions} id="audit-callers" of=${entries.map(({ caller }) => caller)} />
    <${Suggestions} id="audit-actions" of=${entries.map(({ action }) => action)} />
  <//>`;
}

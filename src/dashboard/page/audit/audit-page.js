import { useState } from 'preact/hooks';
import { withQuery } from '../data/api.js';
import { useDashboard, useLoad } from '../data/context.js';
import {
  conditionsIn,
  Filters,
  Suggestions,
  TextFilter,
  TimeFilter,
  UnknownFilters,
  Zone,
} from '../parts/filters.js';
import { count } from '../parts/format.js';
import { html } from '../parts/html.js';
import { Action, Badge, CopyButton, Empty, Facts, Loadable, Time } from '../parts/parts.js';
import { Pager, Table } from '../parts/table.js';
import { hrefTo, parseRoute } from '../router.js';

/** @import { AuditEntry, AuditPage as Page, AuditVerification } from '../../../client/api.ts' */

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
      ${(/** @type {Page} */ { entries, next_cursor: next }) => html`
        ${
          entries.length === 0
            ? html`<${Empty} title=${next !== null ? 'No match among the entries searched so far.' : hasConditions ? 'No entry matches.' : 'No entries yet.'}>
                ${next !== null && html`<p>The search continues on the next page.</p>`}
              <//>`
            : html`<${Table} caption="Entries, newest first" columns=${COLUMNS} rows=${entries} keyOf=${(/** @type {AuditEntry} */ { seq }) => seq} isBusy=${loaded.isLoading} />`
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

/** @type {readonly import('../parts/table.js').Column<AuditEntry>[]} */
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
 * @param {{ given: Conditions, entries: readonly AuditEntry[], reload: () => void }} props `entries`:
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

/** The server reads a million entries in some ten seconds. */
const VERIFY_TIMEOUT_MS = 600_000;

/**
 * The chain of hashes: its head, a check of all hashes, and the export.
 * @param {{ head: Page['head'], onExported: () => void }} props
 */
function Chain({ head, onExported }) {
  const { api } = useDashboard();
  const [check, setCheck] = useState(/** @type {AuditVerification | undefined} */ (undefined));
  const verify = async () => {
    setCheck(undefined);
    const result = await api.get('v1/audit/verify', { timeoutMs: VERIFY_TIMEOUT_MS });
    setCheck(result);
    if (!result.intact) throw new Error(textOf(result));
    return textOf(result);
  };
  const exportAll = async () => {
    const entries = await api.download('v1/audit?format=ndjson', VERIFY_TIMEOUT_MS);
    save(entries, 'audit.ndjson');
    onExported();
    return 'The browser saves the export. The audit records the export.';
  };
  return html`<section aria-labelledby="chain">
    <h2 id="chain">Chain</h2>
    <${Facts}
      of=${[
        ['Entries', head === null ? null : count(head.seq)],
        ['State', html`<${Badge} ...${stateOf(check)} />`],
        [
          'Hash of the newest entry',
          head &&
            html`<span class="id value hash">${head.hash}</span> <${CopyButton} text=${head.hash} name="the hash" />`,
        ],
      ]}
    />
    <div class="actions">
      <${Action} label="Verify" name="Verify every hash" act=${verify} />
      <${Action} label="Export" name="Export all entries as NDJSON" act=${exportAll} />
    </div>
    <p class="muted">
      Note the hash elsewhere: with <code>dawatch audit verify --expect-head</code> it shows later whether entries were removed.
    </p>
  </section>`;
}

/** @param {AuditVerification | undefined} check */
function stateOf(check) {
  if (!check) return { state: 'unknown-yet', label: 'not verified yet' };
  return check.intact
    ? { state: 'enabled', label: 'intact' }
    : { state: 'failed', label: 'broken' };
}

/** @param {AuditVerification} check */
function textOf({ intact, entries, seq, reason, pruned }) {
  if (!intact)
    return `Broken: ${seq === null ? '' : `entry ${seq}: `}${reason} (${count(entries)} before are intact).`;
  return `Intact: ${count(entries)} entries${pruned ? `, after ${count(pruned)} that retention has deleted` : ''}.`;
}

/** The browser reads the file within this time. */
const SAVED_WITHIN_MS = 60_000;

/** Saves a file as a download of the browser. @param {Blob} content @param {string} name */
function save(content, name) {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), SAVED_WITHIN_MS);
}

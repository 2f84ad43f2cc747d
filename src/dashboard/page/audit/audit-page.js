import { useState } from 'preact/hooks';
import { useDashboard } from '../data/context.js';
import { Filters } from '../parts/filters.js';
import { count } from '../parts/format.js';
import { html } from '../parts/html.js';
import { List, useList } from '../parts/list.js';
import { Action, Badge, Command, CopyButton, Empty, PageHeader, Time } from '../parts/parts.js';
import { hrefTo } from '../router.js';

/** @import { AuditEntry, AuditPage as Page, AuditVerification } from '../../../client/api.ts' */

/**
 * Every change by a caller, and every lookup of users. @param {{ query: URLSearchParams }} props
 */
export function AuditPage({ query }) {
  const list = useList('v1/audit', { query, hrefOf: (given) => hrefTo('audit', undefined, given) });
  const { data, reload } = list.loaded;
  /** @type {readonly AuditEntry[]} */
  const entries = data?.entries ?? [];
  const fields = [
    { name: 'caller', label: 'Caller', suggest: entries.map(nameOf) },
    { name: 'email', label: 'About e-mail address' },
    {
      name: 'action',
      label: 'Actions',
      suggest: entries.map(({ action }) => action),
      placeholder: 'webhooks.create',
    },
    { name: 'subject', label: 'Subject' },
    { name: 'since', label: 'Since', isTime: true },
    { name: 'until', label: 'Until', isTime: true },
  ];
  const [check, setCheck] = useState(/** @type {AuditVerification | undefined} */ (undefined));
  return html`<${PageHeader} title="Audit" about=${html`<${Badge} ...${stateOf(check)} />`}>
      <${ChainActions} setCheck=${setCheck} onExported=${reload} />
    <//>
    <${Filters} list=${list} label="Entries" fields=${fields} search=${SEARCH} />
    <${List}
      list=${list}
      of="entries"
      caption="Entries, newest first"
      columns=${COLUMNS}
      keyOf=${(/** @type {AuditEntry} */ { seq }) => seq}
      empty=${html`<${Empty} title=${Object.keys(list.given).length > 0 ? 'No entry matches.' : 'No entries yet.'}>
        <p>Every change and every lookup of users becomes an entry. The newest ones in a terminal:</p>
        <${Command}>npx dawatch audit --limit 20<//>
      <//>`}
    />
    ${data?.head && html`<${Head} head=${data.head} />`}`;
}

/** @type {import('../parts/filters.js').Search} */
const SEARCH = {
  placeholder: 'subject, action:webhooks.create',
  fieldOf: (words) => (words.includes('@') ? 'email' : 'subject'),
};

/** The person who signed in, or else the name of the credential. @param {AuditEntry} entry */
function nameOf({ caller, caller_person }) {
  return caller_person ?? caller;
}

/** @type {readonly import('../parts/table.js').Column<AuditEntry>[]} */
const COLUMNS = [
  { title: 'Time', width: 7, cell: ({ at }) => html`<${Time} at=${at} />` },
  {
    title: 'Caller',
    class: 'from-m',
    width: 14,
    cell: (entry) =>
      html`<a class="quiet" href=${hrefTo('audit', undefined, { caller: nameOf(entry) })}>${nameOf(entry)}</a>`,
  },
  {
    title: 'Action',
    class: 'at-left',
    width: 10,
    cell: ({ action }) =>
      html`<a class="quiet" href=${hrefTo('audit', undefined, { action })}>${action}</a>`,
  },
  { title: 'Result', width: 4.5, class: 'at-state', cell: ({ result }) => result },
  {
    title: 'Subject',
    class: 'at-middle',
    cell: ({ subject }) =>
      subject !== null &&
      html`<a class="id" href=${hrefTo('audit', undefined, { subject })}>${subject}</a>`,
  },
  {
    title: 'Person',
    class: 'from-l',
    has: ({ email_hash }) => email_hash,
    cell: ({ email_hash, email_masked }) =>
      email_hash !== null &&
      html`<a class="quiet" href=${hrefTo('audit', undefined, { email: email_hash })}>${email_masked}</a>`,
  },
  { title: 'Detail', class: 'from-m', has: ({ detail }) => detail, cell: ({ detail }) => detail },
  { title: 'Address', width: 8, class: 'from-l', cell: ({ address }) => address },
  { title: 'Entry', width: 4, class: 'number from-l', cell: ({ seq }) => seq },
];

/** The server reads a million entries in some ten seconds. */
const VERIFY_TIMEOUT_MS = 600_000;

/**
 * A check of all hashes, and the export.
 * @param {{ setCheck: (check: AuditVerification | undefined) => void, onExported: () => void }} props
 */
function ChainActions({ setCheck, onExported }) {
  const { api } = useDashboard();
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
  return html`<${Action} label="Verify" name="Verify every hash" act=${verify} />
    <${Action} label="Export" name="Export all entries as NDJSON" act=${exportAll} />`;
}

/** The newest entry of the chain of hashes. @param {{ head: NonNullable<Page['head']> }} props */
function Head({ head: { seq, hash } }) {
  return html`<section aria-labelledby="head">
    <h2 id="head">Newest of ${count(seq)} entries</h2>
    <p><span class="id value hash">${hash}</span> <${CopyButton} text=${hash} name="the hash" /></p>
    <p class="muted">Store this hash elsewhere; <code>dawatch audit verify --expect-head</code> then detects removed entries.</p>
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

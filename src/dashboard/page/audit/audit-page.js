import { html } from '../parts/html.js';
import { Filters, List, useList } from '../parts/list.js';
import { CopiedId, Empty, PageHeader, Time } from '../parts/parts.js';
import { hrefTo } from '../router.js';

/** @import { AuditEntry } from '../../../client/api.ts' */

export function AuditPage({ query }) {
  const list = useList('v1/audit', { query });
  const { data } = list.loaded;
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
  return html`<${PageHeader} title="Audit">
      <a class="button" href="v1/audit?format=ndjson" download="audit.ndjson">Export</a>
    <//>
    <${Filters} list=${list} label="Entries" fields=${fields} />
    <${List}
      list=${list}
      of="entries"
      caption="Entries, newest first"
      columns=${COLUMNS}
      keyOf=${(/** @type {AuditEntry} */ { seq }) => seq}
      empty=${html`<${Empty} title="No entries yet." />`}
    />`;
}

/** Distinguishes the people of a list whose masked addresses are equal. */
const HASH_CHARS = 8;

/** The person who signed in, or else the name of the credential. @param {AuditEntry} entry */
function nameOf({ caller, caller_person }) {
  return caller_person ?? caller;
}

/** The address of an entry: the filters that select it. @param {AuditEntry} entry */
function addressOf({ at, action, subject }) {
  const until = new Date(Date.parse(at) + 1).toISOString();
  return hrefTo('audit', undefined, { action, subject: subject ?? undefined, since: at, until });
}

/** @type {readonly import('../parts/table.js').Column<AuditEntry>[]} */
const COLUMNS = [
  {
    title: 'Entry',
    width: 4,
    cell: (entry) =>
      html`<a href=${addressOf(entry)}><span class="unseen">Entry </span>${entry.seq}</a>`,
  },
  { title: 'Time', width: 7, cell: ({ at }) => html`<${Time} at=${at} />` },
  {
    title: 'Caller',
    class: 'from-m',
    width: 14,
    cell: (entry) =>
      html`<a href=${hrefTo('audit', undefined, { caller: nameOf(entry) })}>${nameOf(entry)}</a>`,
  },
  {
    title: 'Action',
    width: 10,
    cell: ({ action }) => html`<a href=${hrefTo('audit', undefined, { action })}>${action}</a>`,
  },
  {
    title: 'Result',
    width: 4.5,
    usual: ({ result }) => result,
    cell: ({ result }) => result,
  },
  {
    title: 'Subject',
    cell: ({ subject }) =>
      subject !== null &&
      html`<${CopiedId} id=${subject} href=${hrefTo('audit', undefined, { subject })} name="the subject" />`,
  },
  {
    title: 'Person',
    class: 'from-l',
    has: ({ email_hash }) => email_hash,
    cell: ({ email_hash, email_masked }) =>
      email_hash !== null &&
      html`<a href=${hrefTo('audit', undefined, { email: email_hash })}>${email_masked} ${email_hash.slice(0, HASH_CHARS)}</a>`,
  },
  { title: 'Detail', class: 'from-l', has: ({ detail }) => detail, cell: ({ detail }) => detail },
  { title: 'Address', width: 8, class: 'from-l', cell: ({ address }) => address },
];

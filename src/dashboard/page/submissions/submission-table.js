import { between, text } from '../parts/format.js';
import { html } from '../parts/html.js';
import { Badge, Command, CopiedId, Time } from '../parts/parts.js';
import { hrefTo } from '../router.js';

/** @import { Submission } from '../../../client/api.ts' */

/** @type {readonly import('../parts/table.js').Column<Submission>[]} */
export const COLUMNS = [
  { title: 'Submission', width: 15, cell: copiedSubmission },
  {
    title: 'Status',
    width: 8,
    usual: ({ status }) => status,
    cell: ({ status }) => html`<${Badge} state=${status} />`,
  },
  { title: 'Metadata', class: 'from-m', cell: ({ metadata }) => metadataOf(metadata) },
  { title: 'Tracked', width: 7.5, cell: ({ tracked_at }) => html`<${Time} at=${tracked_at} />` },
  {
    title: 'Final',
    width: 7.5,
    class: 'from-l',
    has: ({ finalized_at }) => finalized_at,
    cell: ({ finalized_at }) => finalized_at && html`<${Time} at=${finalized_at} />`,
  },
  {
    title: 'Took',
    width: 6.5,
    class: 'number from-l',
    has: ({ finalized_at }) => finalized_at,
    cell: ({ tracked_at, finalized_at }) => finalized_at && between(tracked_at, finalized_at),
  },
  { title: 'Requests', width: 6, class: 'number from-l', cell: ({ polls }) => polls },
];

function metadataOf(metadata) {
  return Object.entries(metadata ?? {}).map(
    ([name, value], index) =>
      html`<span key=${name}>${index > 0 && ' · '}<span class="muted">${name}</span> ${text(value)}</span>`,
  );
}

export function submissionId({ submission_id }) {
  return submission_id;
}

export function copiedSubmission({ submission_id: id }) {
  return html`<${CopiedId} id=${id} href=${hrefTo('submissions', id)} />`;
}

/** Statuses in the order of a submission's life. Final ones but the first can be tracked again. */
export const OPEN_STATUSES = ['tracking', 'pending', 'failing'];
export const FINAL_STATUSES = [
  'finalized',
  'failed',
  'unknown',
  'rejected',
  'expired',
  'cancelled',
];
export const STATUSES = [...OPEN_STATUSES, ...FINAL_STATUSES];

export function endedBetween(since, until, filter) {
  return hrefTo('submissions', undefined, {
    ...filter,
    ended_since: new Date(since).toISOString(),
    ended_until: new Date(until).toISOString(),
  });
}

/** Quotes a text as one word of a shell. */
function quoted(text) {
  return /^[\w.:-]+$/.test(text) && !text.startsWith('-')
    ? text
    : `'${text.replaceAll("'", "'\\''")}'`;
}

const EXAMPLE = '6df2c1ce-b11a-4828-b2a6-62bf5b7cb325';

export function TrackHint({ id = EXAMPLE }) {
  return html`<p>Track a submission by the id that the upstream returned:</p>
    <${Command}>npx dawatch track ${quoted(id)}<//>
    <p>or over HTTP:</p>
    <${Command}
      >curl ${new URL('v1/submissions', document.baseURI).href} -H "x-api-key: $DAWATCH_API_KEY" \\
  -H 'content-type: application/json' -d ${quoted(JSON.stringify({ submission_id: id }))}<//
    >`;
}

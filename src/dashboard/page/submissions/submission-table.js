import { between, text } from '../parts/format.js';
import { html } from '../parts/html.js';
import { Badge, Command, Time } from '../parts/parts.js';
import { hrefTo } from '../router.js';

/** @import { Submission } from '../../../client/api.ts' */

/** @type {readonly import('../parts/table.js').Column<Submission>[]} */
const COLUMNS = [
  { title: 'Submission', cell: submissionLink },
  { title: 'Status', cell: ({ status }) => html`<${Badge} state=${status} />` },
  {
    title: 'Upstream state',
    cell: ({ upstream_state, error }) =>
      [upstream_state, error].filter(Boolean).join(': ') || html`<span class="muted">–</span>`,
    class: 'from-upstream',
  },
  { title: 'Metadata', cell: ({ metadata }) => metadataOf(metadata), class: 'summary secondary' },
  { title: 'Tracked', cell: ({ tracked_at }) => html`<${Time} at=${tracked_at} />` },
  { title: 'Final', cell: ({ finalized_at }) => html`<${Time} at=${finalized_at} />` },
  {
    title: 'Time to finality',
    cell: ({ tracked_at, finalized_at }) =>
      finalized_at === null ? '' : between(tracked_at, finalized_at),
    class: 'number secondary',
  },
  {
    title: 'Requests',
    cell: ({ polls }) => polls,
    class: 'number secondary',
  },
];

/** Metadata that is longer is shown on the page of the submission. */
const SHOWN_CHARS = 80;

/** @param {Record<string, unknown> | null} metadata */
function metadataOf(metadata) {
  const all = Object.entries(metadata ?? {}).map(([name, value]) => `${name}: ${text(value)}`);
  const shown = all.join(', ');
  return shown.length > SHOWN_CHARS ? `${shown.slice(0, SHOWN_CHARS)}…` : shown;
}

/**
 * @typedef {{ selected: readonly Submission[], select: (submissions: readonly Submission[]) => void }} Selection
 *   `selected`: includes rows of other pages
 */

/** @param {Selection | undefined} selection undefined: rows cannot be selected */
export function columnsOf(selection) {
  return selection ? [selectableColumn(selection), ...COLUMNS.slice(1)] : COLUMNS;
}

/** @param {{ submission_id: string }} submission */
export function submissionId({ submission_id }) {
  return submission_id;
}

/**
 * A checkbox that selects the rows of the page. It is not in the table, whose head a phone does not
 * show. @param {Selection & { rows: readonly Submission[] }} props
 */
export function SelectAll({ rows, selected, select }) {
  const ids = new Set(selected.map(submissionId));
  const here = rows.filter((one) => ids.has(submissionId(one))).length;
  const isAll = here === rows.length && rows.length > 0;
  return html`<label class="check">
    <input
      type="checkbox"
      checked=${isAll}
      indeterminate=${!isAll && here > 0}
      disabled=${rows.length === 0}
      onChange=${() => select([...without(selected, rows), ...(isAll ? [] : rows)])}
    />
    Select all on this page
  </label>`;
}

/** @param {Selection} selection @returns {import('../parts/table.js').Column<Submission>} */
function selectableColumn({ selected, select }) {
  const ids = new Set(selected.map(submissionId));
  return {
    title: 'Submission',
    cell: (one) => html`<input
        type="checkbox"
        aria-label=${`Select ${one.submission_id}`}
        checked=${ids.has(one.submission_id)}
        onChange=${() => select([...without(selected, [one]), ...(ids.has(one.submission_id) ? [] : [one])])}
      />
      ${submissionLink(one)}`,
  };
}

/** @param {readonly Submission[]} submissions @param {readonly Submission[]} others */
function without(submissions, others) {
  const ids = new Set(others.map(submissionId));
  return submissions.filter((one) => !ids.has(submissionId(one)));
}

/** @param {{ submission_id: string }} submission */
export function submissionLink({ submission_id }) {
  return html`<a class="id" href=${hrefTo('submissions', submission_id)}>${submission_id}</a>`;
}

/** Statuses in the order of a submission's life: open ones, then final ones. */
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

/**
 * The address of the list of submissions that ended in a period.
 * @param {number} since @param {number} until epoch milliseconds, excluded @param {{ status?: string, upstream?: string }} filter
 */
export function endedBetween(since, until, filter) {
  return hrefTo('submissions', undefined, {
    ...filter,
    ended_since: new Date(since).toISOString(),
    ended_until: new Date(until).toISOString(),
  });
}

/** Whether a submission in this status can be tracked again. @param {string} status */
export function canRetrack(status) {
  return FINAL_STATUSES.includes(status) && status !== 'finalized';
}

/** Quotes a text as one word of a shell. @param {string} text */
function quoted(text) {
  return /^[\w.:-]+$/.test(text) && !text.startsWith('-')
    ? text
    : `'${text.replaceAll("'", "'\\''")}'`;
}

/** Commands that track a submission. @param {{ id?: string }} props */
export function TrackHint({ id = '<submission id>' }) {
  return html`<p>Track a submission from a terminal:</p>
    <${Command}>npx dawatch track ${quoted(id)}<//>
    <p>or over HTTP:</p>
    <${Command}
      >curl ${new URL('v1/submissions', document.baseURI).href} -H "x-api-key: $DAWATCH_API_KEY" \\
  -H 'content-type: application/json' -d ${quoted(JSON.stringify({ submission_id: id }))}<//
    >`;
}

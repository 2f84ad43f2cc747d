import { between, text } from '../parts/format.js';
import { html } from '../parts/html.js';
import { Badge, Command, Time } from '../parts/parts.js';
import { hrefTo } from '../router.js';

/** @import { Submission } from '../../../client/api.ts' */

/**
 * The columns after the first one.
 * @type {readonly import('../parts/table.js').Column<Submission>[]}
 */
export const COLUMNS = [
  {
    title: 'Status',
    width: 8,
    class: 'at-state',
    cell: ({ status }) => html`<${Badge} state=${status} />`,
  },
  {
    title: 'Metadata',
    class: 'from-m at-middle',
    cell: ({ metadata }) => metadataOf(metadata),
  },
  { title: 'Upstream', width: 8, class: 'from-m', cell: ({ upstream }) => upstream },
  {
    title: 'Upstream state',
    width: 12,
    class: 'from-l',
    cell: ({ upstream_state, error }) => [upstream_state, error].filter(Boolean).join(': '),
  },
  {
    title: 'Tracked',
    width: 7.5,
    class: 'at-left',
    cell: ({ tracked_at }) => html`<${Time} at=${tracked_at} />`,
  },
  {
    title: 'Final',
    width: 7.5,
    class: 'from-l',
    cell: ({ finalized_at }) => finalized_at && html`<${Time} at=${finalized_at} />`,
  },
  {
    title: 'Took',
    width: 6.5,
    class: 'number from-l at-end',
    cell: ({ tracked_at, finalized_at }) => finalized_at && between(tracked_at, finalized_at),
  },
  { title: 'Requests', width: 6, class: 'number from-l', cell: ({ polls }) => polls },
];

/** Those that are shown unless others are chosen. */
export const DEFAULT_COLUMNS = COLUMNS.map(({ title }) => title).filter(
  (title) => title !== 'Upstream' && title !== 'Upstream state',
);

/** @param {Record<string, unknown> | null} metadata */
function metadataOf(metadata) {
  return Object.entries(metadata ?? {}).map(
    ([name, value], index) =>
      html`<span key=${name}>${index > 0 && ' · '}<span class="muted">${name}</span> ${text(value)}</span>`,
  );
}

/**
 * @typedef {{ selected: readonly Submission[], select: (submissions: readonly Submission[]) => void }} Selection
 *   `selected`: includes rows of other pages
 */

/**
 * @param {Selection | undefined} selection undefined: rows cannot be selected
 * @returns {import('../parts/table.js').Column<Submission>}
 */
export function firstColumn(selection) {
  const ids = new Set(selection?.selected.map(submissionId));
  const toggle = (/** @type {Submission} */ one) =>
    selection?.select([
      ...without(selection.selected, [one]),
      ...(ids.has(one.submission_id) ? [] : [one]),
    ]);
  return {
    title: 'Submission',
    width: 23.5,
    cell: (one) =>
      html`${
        selection &&
        html`<input
        type="checkbox"
        aria-label=${`Select ${one.submission_id}`}
        checked=${ids.has(one.submission_id)}
        onChange=${() => toggle(one)}
      />`
      }${submissionLink(one)}`,
  };
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
    <span class="unseen">Select all on this page</span>
  </label>`;
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

const EXAMPLE = '6df2c1ce-b11a-4828-b2a6-62bf5b7cb325';

/** Commands that track a submission. @param {{ id?: string }} props */
export function TrackHint({ id = EXAMPLE }) {
  return html`<p>Track a submission by the id that the upstream returned:</p>
    <${Command}>npx dawatch track ${quoted(id)}<//>
    <p>or over HTTP:</p>
    <${Command}
      >curl ${new URL('v1/submissions', document.baseURI).href} -H "x-api-key: $DAWATCH_API_KEY" \\
  -H 'content-type: application/json' -d ${quoted(JSON.stringify({ submission_id: id }))}<//
    >`;
}

import { between } from '../parts/format.js';
import { html } from '../parts/html.js';
import { Badge, Command, Time } from '../parts/parts.js';
import { Table } from '../parts/table.js';
import { hrefTo } from '../router.js';

/** @type {readonly import('../parts/table.js').Column[]} */
const COLUMNS = [
  { title: 'Submission', cell: submissionLink },
  { title: 'Status', cell: ({ status }) => html`<${Badge} state=${status} />` },
  {
    title: 'Upstream state',
    cell: ({ upstream_state, error }) =>
      [upstream_state, error].filter(Boolean).join(': ') || html`<span class="muted">–</span>`,
    class: 'said-by-upstream',
  },
  { title: 'Tracked', cell: ({ tracked_at }) => html`<${Time} at=${tracked_at} />` },
  { title: 'Final', cell: ({ finalized_at }) => html`<${Time} at=${finalized_at} />` },
  {
    title: 'Time to finality',
    cell: ({ tracked_at, finalized_at }) => (finalized_at === null ? '' : between(tracked_at, finalized_at)),
    class: 'number secondary',
  },
  { title: 'Requests', cell: ({ polls }) => polls, class: 'number secondary' },
];

/**
 * @param {{ submissions: readonly any[], caption: string, isLoading: boolean, selected: ReadonlySet<string> | undefined, select: (ids: ReadonlySet<string>) => void }} props
 *   `selected`: the ids of the selected rows; undefined: rows cannot be selected
 */
export function SubmissionTable({ submissions, caption, isLoading, selected, select }) {
  const columns = selected ? [selectableColumn(submissions, selected, select), ...COLUMNS.slice(1)] : COLUMNS;
  return html`<${Table} caption=${caption} columns=${columns} rows=${submissions} isBusy=${isLoading} />`;
}

/** @param {readonly any[]} submissions @param {ReadonlySet<string>} selected @param {(ids: ReadonlySet<string>) => void} select @returns {import('../parts/table.js').Column} */
function selectableColumn(submissions, selected, select) {
  const ids = submissions.map(({ submission_id }) => submission_id);
  const isAll = ids.every((id) => selected.has(id));
  return {
    title: html`<input
        type="checkbox"
        aria-label="Select all on this page"
        checked=${isAll}
        indeterminate=${!isAll && selected.size > 0}
        onChange=${() => select(new Set(isAll ? [] : ids))}
      />
      Submission`,
    cell: (one) => html`<input
        type="checkbox"
        aria-label=${`Select ${one.submission_id}`}
        checked=${selected.has(one.submission_id)}
        onChange=${() => select(toggled(selected, one.submission_id))}
      />
      ${submissionLink(one)}`,
  };
}

/** @param {ReadonlySet<string>} ids @param {string} id */
function toggled(ids, id) {
  const others = [...ids].filter((other) => other !== id);
  return new Set(ids.has(id) ? others : [...others, id]);
}

/** @param {{ submission_id: string }} submission */
export function submissionLink({ submission_id }) {
  return html`<a class="id" href=${hrefTo('submissions', submission_id)}>${submission_id}</a>`;
}

/** Statuses in the order of a submission's life: open ones, then final ones. */
export const OPEN_STATUSES = ['tracking', 'pending', 'failing'];
export const FINAL_STATUSES = ['finalized', 'failed', 'unknown', 'rejected', 'expired', 'cancelled'];
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

/** Commands that track a submission. @param {{ id?: string }} props */
export function TrackHint({ id = '<submission id>' }) {
  return html`<p>Track a submission from a terminal:</p>
    <${Command}>npx dawatch track ${id}<//>
    <p>or over HTTP:</p>
    <${Command}
      >curl ${new URL('v1/submissions', document.baseURI).href} -H "x-api-key: $DAWATCH_API_KEY" \\
  -H 'content-type: application/json' -d '{"submission_id": "${id}"}'<//
    >`;
}

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

/** @param {{ submissions: readonly any[], caption: string, isLoading: boolean }} props */
export function SubmissionTable({ submissions, caption, isLoading }) {
  return html`<${Table} caption=${caption} columns=${COLUMNS} rows=${submissions} isBusy=${isLoading} />`;
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

import { wholeDuration } from '../parts/format.js';
import { html } from '../parts/html.js';
import { Badge, Time } from '../parts/parts.js';
import { Table } from '../parts/table.js';
import { submissionLink } from '../submissions/submission-table.js';

/** @type {readonly import('../parts/table.js').Column[]} */
const COLUMNS = [
  { title: 'Submission', cell: submissionLink },
  { title: 'Status', cell: ({ status }) => html`<${Badge} state=${status} />` },
  { title: 'Upstream', cell: ({ upstream }) => upstream },
  { title: 'Tracked', cell: ({ tracked_at }) => html`<${Time} at=${tracked_at} />` },
  { title: 'Age', cell: ({ age_s }) => wholeDuration(age_s), class: 'number' },
];

/** @param {{ oldest: readonly any[] }} props */
export function OldestOpen({ oldest }) {
  return html`<section aria-labelledby="oldest">
    <h2 id="oldest">Oldest open submissions</h2>
    ${
      oldest.length === 0
        ? html`<p class="muted">No open submissions: every tracked submission is final.</p>`
        : html`<${Table} caption="Oldest open submissions, oldest first" hidesCaption columns=${COLUMNS} rows=${oldest} />`
    }
  </section>`;
}

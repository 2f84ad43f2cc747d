import { count } from '../parts/format.js';
import { html } from '../parts/html.js';
import { hrefTo } from '../router.js';
import { FINAL_STATUSES, OPEN_STATUSES } from '../submissions/statuses.js';

/** Number of submissions by status. @param {{ submissions: Record<string, number> }} props */
export function StatusCounts({ submissions }) {
  return html`<section aria-labelledby="counts">
    <h2 id="counts">Submissions</h2>
    <div class="counts">
      <${Group} title="Open" statuses=${OPEN_STATUSES} submissions=${submissions} />
      <${Group} title="Final" statuses=${FINAL_STATUSES} submissions=${submissions} />
    </div>
  </section>`;
}

/** @param {{ title: string, statuses: readonly string[], submissions: Record<string, number> }} props */
function Group({ title, statuses, submissions }) {
  return html`<div>
    <h3>${title}</h3>
    <ul>
      ${statuses.map((status) => {
        const number = submissions[status] ?? 0;
        return html`<li key=${status} class=${`${status}${number === 0 ? ' none' : ''}`}>
          <a href=${hrefTo('submissions', undefined, { status })}><strong>${count(number)}</strong> <span>${status}</span></a>
        </li>`;
      })}
    </ul>
  </div>`;
}

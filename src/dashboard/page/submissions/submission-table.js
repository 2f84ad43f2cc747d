import { between } from '../parts/format.js';
import { html } from '../parts/html.js';
import { Badge, Time } from '../parts/parts.js';
import { hrefTo } from '../router.js';

/** @param {{ submissions: readonly any[], caption: string, isLoading: boolean }} props */
export function SubmissionTable({ submissions, caption, isLoading }) {
  return html`<div class="wide" tabindex="0" role="region" aria-label=${caption}>
    <table aria-busy=${isLoading}>
      <caption>${caption}</caption>
      <thead>
        <tr>
          <th scope="col">Submission</th>
          <th scope="col">Status</th>
          <th scope="col">Upstream state</th>
          <th scope="col">Tracked</th>
          <th scope="col">Final</th>
          <th scope="col" class="number">Time to finality</th>
          <th scope="col" class="number">Requests</th>
        </tr>
      </thead>
      <tbody>
        ${submissions.map((one) => html`<${Row} key=${one.submission_id} one=${one} />`)}
      </tbody>
    </table>
  </div>`;
}

/** @param {{ one: any }} props */
function Row({ one }) {
  const { submission_id, status, upstream_state, error, tracked_at, finalized_at, polls } = one;
  return html`<tr>
    <th scope="row"><a class="id" href=${hrefTo('submissions', submission_id)}>${submission_id}</a></th>
    <td><${Badge} state=${status} /></td>
    <td class="said-by-upstream">${[upstream_state, error].filter(Boolean).join(': ') || html`<span class="muted">–</span>`}</td>
    <td><${Time} at=${tracked_at} /></td>
    <td><${Time} at=${finalized_at} /></td>
    <td class="number">${finalized_at === null ? '' : between(tracked_at, finalized_at)}</td>
    <td class="number">${polls}</td>
  </tr>`;
}

import { wholeDuration } from '../parts/format.js';
import { html } from '../parts/html.js';
import { Badge, Time } from '../parts/parts.js';
import { hrefTo } from '../router.js';

/** @param {{ oldest: readonly any[] }} props */
export function OldestOpen({ oldest }) {
  return html`<section aria-labelledby="oldest">
    <h2 id="oldest">Oldest open submissions</h2>
    ${
      oldest.length === 0
        ? html`<p class="muted">No open submissions: every tracked submission is final.</p>`
        : html`<div class="wide" tabindex="0" role="region" aria-label="Table of the oldest open submissions">
            <table>
              <caption class="unseen">Oldest open submissions, oldest first</caption>
              <thead>
                <tr>
                  <th scope="col">Submission</th>
                  <th scope="col">Status</th>
                  <th scope="col">Upstream</th>
                  <th scope="col">Tracked</th>
                  <th scope="col" class="number">Age</th>
                </tr>
              </thead>
              <tbody>
                ${oldest.map(
                  (one) => html`<tr key=${one.submission_id}>
                    <th scope="row"><a class="id" href=${hrefTo('submissions', one.submission_id)}>${one.submission_id}</a></th>
                    <td><${Badge} state=${one.status} /></td>
                    <td>${one.upstream}</td>
                    <td><${Time} at=${one.tracked_at} /></td>
                    <td class="number">${wholeDuration(one.age_s)}</td>
                  </tr>`,
                )}
              </tbody>
            </table>
          </div>`
    }
  </section>`;
}

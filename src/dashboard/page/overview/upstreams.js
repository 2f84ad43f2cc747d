import { count, wholeDuration } from '../parts/format.js';
import { html } from '../parts/html.js';
import { Badge } from '../parts/parts.js';

/** @type {Record<string, string>} */
const STATES = { closed: 'up', down: 'down', unauthorized: 'key refused' };

/** State and used budget of each upstream. @param {{ upstreams: readonly any[], readers: number, workers: any }} props */
export function Upstreams({ upstreams, readers, workers }) {
  return html`<section aria-labelledby="upstreams">
    <h2 id="upstreams">Upstreams</h2>
    <div class="wide" tabindex="0" role="region" aria-label="Table of the upstreams">
      <table>
        <caption class="unseen">Upstreams, their health and their budgets</caption>
        <thead>
          <tr>
            <th scope="col">Upstream</th>
            <th scope="col">State</th>
            <th scope="col" class="number">Tracked</th>
            <th scope="col" class="number">In flight</th>
            <th scope="col">Budget used</th>
          </tr>
        </thead>
        <tbody>
          ${upstreams.map(
            ({ name, state, tracked, in_flight, budget }) => html`<tr key=${name}>
              <th scope="row">${name}</th>
              <td><${Badge} state=${state} label=${STATES[state] ?? state} /></td>
              <td class="number">${count(tracked)}</td>
              <td class="number">${count(in_flight)}</td>
              <td>
                <meter min="0" max=${budget.limit} value=${budget.used} aria-label=${`Budget used at ${name}`}></meter>
                ${` ${count(budget.used)} of ${count(budget.limit)} per ${wholeDuration(budget.window_ms / 1_000)}`}
              </td>
            </tr>`,
          )}
        </tbody>
      </table>
    </div>
    <p class="muted">
      ${readers === 1 ? '1 reader of the live feed' : `${count(readers)} readers of the live feed`}${workers !== null && ` · ${count(workers)} ${workers === 1 ? 'worker' : 'workers'}`}
    </p>
  </section>`;
}

import { count, wholeDuration } from '../parts/format.js';
import { html } from '../parts/html.js';
import { Badge } from '../parts/parts.js';
import { Table } from '../parts/table.js';

/** @type {Record<string, string>} */
const STATES = { closed: 'up', down: 'down', unauthorized: 'key refused' };

/** @type {readonly import('../parts/table.js').Column[]} */
const COLUMNS = [
  { title: 'Upstream', cell: ({ name }) => name },
  { title: 'State', cell: ({ state }) => html`<${Badge} state=${state} label=${STATES[state] ?? state} />` },
  { title: 'Tracked', cell: ({ tracked }) => count(tracked), class: 'number' },
  { title: 'In flight', cell: ({ in_flight }) => count(in_flight), class: 'number' },
  {
    title: 'Budget used',
    cell: ({ name, budget: { used, limit, window_ms } }) => html`
      <meter min="0" max=${limit} value=${used} aria-label=${`Budget used at ${name}`}></meter>
      ${` ${count(used)} of ${count(limit)} per ${wholeDuration(window_ms / 1_000)}`}
    `,
  },
];

/** State and used budget of each upstream. @param {{ upstreams: readonly any[], readers: number, workers: any }} props */
export function Upstreams({ upstreams, readers, workers }) {
  return html`<section aria-labelledby="upstreams">
    <h2 id="upstreams">Upstreams</h2>
    <${Table} caption="Upstreams, their health and their budgets" hidesCaption columns=${COLUMNS} rows=${upstreams} />
    <p class="muted">
      ${readers === 1 ? '1 reader of the live feed' : `${count(readers)} readers of the live feed`}${workers !== null && ` · ${count(workers)} ${workers === 1 ? 'worker' : 'workers'}`}
    </p>
  </section>`;
}

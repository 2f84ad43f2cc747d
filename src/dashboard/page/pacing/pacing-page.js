import { useDashboard } from '../data/context.js';
import { useLoad, useWhileVisible } from '../data/use-load.js';
import { count, decimal, duration, percent } from '../parts/format.js';
import { html } from '../parts/html.js';
import { Badge, Empty, Facts, Loadable, Time } from '../parts/parts.js';
import { Table } from '../parts/table.js';
import { hrefTo } from '../router.js';
import { CurvePlot } from './curve-plot.js';

const EVERY_MS = 5_000;

/** @type {Record<string, string>} */
const MODES = {
  slots: 'in groups, with the slots of a chain',
  age: 'by age: no period is known',
};
/** @type {Record<string, string>} */
const REASONS = {
  slot: 'it is likely to become final in this slot',
  scout: 'on behalf of all that are likely to become final with it',
  age: 'by its age',
  net: 'it was left unpolled for the longest time allowed',
  recheck: 'it is final, and polled once more',
  probe: 'to find out whether the upstream is back',
};

/** Per upstream: the learned distribution of finality time, the scheduled polls and their cost. */
export function PacingPage() {
  const { api } = useDashboard();
  const loaded = useLoad((signal) => api.get('v1/pacing', { signal }), 'v1/pacing');
  useWhileVisible(loaded.refresh, EVERY_MS);
  return html`<h1 tabindex="-1">Pacing</h1>
    <${Loadable} loaded=${loaded}>
      ${(/** @type {any} */ { at, upstreams }) => html`
        ${upstreams.length === 0 && html`<${Empty} title="No upstream is configured." />`}
        ${upstreams.map((/** @type {any} */ upstream) => html`<${Upstream} key=${upstream.upstream} upstream=${upstream} now=${Date.parse(at)} />`)}
        <p class="muted">As of <${Time} at=${at} />, server time.</p>
      `}
    <//>`;
}

/** @param {{ upstream: any, now: number }} props */
function Upstream({ upstream, now }) {
  const { upstream: name, state, mode, slot, senders, observed, lag_price: price, next } = upstream;
  const id = `pacing-${name}`;
  return html`<section aria-labelledby=${id}>
    <h2 id=${id}>${name} ${state !== 'closed' && html`<${Badge} state=${state} />`}</h2>
    <div class="columns">
      <${CurvePlot} upstream=${upstream} now=${now} />
      <div>
        <${Costs} name=${name} cost=${upstream.cost} price=${price} />
        <${Facts}
          of=${[
            ['Price of one second of lag', `${price} ${price === 1 ? 'request' : 'requests'}`],
            ['Finality', MODES[mode] ?? mode],
            [
              'Slots',
              slot &&
                `every ${duration(slot.period_ms / 1_000)}, ${percent(slot.empty_share)} empty`,
            ],
            ['Next group', slot?.next_event_at && `in about ${untilText(slot.next_event_at, now)}`],
            [
              'Serial senders',
              senders === null ? 'none: submissions are sent in parallel' : count(senders),
            ],
            [
              'Learned from',
              observed === 0
                ? 'nothing yet: the initial belief'
                : `${count(observed)} finalized submissions`,
            ],
            [
              'Next poll',
              next &&
                html`<a href=${hrefTo('submissions', next.submission_id)}>${next.at === null ? 'after the next response' : `in ${untilText(next.at, now)}`}</a>: ${REASONS[next.reason] ?? next.reason}`,
            ],
          ]}
        />
      </div>
    </div>
  </section>`;
}

/** @param {string} at @param {number} now */
function untilText(at, now) {
  return duration(Math.max(0, Date.parse(at) - now) / 1_000);
}

/**
 * @param {{ name: string, cost: Record<string, { requests: number, lag_s: number } | null>, price:
 * number }} props
 */
function Costs({ name, cost, price }) {
  /** @typedef {[name: string, cost: { requests: number, lag_s: number } | null | undefined]} Row */
  /** @type {Row[]} */
  const rows = [
    ['Measured', cost.current],
    ['Lower bound of a single submission', cost.lower_bound],
    ['Polling every 5 s', cost.every_five_seconds],
  ];
  const numberOf = (
    /** @type {(cost: { requests: number, lag_s: number }) => string} */ format,
  ) => ({
    cell: (/** @type {Row} */ [, known]) => (known ? format(known) : '–'),
    class: 'number',
  });
  const columns = [
    {
      title: html`<span class="unseen">Polling</span>`,
      cell: (/** @type {Row} */ [title]) => title,
    },
    { title: 'Requests', ...numberOf(({ requests }) => decimal(requests, 2)) },
    { title: 'Mean lag', ...numberOf(({ lag_s }) => duration(lag_s)) },
    { title: 'Total', ...numberOf(({ requests, lag_s }) => decimal(requests + price * lag_s, 2)) },
  ];
  const caption = html`Cost per submission<span class="unseen"> at ${name}</span>`;
  return html`<${Table} label=${`Costs at ${name}`} caption=${caption} columns=${columns} rows=${rows} />`;
}

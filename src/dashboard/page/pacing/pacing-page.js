import { useDashboard, useLoad, useWhileVisible } from '../data/context.js';
import { count, decimal, duration, percent, wholeDuration } from '../parts/format.js';
import { html } from '../parts/html.js';
import { Badge, Empty, Facts, Loadable, PageHeader } from '../parts/parts.js';
import { AXIS, css, PlotCanvas, xAxis } from '../parts/plot.js';
import { hrefTo } from '../router.js';
import { OPEN_STATUSES } from '../submissions/submission-table.js';

/** @import { Pacing, PollResult, UpstreamPacing } from '../../../client/api.ts' */

const EVERY_MS = 2_000;

/** @type {Record<string, string>} */
const MODES = {
  heads: 'with the blocks that a node of the chain announces',
  slots: 'in groups, with the slots of a chain',
  age: 'by age: no period is known',
};

export function PacingPage() {
  const { api } = useDashboard();
  const loaded = useLoad((signal) => api.get('v1/pacing', { signal }), 'v1/pacing');
  useWhileVisible(loaded.reload, EVERY_MS);
  return html`<${PageHeader} title="Pacing" />
    <${Loadable} loaded=${loaded}>
      ${(/** @type {Pacing} */ { at, upstreams }) => html`
        ${upstreams.length === 0 && html`<${Empty} title="No upstream is configured." />`}
        ${upstreams.map((upstream) => html`<${Upstream} key=${upstream.upstream} upstream=${upstream} now=${Date.parse(at)} />`)}
      `}
    <//>`;
}

/** @param {{ upstream: UpstreamPacing, now: number }} props */
function Upstream({ upstream, now }) {
  const { upstream: name, state, reason, paused_until: paused } = upstream;
  const { mode, slot, observed, lag_price: price, tracked, budget } = upstream;
  const id = `pacing-${name}`;
  return html`<section aria-labelledby=${id}>
    <h2 id=${id}>${name} ${state !== 'up' && html`<${Badge} state=${state} />`}</h2>
    <div class="columns">
      <${CurvePlot} upstream=${upstream} />
      <div>
        <${Facts}
          of=${[
            ['Paused', paused && `ends ${untilText(paused, now)}: ${reason ?? 'Retry-After'}`],
            [
              'Open',
              html`<a href=${hrefTo('submissions', undefined, { upstream: name, status: OPEN_STATUSES.join() })}>${count(tracked)}</a>`,
            ],
            [
              'Budget used',
              `${count(budget.used)} of ${count(budget.requests)} per ${wholeDuration(budget.per_ms / 1_000)}, ${count(budget.in_flight)} in flight`,
            ],
            ['Last 2 minutes', recentText(upstream)],
            ['Last hour', lastHourText(upstream)],
            ['Price of 1 s of lag', `${price} ${price === 1 ? 'request' : 'requests'}`],
            ['Finality', MODES[mode] ?? mode],
            [
              'Slots',
              slot &&
                `every ${duration(slot.period_ms / 1_000)}, ${percent(slot.empty_share)} empty`,
            ],
            ['Next group', slot?.next_event_at && untilText(slot.next_event_at, now)],
            [
              'Learned from',
              observed === 0
                ? 'nothing yet: default estimate'
                : `${count(observed)} finalized submissions`,
            ],
          ]}
        />
      </div>
    </div>
  </section>`;
}

/** @param {UpstreamPacing} upstream */
function lastHourText({ last_hour: { requests_per_submission: requests, mean_lag_s: lagS } }) {
  if (requests === null) return 'too few submissions';
  const lag = lagS === null ? 'not known' : duration(lagS);
  return `${decimal(requests, 2)} requests per submission, mean lag ${lag}`;
}

function untilText(at, now) {
  const s = Math.round((Date.parse(at) - now) / 1_000);
  return s > 0 ? `in ${wholeDuration(s)}` : 'now';
}

const HEIGHT_PX = 260;
const MOST_POLLS = 5;
/** With fewer finalized submissions, quantiles would state what nobody has measured. */
const FEW = 20;

/** @param {{ upstream: UpstreamPacing }} props */
function CurvePlot({ upstream }) {
  const { curve, polls_ms: pollsMs } = upstream;
  const { at, final, polls } = plotData(curve, pollsMs);
  return html`<figure class="plot">
    <figcaption>
      <strong>Finality of a submission tracked now</strong>
      <span class="muted">${summaryOf(upstream)}</span>
    </figcaption>
    ${
      at.length === 0
        ? html`<p class="state muted">No curve yet.</p>`
        : html`<${PlotCanvas} data=${[at, final, polls]} height=${HEIGHT_PX} options=${OPTIONS} />`
    }
    ${at.length > 0 && html`<div class="keys muted"><span class="key">share that is final</span><span class="key key-2">planned polls</span></div>`}
  </figure>`;
}

/** @param {UpstreamPacing} upstream */
function summaryOf({ curve, polls_ms: pollsMs, observed }) {
  if (observed < FEW)
    return `Few data yet: this is an assumption${observed > 0 ? ` and ${count(observed)} of the first ${FEW} finalized submissions` : ''}. It is replaced as submissions become final.`;
  const quantiles = [0.5, 0.9, 0.99].flatMap((share) => {
    const ms = quantileMs(curve, share);
    return ms === null ? [] : [`${percent(share)} are final within ${duration(ms / 1_000)}`];
  });
  const polls = pollsMs.slice(0, MOST_POLLS).map((ms) => duration(ms / 1_000));
  const planned = polls.length === 0 ? '' : ` First polls after ${polls.join(', ')}.`;
  return `${quantiles.join(', ') || 'No data'}.${planned}`;
}

const OPTIONS = {
  scales: { x: { time: false }, y: { range: /** @type {[number, number]} */ ([0, 1.05]) } },
  axes: [
    xAxis(axisText),
    {
      ...AXIS,
      splits: [0, 0.25, 0.5, 0.75, 1],
      values: (_, /** @type {number[]} */ splits) => splits.map(percent),
    },
  ],
  series: [
    {},
    { stroke: () => css('--accent'), width: 1.5, points: { show: false } },
    {
      stroke: () => css('--muted'),
      paths: () => null,
      points: { show: true, size: 10, fill: () => css('--muted') },
    },
  ],
};

function axisText(s) {
  return s < 120 ? `${Number(s.toFixed(2))} s` : duration(s);
}

/** @typedef {UpstreamPacing['curve']} Curve a distribution of finality time */

/** A plot ends a little after this probability: the last percent may take days. */
const SHOWN = 0.98;

/** Time at which the probability is reached; null if the curve ends before. */
export function quantileMs(curve, probability) {
  const index = curve.findIndex((point) => point.probability >= probability);
  const after = curve[index];
  if (!after) return null;
  const before = curve[index - 1] ?? { after_ms: 0, probability: 0 };
  const rise = after.probability - before.probability;
  const part = rise > 0 ? Math.max(0, probability - before.probability) / rise : 1;
  return before.after_ms + part * (after.after_ms - before.after_ms);
}

export function probabilityAt(curve, ms) {
  const index = curve.findIndex((point) => point.after_ms >= ms);
  const after = curve[index];
  if (!after) return curve.at(-1)?.probability ?? 0;
  const before = curve[index - 1] ?? { after_ms: 0, probability: 0 };
  const span = after.after_ms - before.after_ms;
  const part = span > 0 ? (ms - before.after_ms) / span : 1;
  return before.probability + part * (after.probability - before.probability);
}

/** Times in seconds, and two series over them. Empty if there is nothing to draw. */
export function plotData(curve, pollsMs) {
  const last = curve.at(-1);
  if (!last || last.after_ms <= 0 || last.probability <= 0) return { at: [], final: [], polls: [] };
  const endMs =
    Math.min(last.after_ms, 1.1 * (quantileMs(curve, SHOWN * last.probability) ?? last.after_ms)) ||
    last.after_ms;
  const planned = pollsMs.filter((ms) => ms <= endMs);
  const times = new Set([
    0,
    ...curve.map(({ after_ms }) => after_ms).filter((ms) => ms <= endMs),
    ...planned,
    endMs,
  ]);
  const at = [...times].toSorted((a, b) => a - b);
  const isPoll = new Set(planned);
  return {
    at: at.map((ms) => ms / 1_000),
    final: at.map((ms) => probabilityAt(curve, ms)),
    polls: at.map((ms) => (isPoll.has(ms) ? probabilityAt(curve, ms) : null)),
  };
}

/** @type {Record<string, string>} */
const NAMES = { pending: 'not final yet', final: 'found final', error: 'with an error' };

/** What a poll means for its submission. @param {PollResult} result */
function meaningOf(result) {
  if (result === 'finalized') return 'final';
  return result === 'pending' || result === 'not_found' ? 'pending' : 'error';
}

/** @param {UpstreamPacing} upstream */
function recentText({ recent_polls: polls }) {
  if (polls.length === 0) return 'no polls';
  const counts = Object.entries(NAMES).map(([meaning, name]) => {
    const number = polls.filter(({ result }) => meaningOf(result) === meaning).length;
    return number > 0 && `${count(number)} ${name}`;
  });
  return `${polls.length === 1 ? '1 poll' : `${count(polls.length)} polls`}: ${counts.filter(Boolean).join(', ')}`;
}

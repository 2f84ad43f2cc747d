import { duration, percent } from '../parts/format.js';
import { html } from '../parts/html.js';
import { AXIS, css, PlotCanvas } from '../parts/plot-canvas.js';
import { PlotTable } from '../parts/table.js';
import { hrefTo } from '../router.js';
import { OPEN_STATUSES } from '../submissions/submission-table.js';
import { plotData, probabilityAt, quantileMs } from './curve.js';

const HEIGHT_PX = 260;
const QUANTILES = [0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99];
const MOST_POLLS = 5;

/**
 * The probability that a submission is final by its time since tracking, with its polls. A point
 * opens the submissions that are still open at that age.
 * @param {{ upstream: any, now: number }} props
 */
export function CurvePlot({ upstream, now }) {
  const { curve, polls_ms: pollsMs, upstream: name } = upstream;
  const { at, final, polls } = plotData(curve, pollsMs);
  const hrefOf = (/** @type {number} */ ageMs) =>
    hrefTo('submissions', undefined, {
      upstream: name,
      status: OPEN_STATUSES.join(),
      tracked_until: new Date(Math.max(0, now - ageMs)).toISOString(),
    });
  const links = {
    label: `Finality at ${name}`,
    textOf: (/** @type {number} */ index) =>
      `after ${duration(at[index] ?? 0)}, ${percent(final[index] ?? 0)} final`,
    hrefOf: (/** @type {number} */ index) => hrefOf((at[index] ?? 0) * 1_000),
  };
  return html`<figure class="plot">
    <figcaption>
      <strong>Finality of a submission tracked now</strong>
      <span class="muted">${summaryOf(upstream)}</span>
    </figcaption>
    ${
      at.length === 0
        ? html`<p class="state muted">No curve yet.</p>`
        : html`<${PlotCanvas} data=${[at, final, polls]} height=${HEIGHT_PX} options=${OPTIONS} links=${links} />`
    }
    <${AsTable} name=${name} curve=${curve} pollsMs=${pollsMs} hrefOf=${hrefOf} />
  </figure>`;
}

/** @param {any} upstream */
function summaryOf({ curve, polls_ms: pollsMs }) {
  const quantiles = [0.5, 0.9, 0.99].flatMap((share) => {
    const ms = quantileMs(curve, share);
    return ms === null ? [] : [`${percent(share)} are final within ${duration(ms / 1_000)}`];
  });
  const polls = pollsMs
    .slice(0, MOST_POLLS)
    .map((/** @type {number} */ ms) => duration(ms / 1_000));
  const more = pollsMs.length > MOST_POLLS ? ' …' : '';
  return [
    quantiles.length === 0 ? 'No data.' : `${quantiles.join(', ')}.`,
    polls.length > 0 &&
      `Polled after ${polls.join(', ')}${more}, until a poll finds it final; polls of other submissions can change the schedule.`,
  ]
    .filter(Boolean)
    .join(' ');
}

const OPTIONS = {
  cursor: { y: false, drag: { x: false, y: false } },
  scales: { x: { time: false }, y: { range: /** @type {[number, number]} */ ([0, 1.05]) } },
  axes: [
    {
      ...AXIS,
      size: 28,
      grid: { show: false },
      values: (/** @type {unknown} */ _plot, /** @type {number[]} */ splits) =>
        splits.map(axisText),
    },
    {
      ...AXIS,
      size: 48,
      splits: [0, 0.25, 0.5, 0.75, 1],
      values: (/** @type {unknown} */ _plot, /** @type {number[]} */ splits) => splits.map(percent),
    },
  ],
  series: [
    {
      label: 'after',
      value: (/** @type {unknown} */ _plot, /** @type {number | null} */ s) =>
        s === null ? '–' : duration(s),
    },
    {
      label: 'final',
      stroke: () => css('--plot-1'),
      width: 1.5,
      points: { show: false },
      value: (/** @type {unknown} */ _plot, /** @type {number | null} */ share) =>
        share === null ? '–' : percent(share),
    },
    {
      label: 'poll',
      stroke: () => css('--plot-2'),
      paths: () => null,
      points: { show: true, size: 10, fill: () => css('--plot-2') },
      value: (/** @type {unknown} */ _plot, /** @type {number | null} */ share) =>
        share === null ? '–' : 'here',
    },
  ],
};

/** @param {number} s */
function axisText(s) {
  return s < 120 ? `${Number(s.toFixed(2))} s` : duration(s);
}

/**
 * @param {{ name: string, curve: import('./curve.js').Curve, pollsMs: readonly number[], hrefOf:
 * (ageMs: number) => string }} props
 */
function AsTable({ name, curve, pollsMs, hrefOf }) {
  /** @type {readonly import('../parts/table.js').Column[]} */
  const columns = [
    { title: 'After', cell: ({ ms }) => html`<a href=${hrefOf(ms)}>${duration(ms / 1_000)}</a>` },
    { title: 'Probability final', cell: ({ share }) => percent(share), class: 'number' },
    { title: 'Poll', cell: ({ isPoll }) => (isPoll ? 'poll' : '') },
  ];
  const title = `Finality and polls of ${name}`;
  const rows = [
    ...QUANTILES.flatMap((share) => {
      const ms = quantileMs(curve, share);
      return ms === null ? [] : [{ ms, share, isPoll: false }];
    }),
    ...pollsMs.map((ms) => ({ ms, share: probabilityAt(curve, ms), isPoll: true })),
  ].toSorted((a, b) => a.ms - b.ms);
  return html`<${PlotTable} label=${title} caption=${`${title}, by time since tracking`} columns=${columns} rows=${rows} />`;
}

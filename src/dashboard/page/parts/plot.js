import uPlot from 'uplot';
import { minuteOf } from './format.js';
import { html } from './html.js';
import { AXIS, css, PlotCanvas } from './plot-canvas.js';
import { PlotTable } from './table.js';

const HEIGHT_PX = 150;

/**
 * The times of a plot: the title of their column, and their formats in words and on the axis.
 * @typedef {{ title: string, name: (at: number) => string, mark: (at: number) => string, empty: string, isUtc?: boolean }} Times
 *   `name`, `mark`: of epoch milliseconds; `empty`: shown instead of a plot without data
 * @typedef {{ label: string, values: readonly (number | null)[], color: string, isBars?: boolean }} Series
 * @typedef {{ title: string, summary: string, at: readonly number[], series: readonly Series[], format: (value: number) => string, unit: string, times?: Times, hrefOf: (index: number) => string | undefined }} Props
 *   `at`: seconds since the epoch; `color`: the name of a CSS property; `unit`: of the values, on
 *   the axis; `hrefOf`: the address of the submissions behind the values of a time, undefined if
 *   there are none
 */

/** @type {Times} */
const MINUTES = {
  title: 'Minute',
  name: minuteOf,
  mark: minuteOf,
  empty: 'No data in the last hour.',
};

/** UTC on the axis, too. @param {number} at */
const utcDate = (at) => uPlot.tzDate(new Date(at * 1_000), 'Etc/UTC');

/** A plot with a summary in words and, on demand, a table. @param {Props} props */
export function Plot({ title, summary, at, series, format, unit, times = MINUTES, hrefOf }) {
  const isEmpty = series.every(({ values }) =>
    values.every((value) => value === null || value === 0),
  );
  const textOf = (/** @type {number} */ index) =>
    [
      times.name((at[index] ?? 0) * 1_000),
      ...series.map(({ label, values }) => `${label} ${formatted(values[index] ?? null, format)}`),
    ].join(', ');
  return html`<figure class="plot">
    <figcaption><strong>${title}</strong><span class="muted">${summary}</span></figcaption>
    ${
      isEmpty
        ? html`<p class="state muted">${times.empty}</p>`
        : html`<${PlotCanvas}
            data=${[at, ...series.map(({ values }) => values)]}
            height=${HEIGHT_PX}
            options=${optionsOf({ series, format, unit, times })}
            links=${{ label: title, textOf, hrefOf }}
          />`
    }
    <${AsTable} title=${title} at=${at} series=${series} format=${format} times=${times} hrefOf=${hrefOf} />
  </figure>`;
}

/**
 * @param {Pick<Props, 'series' | 'format' | 'unit'> & { times: Times }} props @returns
 * {Omit<uPlot.Options, 'width' | 'height'>}
 */
function optionsOf({ series, format, unit, times }) {
  return {
    ...(times.isUtc && { tzDate: utcDate }),
    cursor: { y: false, drag: { x: false, y: false } },
    scales: { y: { range: (_plot, _least, most) => [0, Math.max(most, 0.001) * 1.1] } },
    axes: [
      {
        ...AXIS,
        size: 28,
        grid: { show: false },
        values: (_plot, splits) => splits.map((at) => times.mark(at * 1_000)),
      },
      { ...AXIS, size: 48, values: (_plot, splits) => splits.map((value) => `${value}${unit}`) },
    ],
    series: [
      {
        label: times.title.toLowerCase(),
        value: (_plot, at) => (at === null ? '–' : times.name(at * 1_000)),
      },
      ...series.map(({ label, color, isBars }) => ({
        label,
        stroke: () => css(color),
        width: 1.5,
        points: { show: true, size: 4, fill: () => css(color) },
        ...(isBars && bars && { fill: () => css(color), paths: bars, points: { show: false } }),
        value: (/** @type {uPlot} */ _plot, /** @type {number | null} */ value) =>
          formatted(value, format),
      })),
    ],
  };
}

const bars = uPlot.paths.bars?.({ size: [0.7, 24] });

/** @param {Omit<Props, 'summary' | 'unit'> & { times: Times }} props */
function AsTable({ title, at, series, format, times, hrefOf }) {
  const columns = [
    {
      title: times.title,
      cell: (/** @type {number} */ index) => {
        const name = times.name((at[index] ?? 0) * 1_000);
        const href = hrefOf(index);
        return href === undefined ? name : html`<a href=${href}>${name}</a>`;
      },
    },
    ...series.map(({ label, values }) => ({
      title: label,
      cell: (/** @type {number} */ index) => formatted(values[index] ?? null, format),
      class: 'number',
    })),
  ];
  const rows = [...at.keys()].toReversed();
  return html`<${PlotTable} label=${title} caption=${`${title}, newest first`} columns=${columns} rows=${rows} />`;
}

/** @param {number | null} value @param {Props['format']} format */
function formatted(value, format) {
  return value === null ? '–' : format(value);
}

import { useEffect, useRef, useState } from 'preact/hooks';
import uPlot from 'uplot';
import { html } from './html.js';
import { PlotTable } from './table.js';

const HEIGHT_PX = 150;

/**
 * The times of a plot: the title of their column, and their formats in words and on the axis.
 * @typedef {{ title: string, name: (at: number) => string, mark: (at: number) => string, empty: string }} Times
 *   `name`, `mark`: of epoch milliseconds; `empty`: shown instead of a plot without data
 * @typedef {{ label: string, values: readonly (number | null)[], color: string, isBars?: boolean }} Series
 * @typedef {readonly (readonly [from: number, to: number])[]} Bands times in seconds since the epoch
 * @typedef {{ title: string, summary: string, at: readonly number[], series: readonly Series[], format: (value: number) => string, unit: string, times: Times, bands?: Bands, hrefOf: (index: number) => string | undefined }} Props
 *   `at`: seconds since the epoch; `color`: the name of a CSS property; `unit`: of the values, on
 *   the axis; `bands`: outages; `hrefOf`: the address of the submissions behind the values of a
 *   time, undefined if there are none
 */

/** UTC on the axis, too. @param {number} at */
const utcDate = (at) => uPlot.tzDate(new Date(at * 1_000), 'Etc/UTC');

/**
 * A plot with a summary in words, which makes way for the values at the pointer, and, on demand, a
 * table. @param {Props} props
 */
export function Plot({ title, summary, at, series, format, unit, times, bands = [], hrefOf }) {
  const [index, setIndex] = useState(/** @type {number | undefined} */ (undefined));
  const isEmpty = series.every(({ values }) =>
    values.every((value) => value === null || value === 0),
  );
  const reading = () =>
    [
      times.name((at[index ?? 0] ?? 0) * 1_000),
      ...series.flatMap(({ label, values }) => {
        const value = values[index ?? 0];
        return value == null ? [] : [`${label} ${format(value)}`];
      }),
    ].join(' · ');
  const data = /** @type {uPlot.AlignedData} */ ([at, ...series.map(({ values }) => values)]);
  const peak = Math.max(0, ...series.flatMap(({ values }) => values.map(Number)));
  const cut = !hasBars(series) && topOf(data) < peak ? ` Peak ${format(peak)}, cut off.` : '';
  return html`<figure class="plot">
    <figcaption>
      <strong>${title}</strong>
      <span class="summary muted">${index === undefined ? summary + cut : html`<span aria-hidden="true">${reading()}</span>`}</span>
    </figcaption>
    ${
      isEmpty
        ? html`<p class="state muted">${times.empty}</p>`
        : html`<${PlotCanvas}
            data=${data}
            height=${HEIGHT_PX}
            options=${optionsOf({ series, unit, times })}
            bands=${bands}
            onIndex=${setIndex}
            hrefOf=${hrefOf}
          />`
    }
    <div class="keys muted">
      ${series.length > 1 && series.map(({ label }, index) => html`<span key=${label} class=${`key key-${index + 1}`}>${label}</span>`)}
      ${bands.length > 0 && html`<span class="key key-band">outage</span>`}
      <${AsTable} title=${title} at=${at} series=${series} format=${format} times=${times} hrefOf=${hrefOf} />
    </div>
  </figure>`;
}

/**
 * The top of the axis of lines. A few high points are cut off: they would flatten the others.
 * @param {uPlot.AlignedData} data the times and the values of the lines
 */
function topOf([, ...lines]) {
  const values = lines.flatMap((line) => [...line].filter((value) => value != null));
  const sorted = values.toSorted((a, b) => a - b);
  const high = sorted[Math.ceil(0.95 * (sorted.length - 1))] ?? 0;
  return Math.min(sorted.at(-1) ?? 0, 1.5 * high) || 0.001;
}

/**
 * @param {{ series: readonly Series[], unit: string, times: Times }} props @returns {Omit<uPlot.Options, 'width' | 'height'>}
 */
function optionsOf({ series, unit, times }) {
  const isBars = hasBars(series);
  return {
    padding: PADDING,
    tzDate: utcDate,
    cursor: CURSOR,
    scales: {
      // The first and the last bar are as wide as the others.
      x: {
        range: ({ data: [at = []] }, first, last) => {
          const half = (last - first) / Math.max(2, 2 * (at.length - 1));
          return [first - half, last + half];
        },
      },
      y: { range: ({ data }, _least, most) => [0, 1.1 * (isBars ? most : topOf(data))] },
    },
    axes: [
      {
        ...AXIS,
        size: 26,
        gap: 9,
        grid: { show: false },
        values: (plot, splits) =>
          splits.map((at) => (isAtEnd(plot, at) ? '' : times.mark(at * 1_000))),
      },
      {
        ...AXIS,
        size: sizeOf,
        space: 24,
        values: (_plot, splits) => splits.map((value) => `${NUMBERS.format(value)}${unit}`),
      },
    ],
    series: [
      {},
      ...series.map(({ label, color, isBars }) => ({
        label,
        stroke: () => css(color),
        width: 1.5,
        points: { show: true, size: 4, fill: () => css(color), filter: pointsOf },
        ...(isBars && bars && { fill: () => css(color), paths: bars, points: { show: false } }),
      })),
    ],
  };
}

const NUMBERS = new Intl.NumberFormat('en', { maximumSignificantDigits: 4 });

/** A line shows more points than these. */
const FEW = 12;

/** Returns the points that a line does not show. @param {uPlot} plot @param {number} series */
function pointsOf({ data }, series) {
  const values = data[series] ?? [];
  const known = [...values.keys()].filter((index) => values[index] != null);
  if (known.length <= FEW) return known;
  return known.filter((index) => values[index - 1] == null && values[index + 1] == null);
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

/** @param {readonly Series[]} series */
function hasBars(series) {
  return series.some(({ isBars }) => isBars);
}

/** A plot is as wide as its figure. @type {uPlot.Padding} */
export const PADDING = [8, 0, 0, 0];

/**
 * Whether the label of a value on the horizontal axis would be cut off.
 * @param {uPlot} plot @param {number} value
 */
export function isAtEnd({ scales }, value) {
  const { min = 0, max = 0 } = scales.x ?? {};
  return max - value < 0.06 * (max - min);
}

/** Options of every cursor. A click opens a page also if the plot moved below the pointer. */
export const CURSOR = { y: false, drag: { x: false, y: false, click: () => undefined } };

/**
 * Returns the pixels that the labels of a vertical axis take.
 * @param {unknown} _plot @param {readonly string[] | null} labels
 */
export function sizeOf(_plot, labels) {
  return 12 + 7 * Math.max(1, ...(labels ?? []).map(({ length }) => length));
}

/** Options of every axis. */
export const AXIS = {
  stroke: () => css('--muted'),
  grid: { stroke: () => css('--line'), width: 1 },
  ticks: { show: false },
};

/**
 * Drawn by uPlot at the available width. A click opens the submissions behind a point, as the links
 * of the table do.
 * @param {{ data: uPlot.AlignedData, height: number, options: Omit<uPlot.Options, 'width' | 'height'>, bands?: Bands, onIndex?: (index: number | undefined) => void, hrefOf: (index: number) => string | undefined }} props
 *   `options`: read when a plot is made; `onIndex`: called with the values at the pointer;
 *   `hrefOf`: undefined for a point without submissions
 */
export function PlotCanvas({ data, height, options, bands, onIndex, hrefOf }) {
  const place = useRef(/** @type {HTMLElement | null} */ (null));
  const plot = useRef(/** @type {uPlot | undefined} */ (undefined));
  const newest = useRef(bands);
  newest.current = bands;
  useEffect(() => {
    const target = place.current;
    if (!target) return undefined;
    const hooks = {
      drawClear: [(/** @type {uPlot} */ made) => drawBands(made, newest.current ?? [])],
      setCursor: [
        (/** @type {uPlot} */ { cursor }) =>
          onIndex?.(
            cursor.left !== undefined && cursor.left >= 0 ? (cursor.idx ?? undefined) : undefined,
          ),
      ],
    };
    const made = new uPlot(
      { legend: { show: false }, ...options, hooks, width: target.clientWidth, height },
      data,
      target,
    );
    plot.current = made;
    const resized = new ResizeObserver(() => made.setSize({ width: target.clientWidth, height }));
    resized.observe(target);
    // The colors are read with each drawing.
    const scheme = window.matchMedia('(prefers-color-scheme: dark)');
    const redraw = () => made.redraw();
    scheme.addEventListener('change', redraw);
    return () => {
      scheme.removeEventListener('change', redraw);
      resized.disconnect();
      made.destroy();
    };
  }, []);
  useEffect(() => plot.current?.setData(data), [data[0].length, JSON.stringify([data, bands])]);
  const open = (/** @type {MouseEvent} */ { target, clientX }) => {
    const { current } = plot;
    if (!current?.over.contains(/** @type {Node} */ (target))) return;
    const href = hrefOf(current.posToIdx(clientX - current.over.getBoundingClientRect().left));
    if (href !== undefined) location.assign(href);
  };
  return html`<div class="canvas" aria-hidden="true" ref=${place} onClick=${open}></div>`;
}

/** @param {string} property */
export function css(property) {
  return getComputedStyle(document.documentElement).getPropertyValue(property).trim();
}

/** @param {uPlot} plot @param {Bands} bands */
function drawBands({ ctx, bbox, valToPos }, bands) {
  ctx.fillStyle = css('--band');
  for (const [from, to] of bands) {
    const [start, end] = [from, to].map((at) =>
      Math.min(bbox.left + bbox.width, Math.max(bbox.left, valToPos(at, 'x', true))),
    );
    // A short outage stays visible.
    ctx.fillRect(start ?? 0, bbox.top, Math.max(2, (end ?? 0) - (start ?? 0)), bbox.height);
  }
}

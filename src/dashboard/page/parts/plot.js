import { useEffect, useRef } from 'preact/hooks';
import uPlot from 'uplot';
import { usePreference } from '../data/preferences.js';
import { html } from './html.js';
import { PlotTable } from './table.js';

const HEIGHT_PX = 150;

/**
 * The times of a plot: the title of their column, and their formats in words and on the axis.
 * @typedef {{ title: string, name: (at: number) => string, mark: (at: number) => string }} Times
 *   `name`, `mark`: of epoch milliseconds
 * @typedef {{ label: string, total?: string | undefined, values: readonly (number | null)[], color: string, isBars?: boolean }} Series
 * @typedef {{ title: string, about?: string | false, at: readonly number[], series: readonly Series[], format: (value: number) => string, unit: string, times: Times, isLogarithmic?: boolean, hrefOf: (index: number) => string | undefined }} Props
 *   `at`: seconds since the epoch; `total`: of the whole range; `color`: the name of a CSS
 *   property; `unit`: of the values, on the axis; `hrefOf`: the address of the submissions behind
 *   the values of a time, undefined if there are none
 */

/** Nothing without a value. @param {Props} props */
export function Plot({ title, about, at, series, format, unit, times, isLogarithmic, hrefOf }) {
  if (series.every(({ values }) => values.every((value) => !value))) return null;
  const data = /** @type {uPlot.AlignedData} */ ([at, ...series.map(({ values }) => values)]);
  return html`<figure class="plot">
    <figcaption>
      <strong>${title}</strong>
      <span class="keys muted">
        ${series.map(({ label, total }, index) => html`<span key=${label} class=${`key key-${index + 1}`}>${label} <strong>${total}</strong></span>`)}
        ${about && html`<span>${about}</span>`}
      </span>
    </figcaption>
    <${PlotCanvas} data=${data} height=${HEIGHT_PX} options=${optionsOf({ series, unit, times, isLogarithmic })} />
    <${AsTable} title=${title} at=${at} series=${series} format=${format} times=${times} hrefOf=${hrefOf} />
  </figure>`;
}

function optionsOf({ series, unit, times, isLogarithmic = false }) {
  const numbers = new Intl.NumberFormat('en', { maximumSignificantDigits: 4 });
  return {
    tzDate: (at) => uPlot.tzDate(new Date(at * 1_000), 'Etc/UTC'),
    // A spike of p99 must not flatten p50.
    ...(isLogarithmic && { scales: { y: { distr: /** @type {const} */ (3) } } }),
    axes: [
      xAxis((at) => times.mark(at * 1_000)),
      {
        ...AXIS,
        size: 62,
        space: 24,
        ...(isLogarithmic && { grid: { ...AXIS.grid, filter: powersOfTen } }),
        values: (_, /** @type {(number | null)[]} */ splits) =>
          splits.map((value) => (value === null ? '' : `${numbers.format(value)}${unit}`)),
      },
    ],
    series: [
      {},
      ...series.map(({ color, isBars }) => ({
        stroke: () => css(color),
        width: 1.5,
        points: { size: 4, fill: () => css(color) },
        ...(isBars && bars && { fill: () => css(color), paths: bars, points: { show: false } }),
      })),
    ],
  };
}

/** Of the nine lines in each decade of a logarithmic axis. */
const powersOfTen = (_, splits) => splits.map((value) => (Math.log10(value) % 1 ? null : value));

const bars = uPlot.paths.bars?.({ size: [0.7, 24] });

function AsTable({ title, at, series, format, times, hrefOf }) {
  const columns = [
    {
      title: times.title,
      cell: (index) => {
        const name = times.name((at[index] ?? 0) * 1_000);
        const href = hrefOf(index);
        return href === undefined ? name : html`<a href=${href}>${name}</a>`;
      },
    },
    ...series.map(({ label, values }) => ({
      title: label,
      cell: (index) => {
        const value = values[index];
        return value == null ? '–' : format(value);
      },
      class: 'number',
    })),
  ];
  const rows = [...at.keys()].toReversed();
  return html`<${PlotTable} label=${title} caption=${`${title}, newest first`} columns=${columns} rows=${rows} />`;
}

export const AXIS = {
  stroke: () => css('--muted'),
  grid: { stroke: () => css('--line'), width: 1 },
  ticks: { show: false },
};

/** The horizontal axis, without a label that would be cut off. */
export function xAxis(mark) {
  return {
    ...AXIS,
    size: 28,
    space: 80,
    grid: { show: false },
    values: ({ scales }, /** @type {number[]} */ splits) => {
      const { min = 0, max = 0 } = scales.x ?? {};
      return splits.map((value) => (max - value < 0.06 * (max - min) ? '' : mark(value)));
    },
  };
}

/**
 * Drawn by uPlot at the available width.
 * @param {{ data: uPlot.AlignedData, height: number, options: Omit<uPlot.Options, 'width' | 'height'> }} props
 *   `options`: read when a plot is drawn first
 */
export function PlotCanvas({ data, height, options }) {
  const place = useRef(/** @type {HTMLElement | null} */ (null));
  const plot = useRef(/** @type {uPlot | undefined} */ (undefined));
  useEffect(() => {
    const target = place.current;
    if (!target) return undefined;
    const common = { legend: { show: false }, cursor: { show: false } };
    const drawn = new uPlot(
      { ...common, ...options, width: target.clientWidth, height },
      data,
      target,
    );
    plot.current = drawn;
    const resized = new ResizeObserver(() => drawn.setSize({ width: target.clientWidth, height }));
    resized.observe(target);
    // The colors are read with each drawing.
    const scheme = window.matchMedia('(prefers-color-scheme: dark)');
    const redraw = () => drawn.redraw();
    scheme.addEventListener('change', redraw);
    return () => {
      scheme.removeEventListener('change', redraw);
      resized.disconnect();
      drawn.destroy();
    };
  }, []);
  const theme = usePreference('theme', 'system');
  useEffect(() => plot.current?.setData(data), [JSON.stringify(data), theme]);
  return html`<div aria-hidden="true" ref=${place}></div>`;
}

/** The color of a property in the current theme: a canvas does not resolve light-dark(). */
export function css(property) {
  const { documentElement: root } = document;
  root.style.outlineColor = `var(${property})`;
  return getComputedStyle(root).outlineColor;
}

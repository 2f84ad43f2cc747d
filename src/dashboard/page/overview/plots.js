import uPlot from 'uplot';
import { count, duration, minuteOf } from '../parts/format.js';
import { html } from '../parts/html.js';
import { AXIS, css, PlotCanvas } from '../parts/plot-canvas.js';
import { PlotTable } from '../parts/table.js';

/** The last hour, minute by minute. @param {{ minutes: readonly any[], lastHour: any }} props */
export function Plots({ minutes, lastHour }) {
  const at = minutes.map((minute) => Date.parse(minute.at) / 1_000);
  const valuesOf = (/** @type {string} */ name) => minutes.map((minute) => minute[name]);
  const perMinute = valuesOf('finalized');
  return html`<section aria-labelledby="plots">
    <h2 id="plots">The last hour</h2>
    <div class="plots">
      <${Plot}
        title="Finalizations per minute"
        summary=${`${count(lastHour.finalized)} became final; at most ${count(Math.max(0, ...perMinute))} in one minute.`}
        at=${at}
        series=${[{ label: 'finalized', values: perMinute, color: '--plot-1', isBars: true }]}
        format=${count}
        unit=""
      />
      <${Plot}
        title="Time to finality"
        summary=${summaryOf(lastHour.time_to_finality_s)}
        at=${at}
        series=${quantiles(valuesOf, 'time_to_finality')}
        format=${duration}
        unit=" s"
      />
      <${Plot}
        title="Detection lag"
        summary=${summaryOf(lastHour.detection_lag_s)}
        at=${at}
        series=${quantiles(valuesOf, 'detection_lag')}
        format=${duration}
        unit=" s"
      />
    </div>
  </section>`;
}

/** @param {(name: string) => readonly (number | null)[]} valuesOf @param {string} name */
function quantiles(valuesOf, name) {
  return [
    { label: 'p50', values: valuesOf(`${name}_p50_s`), color: '--plot-1' },
    { label: 'p99', values: valuesOf(`${name}_p99_s`), color: '--plot-2' },
  ];
}

/** @param {{ mean: number, p50: number, p90: number, p99: number } | null} spread */
function summaryOf(spread) {
  if (spread === null) return 'No data yet.';
  return `Mean ${duration(spread.mean)}, p50 ${duration(spread.p50)}, p90 ${duration(spread.p90)}, p99 ${duration(spread.p99)}.`;
}

const HEIGHT_PX = 150;

/**
 * @typedef {{ label: string, values: readonly (number | null)[], color: string, isBars?: boolean }} Series
 * @typedef {{ title: string, summary: string, at: readonly number[], series: readonly Series[], format: (value: number) => string, unit: string }} Props
 *   `at`: seconds since the epoch; `color`: the name of a CSS property; `unit`: of the values, on the axis
 */

/** A plot with a summary in words and, on demand, a table. @param {Props} props */
function Plot({ title, summary, at, series, format, unit }) {
  const isEmpty = series.every(({ values }) => values.every((value) => value === null || value === 0));
  return html`<figure class="plot">
    <figcaption><strong>${title}</strong><span class="muted">${summary}</span></figcaption>
    ${
      isEmpty
        ? html`<p class="state muted">No data in the last hour.</p>`
        : html`<${PlotCanvas} data=${[at, ...series.map(({ values }) => values)]} height=${HEIGHT_PX} options=${optionsOf({ series, format, unit })} />`
    }
    <${AsTable} title=${title} at=${at} series=${series} format=${format} />
  </figure>`;
}

/** @param {Pick<Props, 'series' | 'format' | 'unit'>} props @returns {Omit<uPlot.Options, 'width' | 'height'>} */
function optionsOf({ series, format, unit }) {
  return {
    cursor: { y: false, drag: { x: false, y: false } },
    scales: { y: { range: (_plot, _least, most) => [0, Math.max(most, 0.001) * 1.1] } },
    axes: [
      { ...AXIS, size: 28, grid: { show: false }, values: (_plot, splits) => splits.map((at) => minuteOf(at * 1_000)) },
      { ...AXIS, size: 48, values: (_plot, splits) => splits.map((value) => `${value}${unit}`) },
    ],
    series: [
      { label: 'minute', value: (_plot, at) => (at === null ? '–' : minuteOf(at * 1_000)) },
      ...series.map(({ label, color, isBars }) => ({
        label,
        stroke: () => css(color),
        width: 1.5,
        points: { show: true, size: 4, fill: () => css(color) },
        ...(isBars && bars && { fill: () => css(color), paths: bars, points: { show: false } }),
        value: (/** @type {uPlot} */ _plot, /** @type {number | null} */ value) => formatted(value, format),
      })),
    ],
  };
}

const bars = uPlot.paths.bars?.({ size: [0.7, 24] });

/** @param {Omit<Props, 'summary' | 'unit'>} props */
function AsTable({ title, at, series, format }) {
  const columns = [
    { title: 'Minute', cell: (/** @type {number} */ index) => minuteOf((at[index] ?? 0) * 1_000) },
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

import { useEffect, useRef, useState } from 'preact/hooks';
import uPlot from 'uplot';
import { html } from './html.js';

/** Options of every axis. */
export const AXIS = {
  stroke: () => css('--muted'),
  grid: { stroke: () => css('--line'), width: 1 },
  ticks: { show: false },
};

/**
 * Drawn by uPlot at the available width. Hidden from assistive technology, which reads the summary and the table.
 * @param {{ data: uPlot.AlignedData, height: number, options: Omit<uPlot.Options, 'width' | 'height'> }} props `options`: read when a plot is made
 */
export function PlotCanvas({ data, height, options }) {
  const place = useRef(/** @type {HTMLElement | null} */ (null));
  const plot = useRef(/** @type {uPlot | undefined} */ (undefined));
  const scheme = useColorScheme();

  useEffect(() => {
    const target = place.current;
    if (!target) return undefined;
    const made = new uPlot({ ...options, width: target.clientWidth, height }, data, target);
    plot.current = made;
    const resized = new ResizeObserver(() => made.setSize({ width: target.clientWidth, height }));
    resized.observe(target);
    return () => {
      resized.disconnect();
      made.destroy();
    };
  }, [scheme]);
  useEffect(() => plot.current?.setData(data));
  return html`<div class="canvas" aria-hidden="true" ref=${place}></div>`;
}

/** A plot reads its colors when it is created, so a change of the color scheme creates a new plot. */
function useColorScheme() {
  const dark = matchMedia('(prefers-color-scheme: dark)');
  const [isDark, setIsDark] = useState(dark.matches);
  useEffect(() => {
    const change = () => setIsDark(dark.matches);
    dark.addEventListener('change', change);
    return () => dark.removeEventListener('change', change);
  }, []);
  return isDark ? 'dark' : 'light';
}

/** @param {string} property */
export function css(property) {
  return getComputedStyle(document.documentElement).getPropertyValue(property).trim();
}

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
 * @typedef {{ label: string, textOf: (index: number) => string, hrefOf: (index: number) => string | undefined }} Links
 *   what the points of a plot open: `label` names the plot, `textOf` describes a point, `hrefOf` is
 *   undefined for a point without submissions
 */

/**
 * Drawn by uPlot at the available width. A click, or the arrow keys and Enter, opens the
 * submissions behind a point.
 * @param {{ data: uPlot.AlignedData, height: number, options: Omit<uPlot.Options, 'width' | 'height'>, links: Links }} props
 *   `options`: read when a plot is made
 */
export function PlotCanvas({ data, height, options, links }) {
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
  const slider = useSlider(plot, data[0].length - 1, links);
  return html`<div class="canvas" ref=${place} ...${slider}></div>`;
}

/**
 * Returns the attributes of a plot whose points can be selected.
 * @param {{ current: uPlot | undefined }} plot @param {number} last the index of the newest point @param {Links} links
 */
function useSlider(plot, last, links) {
  const [chosen, setChosen] = useState(Number.POSITIVE_INFINITY);
  const now = Math.min(chosen, last);
  const open = (/** @type {number} */ index) => {
    const href = links.hrefOf(index);
    if (href !== undefined) location.assign(href);
  };
  const choose = (/** @type {number} */ index) => {
    const within = Math.min(last, Math.max(0, index));
    setChosen(within);
    const { current } = plot;
    current?.setCursor({ left: current.valToPos(current.data[0][within] ?? 0, 'x'), top: 0 });
  };
  return {
    role: 'slider',
    tabindex: 0,
    'aria-label': links.label,
    'aria-valuemin': 0,
    'aria-valuemax': last,
    'aria-valuenow': now,
    'aria-valuetext': links.textOf(now),
    onFocus: (/** @type {any} */ { currentTarget }) =>
      currentTarget.matches(':focus-visible') && choose(now),
    onBlur: () => plot.current?.setCursor({ left: -10, top: -10 }),
    onKeyDown: (/** @type {KeyboardEvent} */ event) => {
      const steps = /** @type {Record<string, number>} */ ({
        ArrowLeft: now - 1,
        ArrowRight: now + 1,
        Home: 0,
        End: last,
      });
      const step = steps[event.key];
      if (step === undefined && event.key !== 'Enter') return;
      event.preventDefault();
      if (step === undefined) open(now);
      else choose(step);
    },
    onClick: (/** @type {MouseEvent} */ { target, clientX }) => {
      const over = plot.current?.over;
      if (over?.contains(/** @type {Node} */ (target)))
        open(plot.current?.posToIdx(clientX - over.getBoundingClientRect().left) ?? last);
    },
  };
}

/**
 * A plot reads its colors when it is created, so a change of the color scheme creates a new plot.
 */
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

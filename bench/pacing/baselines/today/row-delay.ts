import { Histogram } from './age-distribution.ts';
import { nextCheck } from './checking-schedule.ts';

/** Cells of this length up to FINE_MS, then each longer by RATIO than the one before. */
const CELL_MS = 50;
const FINE_MS = 4_000;
const RATIO = 1.15;
const LONGEST_MS = 120_000;
/** Starts of the cells after the arrival of the head, ms; the last is the end of the last cell. */
const EDGES_MS = edges();
const WIDTHS_S = Float64Array.from(
  { length: EDGES_MS.length - 1 },
  (_, cell) => ((EDGES_MS[cell + 1] as number) - (EDGES_MS[cell] as number)) / 1_000,
);
export const DELAY_CELLS = WIDTHS_S.length;
/** The weight of an observation decays to 1/e after this number of final submissions. */
const MEMORY = 300;
/** Share of each cell that is spread over the cells at most `reach` away. */
const SPREAD = { share: 0.8, reach: 2 };
const PRIOR_WEIGHT = 3;
/** Probability of a row that is updated later than any delay learned. */
const LATE_SHARE = 0.003;

/**
 * The delay (ms) from a finalized head to the report of its block by the upstream; 0 if the
 * upstream was faster. Each observation is an interval (see Histogram.addBetween).
 */
export class RowDelay {
  readonly #histogram: Histogram;
  #cdf: Float64Array | null = null;
  readonly #plans = new Map<string, number>();
  #observed = 0;

  constructor(weights: ArrayLike<number> = PRIOR) {
    this.#histogram = new Histogram(weights);
  }

  get weights(): number[] {
    return [...this.#histogram.weights];
  }

  get observed(): number {
    return this.#observed;
  }

  learn(afterMs: number, byMs: number): void {
    const belief = this.#histogram.smoothed(SPREAD.share, SPREAD.reach).weights;
    this.#histogram.fade(1 - 1 / MEMORY, LATE_SHARE / DELAY_CELLS);
    this.#histogram.addBetween(cellOf(afterMs), cellOf(byMs - 1e-6), 1, belief);
    this.#observed++;
    this.#cdf = null;
    this.#plans.clear();
  }

  /** Returns the probability that the row is final this long after the head. */
  by(delayMs: number): number {
    if (delayMs < 0) return 0;
    const cell = Math.min(DELAY_CELLS - 1, cellOf(delayMs));
    const [start, end] = [EDGES_MS[cell] as number, EDGES_MS[cell + 1] as number];
    const cdf = this.#distribution();
    const before = cdf[cell - 1] ?? 0;
    const share = Math.min(1, (delayMs - start) / (end - start));
    return before + share * ((cdf[cell] as number) - before);
  }

  /**
   * Returns the delay of the next poll; null if none is worth its cost before the next head.
   * `openMs`: -Infinity if not polled since the head. `price`: requests per second of lag.
   * `endLagS`: further lag if not found before the next head.
   */
  nextPollMs(
    probability: number,
    openMs: number,
    presentMs: number,
    { price, slotMs, endLagS }: { price: number; slotMs: number; endLagS: number },
  ): number | null {
    const from = Math.min(DELAY_CELLS - 1, Math.max(0, nearestEdge(presentMs)));
    const open = openMs < 0 ? -1 : nearestEdge(openMs);
    const p = Math.round(probability * 100) / 100;
    if (p === 0) return null;
    const end = cellOf(slotMs) + 1;
    if (from >= end) return null;
    const key = `${p} ${open} ${from} ${end} ${price}`;
    let point = this.#plans.get(key);
    if (point === undefined) {
      const before = openMs < 0 ? 0 : p * this.by(openMs);
      const cdf = this.#distribution()
        .subarray(0, end)
        .map((share) => Math.max(0, (p * share - before) / Math.max(1e-9, 1 - before)));
      point = nextCheck({ cdf, widths: WIDTHS_S, from, price, endLag: endLagS });
      this.#plans.set(key, point);
    }
    return point < 0 ? null : (EDGES_MS[point] as number);
  }

  /** Returns the expected time (ms) from a delay in (afterMs, byMs] to `byMs`. */
  lagMs(afterMs: number, byMs: number): number {
    const { weights } = this.#histogram.smoothed(SPREAD.share, SPREAD.reach);
    let [total, lag] = [0, 0];
    for (let cell = cellOf(afterMs); cell <= cellOf(byMs); cell++) {
      const from = Math.max(afterMs, EDGES_MS[cell] as number);
      const until = Math.min(byMs, EDGES_MS[cell + 1] as number);
      if (until <= from) continue;
      const share = (until - from) / 1_000 / (WIDTHS_S[cell] as number);
      const weight = share * (weights[cell] as number);
      total += weight;
      lag += weight * (byMs - (from + until) / 2);
    }
    return total > 0 ? lag / total : Math.max(0, byMs - Math.max(0, afterMs)) / 2;
  }

  /** Returns delays and the probability of each or a shorter one. */
  points(): { delayMs: number; probability: number }[] {
    const points: { delayMs: number; probability: number }[] = [];
    for (const [cell, probability] of this.#distribution().entries()) {
      if (cell % 2 === 0) points.push({ delayMs: EDGES_MS[cell + 1] as number, probability });
      if (probability > 0.99) break;
    }
    return points;
  }

  #distribution(): Float64Array {
    this.#cdf ??= this.#histogram
      .smoothed(SPREAD.share, SPREAD.reach)
      .cdf()
      .map((p) => (1 - LATE_SHARE) * p);
    return this.#cdf;
  }
}

function edges(): number[] {
  const starts = [0];
  for (let width = CELL_MS; (starts.at(-1) as number) < LONGEST_MS; ) {
    const next = (starts.at(-1) as number) + width;
    starts.push(next);
    if (next >= FINE_MS) width *= RATIO;
  }
  return starts;
}

const PRIOR = (() => {
  const weights = Array.from({ length: DELAY_CELLS }, (_, cell) => {
    const middleS = (EDGES_MS[cell] as number) / 1_000 + (WIDTHS_S[cell] as number) / 2;
    const usual = Math.exp(-middleS / 0.8);
    return (WIDTHS_S[cell] as number) * (usual + 0.03 / (1 + middleS ** 2));
  });
  const sum = weights.reduce((a, b) => a + b, 0);
  return weights.map((weight) => (PRIOR_WEIGHT * weight) / sum);
})();

function cellOf(delayMs: number): number {
  if (!(delayMs > 0)) return 0;
  if (delayMs < FINE_MS) return Math.floor(delayMs / CELL_MS);
  const later = EDGES_MS.findIndex((edge) => edge > delayMs) - 1;
  return later < 0 ? DELAY_CELLS - 1 : later;
}

/** A timer fires a moment late: the nearest edge is the one for which it was set. */
function nearestEdge(delayMs: number): number {
  const cell = cellOf(delayMs);
  const [start, end] = [EDGES_MS[cell] as number, EDGES_MS[cell + 1] as number];
  return delayMs - start < end - delayMs ? cell : cell + 1;
}

/** A histogram whose old evidence fades exponentially, to follow a distribution that changes. */
export class Histogram {
  readonly weights: Float64Array;

  constructor(weights: ArrayLike<number>) {
    this.weights = new Float64Array(weights);
  }

  /** Multiplies all weights. No cell falls below `least`, so that no value becomes impossible. */
  fade(keep: number, least = 0): void {
    const { weights } = this;
    for (let cell = 0; cell < weights.length; cell++)
      weights[cell] = Math.max(least, (weights[cell] as number) * keep);
  }

  add(cell: number, weight: number): void {
    this.weights[cell] = (this.weights[cell] as number) + weight;
  }

  /** Adds a value in `first` to `last`, spread by `belief` (Turnbull, J. R. Stat. Soc. B, 1976). */
  addBetween(
    first: number,
    last: number,
    weight: number,
    belief: ArrayLike<number> = this.weights,
  ): void {
    let sum = 0;
    for (let cell = first; cell <= last; cell++) sum += belief[cell] as number;
    if (!(sum > 0)) return;
    const { weights } = this;
    for (let cell = first; cell <= last; cell++)
      weights[cell] = (weights[cell] as number) + (weight * (belief[cell] as number)) / sum;
  }

  /** Returns a copy: from `start` on, this share of each weight is spread within `reach`. */
  smoothed(share: number, reach: number, start = 0): Histogram {
    const smooth = new Histogram(this.weights);
    for (let cell = start; cell < this.weights.length; cell++) {
      const spread = share * (this.weights[cell] as number);
      smooth.add(cell, -spread);
      const [first, last] = [
        Math.max(start, cell - reach),
        Math.min(this.weights.length - 1, cell + reach),
      ];
      for (let near = first; near <= last; near++) smooth.add(near, spread / (last - first + 1));
    }
    return smooth;
  }

  cdf(): Float64Array {
    const total = this.weights.reduce((a, b) => a + b, 0);
    let sum = 0;
    return this.weights.map((weight) => {
      sum += weight;
      return sum / total;
    });
  }
}

export function isWeights(values: number[], length: number): boolean {
  return (
    Array.isArray(values) &&
    values.length === length &&
    values.every((weight) => typeof weight === 'number' && weight >= 0 && weight <= 1e9) &&
    values.some((weight) => weight > 0)
  );
}

/**
 * When to poll for an event of known distribution, if a poll costs 1 and a unit of lag `price`: the
 * optimum checking schedule of Barlow, Hunter and Proschan (J. SIAM 11, 1963), by dynamic
 * programming on a grid of cells.
 */
export type CheckingProblem = {
  /** Probability that the event has happened by the end of each cell; not decreasing, at most 1. */
  cdf: ArrayLike<number>;
  widths: ArrayLike<number>;
  from: number;
  price: number;
  /** Further lag of an event that no poll has found by the end of the grid. */
  endLag: number;
};

// Shared buffers by grid point: least expected cost after a poll there, lag since `from`, time.
let cost = new Float64Array(0);
let lag = new Float64Array(0);
let time = new Float64Array(0);

/** Returns, for each grid point, that of the next poll; -1 if none is worth its cost. */
export function checkingSchedule(problem: CheckingProblem): Int32Array {
  const { cdf, widths, from } = problem;
  const cells = cdf.length;
  if (cost.length <= cells)
    [cost, lag, time] = [cost, lag, time].map(() => new Float64Array(cells + 1)) as Grids;
  time[from] = lag[from] = cost[cells] = 0;
  for (let i = from; i < cells; i++) {
    const width = widths[i] as number;
    time[i + 1] = (time[i] as number) + width;
    lag[i + 1] = (lag[i] as number) + ((happenedBy(cdf, i) + (cdf[i] as number)) / 2) * width;
  }
  const next = new Int32Array(cells).fill(-1);
  for (let i = cells - 1; i >= from; i--) next[i] = bestNextPoll(problem, i, happenedBy(cdf, i));
  return next;
}

/** Returns the grid point of the first poll from `from` on; `from` means at once, -1 none. */
export function nextCheck(problem: CheckingProblem): number {
  const { from } = problem;
  checkingSchedule(problem);
  const costAfterPoll = cost[from] as number;
  const later = bestNextPoll(problem, from, 0);
  return 1 + costAfterPoll <= (cost[from] as number) ? from : later;
}

type Grids = [Float64Array<ArrayBuffer>, Float64Array<ArrayBuffer>, Float64Array<ArrayBuffer>];

function happenedBy(cdf: ArrayLike<number>, point: number): number {
  return point > 0 ? (cdf[point - 1] as number) : 0;
}

/**
 * Stores the cost of the best next poll in `cost[i]`, and returns that poll. `found`: probability
 * that earlier polls found the event.
 */
function bestNextPoll({ cdf, price, endLag }: CheckingProblem, i: number, found: number): number {
  const cells = cdf.length;
  const [lagBefore, timeBefore] = [lag[i] as number, time[i] as number];
  const lagUntil = (j: number) =>
    (lag[j] as number) - lagBefore - found * ((time[j] as number) - timeBefore);
  let best = price * (lagUntil(cells) + ((cdf[cells - 1] as number) - found) * endLag);
  let choice = -1;
  for (let j = i + 1; j <= cells; j++) {
    const least = 1 - found + price * lagUntil(j);
    if (least >= best) break;
    const total = least + (cost[j] as number);
    if (total >= best) continue;
    best = total;
    choice = j;
  }
  cost[i] = best;
  return choice;
}

/** Cells of the age grid: age 0, up to 0.1 s, then geometrically growing up to about 10 days. */
export const AGE_CELLS = 240;
const FIRST_MS = 100;
const RATIO = 1.0697;
/** Weight of the prior, in submissions, and the share of this weight at ages near half a minute. */
const PRIOR_WEIGHT = 3;
const USUAL_SHARE = 0.7;
/** The weight of an observation decays to 1/e after this number of further ones. */
const MEMORY = 200;
/** Schedules are recomputed when the number of observations has grown by this share. */
const LEARNED_PER_SCHEDULE = 0.1;
/** Share of each weight spread over the cells within `reach`: gaps are chance. */
const SPREAD = { share: 0.3, reach: 6 };

const EDGES_MS = Float64Array.from({ length: AGE_CELLS + 1 }, (_, i) =>
  i < 2 ? 0 : FIRST_MS * RATIO ** (i - 2),
);
const WIDTHS_S = Float64Array.from(
  { length: AGE_CELLS },
  (_, i) => ((EDGES_MS[i + 1] as number) - (EDGES_MS[i] as number)) / 1_000,
);

/**
 * The distribution of the age at which a submission becomes final: a histogram on a geometric grid,
 * learned from interval-censored observations. The age is the time since tracking or, after a
 * failure, since the upstream queued the submission again. Used alone until a slot time is known,
 * and by upstreams without one.
 */
export class AgeDistribution {
  #histogram: Histogram;
  readonly #price: number;
  /** By number of dependents. `cdf`: probability of being final by the end of each cell. */
  readonly #schedules = new Map<number, { next: Int32Array; cdf: Float64Array }>();
  #observed: number;
  #scheduledAt = 0;

  /** `price`: requests that a second of lag is worth. */
  constructor(price: number, state?: { weights: readonly number[]; observed: number }) {
    this.#price = price;
    this.#histogram = new Histogram(state?.weights ?? prior(USUAL_SHARE));
    this.#observed = state?.observed ?? 0;
  }

  get state(): { weights: number[]; observed: number } {
    return { weights: [...this.#histogram.weights], observed: this.#observed };
  }

  get observed(): number {
    return this.#observed;
  }

  learn(fromMs: number, untilMs: number): void {
    if (this.#observed === 0) this.#histogram = new Histogram(prior(0));
    this.#histogram.addBetween(cellOf(fromMs), cellOf(untilMs - 1e-6), 1);
    this.#histogram.fade(1 - 1 / MEMORY, 0.02 / AGE_CELLS);
    this.#observed++;
  }

  /** Returns the age (ms) of the next poll. `dependents`: number found final with this one. */
  nextAgeMs(ageMs: number, dependents: number): number {
    if (this.#observed - this.#scheduledAt > LEARNED_PER_SCHEDULE * this.#observed) {
      this.#scheduledAt = this.#observed;
      this.#schedules.clear();
    }
    const weight = rounded(dependents);
    const price = this.#price * weight;
    let schedule = this.#schedules.get(weight);
    if (!schedule) {
      const cdf = this.#histogram.smoothed(SPREAD.share, SPREAD.reach, 1).cdf();
      schedule = {
        cdf,
        next: checkingSchedule({ cdf, widths: WIDTHS_S, from: 0, price, endLag: 0 }),
      };
      this.#schedules.set(weight, schedule);
    }
    const cell = cellOf(ageMs);
    const next = schedule.next[cell] as number;
    // At least 1 % later: polls within one cell would otherwise repeat without delay.
    const scheduledMs = Math.max(
      EDGES_MS[next < 0 ? AGE_CELLS : next] as number,
      ageMs * 1.01 + 50,
    );
    return Math.min(scheduledMs, ageMs + intervalMs(schedule.cdf, cell, price));
  }

  curve(): { afterMs: number; probability: number }[] {
    const cdf = [...this.#histogram.cdf()];
    const end = cdf.findIndex((probability) => probability > 0.995) + 1 || AGE_CELLS;
    const points = cdf
      .slice(0, end)
      .map((probability, i) => ({ afterMs: EDGES_MS[i + 1] as number, probability }));
    return [{ afterMs: 0, probability: 0 }, ...points];
  }
}

/** Returns the optimum interval in a cell: sqrt(2 / (hazard x price)); Infinity: longer. */
function intervalMs(cdf: Float64Array, cell: number, price: number): number {
  const widthS = WIDTHS_S[cell] as number;
  const before = cdf[cell - 1] ?? 0;
  const hazardPerS = ((cdf[cell] as number) - before) / (1 - before) / widthS;
  const intervalS = Math.sqrt(2 / (hazardPerS * price));
  return intervalS < widthS ? 1_000 * intervalS : Number.POSITIVE_INFINITY;
}

function cellOf(ageMs: number): number {
  if (!(ageMs > 0)) return 0;
  if (ageMs < FIRST_MS) return 1;
  return Math.min(AGE_CELLS - 1, 2 + Math.floor(Math.log(ageMs / FIRST_MS) / Math.log(RATIO)));
}

/** Returns the prior: this share near half a minute, the rest over all orders of magnitude. */
function prior(usualShare: number): Float64Array {
  const weights = EDGES_MS.slice(1).map((edgeMs) => {
    const s = edgeMs / 1_000;
    const usual = Math.exp(-0.5 * (Math.log(s / 33) / 0.35) ** 2) * 0.085;
    const any = (1 / 155) * Math.min(1, (3_600 / s) ** 0.5);
    return usualShare * usual + (1 - usualShare) * any;
  });
  const sum = weights.reduce((a, b) => a + b, 0);
  return weights.map((weight) => (PRIOR_WEIGHT * weight) / sum);
}

export function rounded(dependents: number): number {
  return dependents >= 1 && dependents < 4
    ? Math.round(dependents)
    : 2 ** Math.floor(Math.log2(dependents));
}

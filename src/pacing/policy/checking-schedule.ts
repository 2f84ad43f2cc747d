/**
 * The optimum checking schedule of Barlow, Hunter and Proschan ("Optimum checking procedures", J. SIAM 11, 1963): when to
 * look for an event whose time has a known distribution, if every look costs 1 and every unit of time between the event and
 * the look that finds it costs `price`. Solved backwards by dynamic programming on a grid.
 */
export type CheckingProblem = {
  /** Probability that the event has happened by the end of each grid cell: not decreasing, at most 1. */
  cdf: ArrayLike<number>;
  /** Length of each grid cell. */
  widths: ArrayLike<number>;
  /** Cells before this one are over. */
  from: number;
  /** Cost of one unit of lag, in looks. */
  price: number;
  /** How much longer an event stays unknown that is not found by the end of the grid. */
  endLag: number;
};

// Shared between calls, which never overlap.
let cost = new Float64Array(0);
let lag = new Float64Array(0);
let time = new Float64Array(0);
let next = new Int32Array(0);

/**
 * For each grid point i, the beginning of cell i, the grid point of the next look after one at i found that the event had
 * not happened; -1: none.
 */
export function checkingSchedule(problem: CheckingProblem): Int32Array {
  prepare(problem);
  const { cdf, from } = problem;
  for (let i = cdf.length - 1; i >= from; i--) next[i] = choose(problem, i, i > 0 ? (cdf[i - 1] as number) : 0);
  return next.slice(0, cdf.length);
}

/** The grid point of the next look, where the event may have happened before `from` without a look; `from`: at once; -1: none. */
export function nextCheck(problem: CheckingProblem): number {
  prepare(problem);
  const { cdf, from } = problem;
  for (let i = cdf.length - 1; i >= from; i--) next[i] = choose(problem, i, i > 0 ? (cdf[i - 1] as number) : 0);
  const nowCost = 1 + (cost[from] as number);
  const choice = choose(problem, from, 0);
  return nowCost <= (cost[from] as number) ? from : choice;
}

function prepare({ cdf, widths, from }: CheckingProblem): void {
  const cells = cdf.length;
  if (cost.length <= cells) {
    cost = new Float64Array(cells + 1);
    lag = new Float64Array(cells + 1);
    time = new Float64Array(cells + 1);
    next = new Int32Array(cells + 1);
  }
  time[from] = 0;
  lag[from] = 0;
  cost[cells] = 0;
  let before = from > 0 ? (cdf[from - 1] as number) : 0;
  for (let i = from; i < cells; i++) {
    const width = widths[i] as number;
    const after = cdf[i] as number;
    time[i + 1] = (time[i] as number) + width;
    lag[i + 1] = (lag[i] as number) + ((before + after) / 2) * width;
    before = after;
  }
}

/** The best next look after grid point i, and its cost in `cost[i]`; `found`: the probability of what earlier looks have found. */
function choose({ cdf, price, endLag }: CheckingProblem, i: number, found: number): number {
  const cells = cdf.length;
  const open = 1 - found;
  const lagHere = lag[i] as number;
  const timeHere = time[i] as number;
  const lagUntil = (j: number) => (lag[j] as number) - lagHere - found * ((time[j] as number) - timeHere);
  let best = price * (lagUntil(cells) + ((cdf[cells - 1] as number) - found) * endLag);
  let choice = -1;
  for (let j = i + 1; j <= cells; j++) {
    const least = open + price * lagUntil(j);
    // From here on waiting only costs more.
    if (least >= best) break;
    const total = least + (cost[j] as number);
    if (total < best) {
      best = total;
      choice = j;
    }
  }
  cost[i] = best;
  return choice;
}

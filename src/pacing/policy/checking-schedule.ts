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

// Over grid points, and shared between calls, which never overlap: the least cost after a look there that found nothing, the
// expected lag of an event since the grid began, and the time.
let cost = new Float64Array(0);
let lag = new Float64Array(0);
let time = new Float64Array(0);

/**
 * For each grid point i, the beginning of cell i, the grid point of the next look after one at i found that the event had
 * not happened; -1: none.
 */
export function checkingSchedule(problem: CheckingProblem): Int32Array {
  const { cdf, widths, from } = problem;
  const cells = cdf.length;
  if (cost.length <= cells) [cost, lag, time] = [cost, lag, time].map(() => new Float64Array(cells + 1)) as Grids;
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

/** The grid point of the next look, where the event may have happened before `from` without a look; `from`: at once; -1: none. */
export function nextCheck(problem: CheckingProblem): number {
  const { from } = problem;
  checkingSchedule(problem);
  const costAfterLook = cost[from] as number;
  const later = bestNextPoll(problem, from, 0);
  return 1 + costAfterLook <= (cost[from] as number) ? from : later;
}

type Grids = [Float64Array<ArrayBuffer>, Float64Array<ArrayBuffer>, Float64Array<ArrayBuffer>];

function happenedBy(cdf: ArrayLike<number>, point: number): number {
  return point > 0 ? (cdf[point - 1] as number) : 0;
}

/** The best next look after grid point i, and its cost in `cost[i]`; `found`: the probability of what earlier looks have found. */
function bestNextPoll({ cdf, price, endLag }: CheckingProblem, i: number, found: number): number {
  const cells = cdf.length;
  const lagUntil = (j: number) =>
    (lag[j] as number) - (lag[i] as number) - found * ((time[j] as number) - (time[i] as number));
  let best = price * (lagUntil(cells) + ((cdf[cells - 1] as number) - found) * endLag);
  let choice = -1;
  for (let j = i + 1; j <= cells; j++) {
    const least = 1 - found + price * lagUntil(j);
    // From here on waiting only costs more.
    if (least >= best) break;
    const total = least + (cost[j] as number);
    if (total < best) [best, choice] = [total, j];
  }
  cost[i] = best;
  return choice;
}

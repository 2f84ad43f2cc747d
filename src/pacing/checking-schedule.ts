/**
 * The optimum checking schedule of Barlow, Hunter and Proschan ("Optimum checking procedures", J. SIAM 11, 1963): when to
 * poll for an event whose time has a known distribution, if each poll costs 1 and each unit of lag, the time between the
 * event and the poll that finds it, costs `price`. Solved backwards by dynamic programming on a grid of cells.
 */
export type CheckingProblem = {
  /** Probability that the event has happened by the end of each cell; not decreasing, at most 1. */
  cdf: ArrayLike<number>;
  /** Length of each cell. */
  widths: ArrayLike<number>;
  /** First cell that is not over. */
  from: number;
  /** Cost of one unit of lag, in polls. */
  price: number;
  /** Further lag of an event that no poll has found by the end of the grid. */
  endLag: number;
};

// Buffers over the grid points (the beginnings of the cells), shared between calls: the least expected cost after a poll there
// that did not find the event; the expected lag accumulated since `from` without polls; the time.
let cost = new Float64Array(0);
let lag = new Float64Array(0);
let time = new Float64Array(0);

/**
 * Returns, for each grid point i, the grid point of the next poll after a poll at i that did not find the event; -1 if no
 * further poll is worth its cost.
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

/**
 * Returns the grid point of the next poll if the event may have happened before `from` and there was no poll since; `from`
 * means at once, -1 none.
 */
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
 * Returns the best next poll after grid point i and stores its cost in `cost[i]`. `found`: probability that earlier polls
 * found the event.
 */
function bestNextPoll({ cdf, price, endLag }: CheckingProblem, i: number, found: number): number {
  const cells = cdf.length;
  const [lagBefore, timeBefore] = [lag[i] as number, time[i] as number];
  const lagUntil = (j: number) => (lag[j] as number) - lagBefore - found * ((time[j] as number) - timeBefore);
  let best = price * (lagUntil(cells) + ((cdf[cells - 1] as number) - found) * endLag);
  let choice = -1;
  for (let j = i + 1; j <= cells; j++) {
    const least = 1 - found + price * lagUntil(j);
    // The lag alone costs more from here on.
    if (least >= best) break;
    const total = least + (cost[j] as number);
    if (total >= best) continue;
    best = total;
    choice = j;
  }
  cost[i] = best;
  return choice;
}

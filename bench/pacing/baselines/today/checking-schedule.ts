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

import { WORLDS, type WorldName } from '../../src/sandbox/chain/worlds.ts';
import { seededRandom } from '../support/random.ts';

export type LowerBound = { requests: number; meanS: number };

const DRAWS = 8_000;
const STEP_S = 0.1;
/** The longest time between two polls that is considered. */
const FARTHEST_STEPS = 260;

const cache = new Map<string, LowerBound>();

/**
 * Returns what one submission costs at least while nothing but the distribution of its own finality
 * time is known: the optimum checking schedule (Barlow, Hunter and Proschan, "Optimum checking
 * procedures", J. SIAM 11, 1963), which minimizes requests + price × seconds of lag. Stalls and
 * queues are left out. What other submissions reveal is not used, so a policy that uses it can be
 * below.
 */
export function lowerBound(world: WorldName, senders: boolean, price = 1): LowerBound {
  const key = `${world} ${senders} ${price}`;
  const cached = cache.get(key);
  if (cached) return cached;
  const bound = optimumSchedule(drawFinalityTimes(world, senders), price);
  cache.set(key, bound);
  return bound;
}

/**
 * Returns random finality times in ascending order: seconds from the slot of the finalizing block
 * to the row being Finalized.
 */
function drawFinalityTimes(name: WorldName, senders: boolean): number[] {
  const world = WORLDS[name];
  const random = seededRandom(1);
  const between = (min: number, max: number) => min + (max - min) * random();
  const draw = () => {
    let time = 0;
    // The block of the transaction and each of those that must follow it can be late by empty
    // slots.
    for (let block = 0; block <= world.finalityGap; block++)
      while (random() < world.emptySlotRate) time += world.slotS;
    time += between(world.blockDelayMinS, world.blockDelayMaxS);
    time += world.roundMinS - world.roundTailMeanS * Math.log(1 - random());
    if (!senders) return time + between(world.rowUpdateMinS, world.rowUpdateMaxS);
    // The moment is at random within the sender's polling interval.
    const interval = between(world.senderPollMinS, world.senderPollMaxS);
    return time + interval * random() + between(world.senderUpdateMinS, world.senderUpdateMaxS);
  };
  return Array.from({ length: DRAWS }, draw).sort((a, b) => a - b);
}

/**
 * Returns the cost of the optimum schedule, by dynamic programming backwards over a grid of times.
 */
function optimumSchedule(times: readonly number[], price: number): LowerBound {
  const count = times.length;
  const size = Math.ceil(((times.at(-1) ?? 0) + 1) / STEP_S) + 1;
  const finalBy = new Int32Array(size);
  const sumBy = new Float64Array(size);
  for (let step = 0, final = 0, sum = 0; step < size; step++) {
    for (
      let time = times[final];
      time !== undefined && time <= step * STEP_S;
      time = times[++final]
    )
      sum += time;
    finalBy[step] = final;
    sumBy[step] = sum;
  }
  const finalAt = (step: number) => finalBy[step] ?? count;
  /** Sum of the lag (s) of the submissions that become final between two polls. */
  const lagBetween = (from: number, to: number) =>
    (finalAt(to) - finalAt(from)) * to * STEP_S - ((sumBy[to] ?? 0) - (sumBy[from] ?? 0));

  const cost = new Float64Array(size);
  const next = new Int32Array(size);
  for (let from = size - 2; from >= 0; from--) {
    const open = count - finalAt(from);
    if (open === 0) continue;
    let minCost = Number.POSITIVE_INFINITY;
    for (let to = from + 1; to < Math.min(size, from + FARTHEST_STEPS); to++) {
      const total = open + price * lagBetween(from, to) + (cost[to] ?? 0);
      if (total >= minCost) continue;
      minCost = total;
      next[from] = to;
    }
    cost[from] = minCost;
  }

  let requests = 0;
  let lagS = 0;
  for (let from = 0; finalAt(from) < count; from = next[from] ?? size) {
    requests += count - finalAt(from);
    lagS += lagBetween(from, next[from] ?? size);
  }
  return { requests: requests / count, meanS: lagS / count };
}

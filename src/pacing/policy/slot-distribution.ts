import { CELLS, DELAYS, SlotBelief, type SlotObservation } from './slot-belief.ts';

/** A submission is followed for so many slots; what takes longer is left to the distribution of age. */
export const SLOTS = 24;
/** Phases at which submissions may begin to wait for the next slot. */
const CUTS = 40;
/** On each side of the cut, so many phases are its edge. */
const EDGE = 3;
/** Finals, and slots, after which old evidence has faded to a third. */
const MEMORY = { slots: 40, finals: 300 };
const FADE = 0.96;
const ROUNDS = 1;
const PRIOR = 0.7;
/** Runs of slots without event are told apart up to this length: an empty slot is an accident, several are a stall. */
const RUNS = 6;
export const COUNTS = CUTS * (SLOTS + 2);

export type SlotDistributionState = {
  event: number[];
  delay: number[];
  counts: number[];
  /** Probability of a slot without event, after none, one, … of them in a row. */
  empty: number[];
};

/**
 * When a submission becomes final on a chain with slots: `SLOTS` says in which slot after the one in which it began to wait,
 * `event` when in a slot the group of that slot becomes final, `delay` how long after that a single one does. A slot may also
 * pass without event. Each is a histogram whose old evidence fades exponentially.
 */
export class SlotDistribution {
  /** Moment of the event within a slot. */
  readonly event: Float64Array;
  /** Delay of one submission after the event. */
  readonly delay: Float64Array;
  /** By the phase at which it began to wait, then by slots until it was final. */
  readonly #counts: Float64Array;
  #cut = 0;
  /** The phases of the cuts that are as good as this one. */
  #edge = { first: -EDGE, end: EDGE };
  #unlikely = 0;
  #merged: (Float64Array | undefined)[] = [];
  #hazards: (Float64Array | undefined)[] = [];
  #version = 0;
  readonly #records: { observations: readonly SlotObservation[]; empty: number }[] = [];
  readonly #empty: number[];

  constructor(state?: SlotDistributionState) {
    this.event = Float64Array.from(state?.event ?? eventBelief());
    this.delay = Float64Array.from(state?.delay ?? delayBelief());
    this.#counts = Float64Array.from(state?.counts ?? countBelief());
    this.#empty = [...(state?.empty ?? [0.04, 0.15, 0.4, 0.7, 0.85, 0.9])];
    this.#findCut();
  }

  get version(): number {
    return this.#version;
  }

  get state(): SlotDistributionState {
    return { event: [...this.event], delay: [...this.delay], counts: [...this.#counts], empty: [...this.#empty] };
  }

  /** Probability that a slot has no event, after so many in a row without. */
  emptyAfter(run: number): number {
    return this.#empty[Math.min(RUNS - 1, run)] as number;
  }

  get empty(): number {
    return this.#empty[0] as number;
  }

  /** How much of the position of a poll is still chance, so that every moment is looked at once: 1 at first, then less. */
  get curiosity(): number {
    return 10 / (10 + this.#records.length);
  }

  /** The slot in which one that begins to wait at this position counts as waiting. */
  slotOf(position: number): number {
    return Math.floor(position - this.#cut / CUTS) + 1;
  }

  /** 0: it is clear to which slot it belongs. Else the zone of its phase, near the moment at which the next slot takes over. */
  zoneOf(position: number): number {
    const row = Math.min(CUTS - 1, Math.floor((position - Math.floor(position)) * CUTS));
    return this.#isEdge(row) ? 1 + row : 0;
  }

  #isEdge(row: number): boolean {
    return (row - this.#edge.first + CUTS) % CUTS < this.#edge.end - this.#edge.first;
  }

  /** Probability of becoming final in the k-th slot with an event, if it was not before. */
  hazards(zone: number): Float64Array {
    const known = this.#hazards[zone];
    if (known) return known;
    let left = 1;
    const hazards = this.slots(zone).map((p) => {
      const hazard = Math.min(0.995, p / Math.max(1e-6, left));
      left -= p;
      return hazard;
    });
    hazards[SLOTS] = 0.05;
    this.#hazards[zone] = hazards;
    return hazards;
  }

  /** Probability of becoming final exactly `k` slots after, for k from 0 to SLOTS; the last is for all later ones. */
  slots(zone: number): Float64Array {
    const known = this.#merged[zone];
    if (known) return known;
    const merged = new Float64Array(SLOTS + 1);
    let total = 0;
    if (zone === 0) {
      for (let row = 0; row < CUTS; row++) if (!this.#isEdge(row)) total += this.#add(merged, row, this.#cut, 1);
      shrink(merged, total, slotsBelief(0.02), 1.2);
    } else {
      // Near the edge each phase is its own, as far as it has been seen; else it is like its neighbours.
      for (const [distance, weight] of [
        [0, 1],
        [1, 0.3],
        [2, 0.05],
      ] as const)
        for (const row of distance === 0 ? [zone - 1] : [zone - 1 - distance, zone - 1 + distance])
          total += this.#add(merged, (row + CUTS) % CUTS, this.#cut, weight);
      shrink(merged, total, slotsBelief(0.15), 0.6);
    }
    this.#merged[zone] = merged;
    return merged;
  }

  #add(merged: Float64Array, row: number, cut: number, weight: number): number {
    const later = row >= cut ? 1 : 0;
    let total = 0;
    for (let i = 0; i <= SLOTS + 1; i++) {
      const count = weight * (this.#counts[row * (SLOTS + 2) + i] as number);
      const k = Math.min(SLOTS, Math.max(0, i - later));
      merged[k] = (merged[k] as number) + count;
      total += count;
    }
    return total;
  }

  /** Starts from what was seen before the clock was known. */
  begin(slots: readonly (readonly SlotObservation[])[]): void {
    this.#records.push(...slots.map((observations) => ({ observations, empty: 0.04 })));
    for (let round = 0; round < 8; round++) this.#expectMaximize();
    this.#version++;
  }

  /** Learns from what was observed in one more slot. */
  learnSlot(observations: readonly SlotObservation[], run: number, none: number): void {
    const at = Math.min(RUNS - 1, run);
    this.#empty[at] = (this.#empty[at] as number) + (none - (this.#empty[at] as number)) * (at === 0 ? 0.01 : 0.05);
    this.#records.push({ observations, empty: this.#empty[at] as number });
    if (this.#records.length > MEMORY.slots) this.#records.shift();
    this.#version++;
    for (let round = 0; round < ROUNDS; round++) this.#expectMaximize();
  }

  /** One round of expectation and maximization over the remembered slots, smoothed (Silverman et al., J. R. Stat. Soc. B 52, 1990). */
  #expectMaximize(): void {
    const event = eventBelief().map((p) => PRIOR * p);
    const delay = delayBelief().map((p) => PRIOR * p);
    let weight = 1;
    for (let i = this.#records.length - 1; i >= 0; i--) {
      const { observations, empty } = this.#records[i] as { observations: readonly SlotObservation[]; empty: number };
      const belief = new SlotBelief(0, this, empty);
      for (const observation of observations) belief.replay(observation);
      for (let g = 0; g < CELLS; g++) event[g] = (event[g] as number) + weight * (belief.posterior[g] as number);
      belief.delays(observations, delay, weight);
      weight *= FADE;
    }
    const shift = leadOf(delay);
    replace(this.event, event, -shift);
    replace(this.delay, delay, shift);
  }

  /** One was found final after so many slots, each as likely as `weights` says. `phase`: where in a slot it began to wait. */
  learnFinal(phase: number, weights: ArrayLike<number>, weight: number): void {
    const first = Math.floor(phase * CUTS);
    const later = first >= this.#cut ? 1 : 0;
    const row = Math.min(CUTS - 1, first) * (SLOTS + 2);
    const counts = this.#counts;
    const keep = 1 - weight / MEMORY.finals;
    for (let i = 0; i < counts.length; i++) counts[i] = (counts[i] as number) * keep;
    let sum = 0;
    for (let k = 0; k <= SLOTS; k++) sum += weights[k] as number;
    if (!(sum > 0)) return;
    this.#surprise(phase, weights, sum);
    for (let k = 0; k <= SLOTS; k++)
      counts[row + k + later] = (counts[row + k + later] as number) + (weight * (weights[k] as number)) / sum;
    this.#version++;
    this.#findCut();
  }

  /** Where most of the newest finals were hardly believed possible, the chain has changed, and the old ones say little. */
  #surprise(phase: number, weights: ArrayLike<number>, sum: number): void {
    const slots = this.slots(this.zoneOf(phase));
    let told = 0;
    for (let k = 0; k <= SLOTS; k++) told += ((weights[k] as number) / sum) * (slots[k] as number);
    this.#unlikely += 0.15 * ((told < 0.1 ? 1 : 0) - this.#unlikely);
    if (this.#unlikely < 0.45) return;
    this.#unlikely = 0.15;
    this.forget();
  }

  forget(): void {
    for (let i = 0; i < this.#counts.length; i++) this.#counts[i] = (this.#counts[i] as number) * 0.1;
    this.#records.splice(0, this.#records.length - 4);
    this.#version++;
  }

  /** The cut at which the number of slots is told best: that with the least entropy, or the middle of those as good. */
  #findCut(): void {
    this.#merged = [];
    this.#hazards = [];
    const entropies = new Float64Array(CUTS);
    for (let cut = 0; cut < CUTS; cut++) {
      const merged = new Float64Array(SLOTS + 1);
      let total = 0;
      for (let row = 0; row < CUTS; row++) total += this.#add(merged, row, cut, 1);
      shrink(merged, total, slotsBelief(0.02), 1.2);
      let entropy = 0;
      for (const p of merged) if (p > 0) entropy -= p * Math.log(p);
      entropies[cut] = entropy;
    }
    const least = Math.min(...entropies);
    const isAsGood = (cut: number, by: number) => (entropies[(cut + CUTS) % CUTS] as number) < least + by;
    // The one in use is kept where another is hardly better.
    const isKept = isAsGood(this.#cut, 0.01);
    let first = isKept ? this.#cut : entropies.indexOf(least);
    let last = first;
    while (last - first < CUTS - 1 && isAsGood(last + 1, 0.0005)) last++;
    while (last - first < CUTS - 1 && isAsGood(first - 1, 0.0005)) first--;
    const cut = isKept ? this.#cut : Math.round((first + last) / 2);
    this.#edge = { first: Math.min(first, cut - EDGE), end: Math.max(last, cut + EDGE) };
    this.#cut = (cut + CUTS) % CUTS;
  }
}

/** No number of slots is impossible. */
function slotsBelief(early: number): Float64Array {
  return Float64Array.from({ length: SLOTS + 1 }, (_, k) =>
    k === 0 ? early : k === SLOTS ? 0.03 : (0.97 - early) * 0.45 * 0.55 ** (k - 1),
  );
}

function shrink(counts: Float64Array, total: number, belief: Float64Array, weight: number): void {
  for (let k = 0; k < counts.length; k++)
    counts[k] = ((counts[k] as number) + weight * (belief[k] as number)) / (total + weight);
}

/** Delays count from the first of a group: where all are late, the event itself is. */
function leadOf(delay: Float64Array): number {
  let sum = 0;
  for (const p of delay) sum += p;
  let below = 0;
  let cell = 0;
  while (below + (delay[cell] as number) < 0.05 * sum) below += delay[cell++] as number;
  return cell;
}

/** Normalizes, moves, smooths a little, and puts it in place. */
function replace(into: Float64Array, from: Float64Array, shift: number): void {
  let sum = 0;
  for (const p of from) sum += p;
  const at = (i: number) => from[Math.max(0, Math.min(from.length - 1, i + shift))] as number;
  let total = 0;
  for (let i = 0; i < into.length; i++) {
    into[i] = (0.5 * at(i) + 0.25 * at(i - 1) + 0.25 * at(i + 1)) / sum;
    total += into[i] as number;
  }
  for (let i = 0; i < into.length; i++) into[i] = (into[i] as number) / total;
}

/** Around the mean moment of the finality events, which the clock has laid to 0.3. */
function eventBelief(): Float64Array {
  const cells = Float64Array.from({ length: CELLS }, (_, i) => {
    const x = (i + 0.5) / CELLS - 0.28;
    return 0.5 + Math.exp(-0.5 * (x / 0.12) ** 2) * 3;
  });
  const sum = cells.reduce((a, b) => a + b, 0);
  return cells.map((cell) => cell / sum);
}

function delayBelief(): Float64Array {
  const cells = Float64Array.from({ length: DELAYS }, (_, i) => Math.exp(-i / 10) + 0.01);
  const sum = cells.reduce((a, b) => a + b, 0);
  return cells.map((cell) => cell / sum);
}

function countBelief(): Float64Array {
  return new Float64Array(CUTS * (SLOTS + 2));
}

/** A slot is divided into so many cells. */
export const CELLS = 200;
/** Delays of single submissions after the event of their slot, in cells: up to 0.4 slots. */
export const DELAYS = 80;

/** Share of submissions that become final apart from the event of the slot. */
const APART = 0.006;
/** Observations of one slot that are kept to learn from; a group says no more with thousands. */
const KEPT = 32;

/** Distribution of the moment of a slot's event, and of the delay of one submission after it. */
type SlotShape = { readonly event: Float64Array; readonly delay: Float64Array };

/** What was believed about one submission at the begin of a slot. */
export type Prospect = {
  /** Probability that it was final before this slot already, and nobody looked. */
  before: number;
  /** Probability that it becomes final in this slot, if there is an event. */
  within: number;
};

/** A poll in a slot; cells of the slot, `since` -1: it was not known to be open in this slot. */
export type SlotObservation = { prospect: Prospect; since: number; at: number; isFinal: boolean };

/**
 * What is believed about the event of one slot: the distribution of its moment, updated by Bayes' rule with every poll of a
 * submission that could have become final in it. Neighbours are evidence by this alone.
 */
export class SlotBelief {
  readonly slot: number;
  readonly #distribution: SlotShape;
  /** Over CELLS, and last that there is no event. */
  readonly posterior: Float64Array;
  readonly #cumulativeDelay: Float64Array;
  readonly observations: SlotObservation[] = [];
  #mean: Float64Array | null = null;
  #observed = 0;
  #skip = 0;
  #informed = false;
  finals = 0;
  version = 0;

  constructor(slot: number, distribution: SlotShape, empty: number) {
    this.slot = slot;
    this.#distribution = distribution;
    this.posterior = new Float64Array(CELLS + 1);
    const { event, delay } = distribution;
    for (let g = 0; g < CELLS; g++) this.posterior[g] = (1 - empty) * (event[g] as number);
    this.posterior[CELLS] = empty;
    let sum = 0;
    this.#cumulativeDelay = delay.map((weight) => {
      sum += weight;
      return sum;
    });
  }

  get isInformed(): boolean {
    return this.#informed;
  }

  /** Whether the event has probably been by the end of cell `at`. */
  hasHappenedBy(at: number): boolean {
    if (this.finals === 0) return false;
    let sum = 0;
    for (let g = 0; g <= at; g++) sum += this.posterior[g] as number;
    return sum > 0.5;
  }

  /** A submission was open at cell `at`; what is known of it before: open at `since` (-1: at the begin of the slot). */
  open(prospect: Prospect, since: number, at: number): void {
    if (!this.#takes()) return;
    const { before, within } = prospect;
    for (let g = 0; g <= CELLS; g++) {
      const earlier = 1 - (since < 0 ? 0 : within * this.#final(g, since));
      const later = 1 - before - within * this.#final(g, at);
      this.posterior[g] = (this.posterior[g] as number) * Math.max(1e-6, later / Math.max(1e-6, earlier));
    }
    this.#keep({ prospect, since, at, isFinal: false });
    this.#settle(within);
  }

  /** A submission was found final at cell `at`, having been open at `since` (-1: at the begin of the slot, or earlier). */
  final(prospect: Prospect, since: number, at: number): void {
    if (!this.#takes()) return;
    const { before, within } = prospect;
    for (let g = 0; g <= CELLS; g++) {
      const earlier = since < 0 ? 0 : within * this.#final(g, since);
      const found = (since < 0 ? before : 0) + within * this.#final(g, at) - earlier;
      this.posterior[g] = (this.posterior[g] as number) * Math.max(1e-6, found / Math.max(1e-6, 1 - earlier));
    }
    this.finals++;
    this.#keep({ prospect, since, at, isFinal: true });
    this.#settle(within);
  }

  replay({ prospect, since, at, isFinal }: SlotObservation): void {
    if (isFinal) this.final(prospect, since, at);
    else this.open(prospect, since, at);
  }

  #keep(observation: SlotObservation): void {
    if (this.observations.length < KEPT) this.observations.push(observation);
  }

  /** Probability that one with these prospects is final by the end of each cell. */
  cdf({ before, within }: Prospect): Float64Array {
    const mean = this.#meanCdf();
    return mean.map((p) => Math.min(1, before + within * p));
  }

  /** Adds to `delays` how long after the event single ones were final, as far as the observations show it. */
  delays(observations: readonly SlotObservation[], delays: Float64Array, weight: number): void {
    const { delay } = this.#distribution;
    for (const { since, at, isFinal, prospect } of observations) {
      if (!isFinal || prospect.before > 0.2) continue;
      for (let g = 0; g < CELLS; g++) {
        const p = this.posterior[g] as number;
        if (p < 1e-4) continue;
        const first = Math.max(0, since + 1 - g);
        const last = Math.min(DELAYS - 1, at - g);
        let sum = 0;
        for (let d = first; d <= last; d++) sum += delay[d] as number;
        if (sum > 1e-9)
          for (let d = first; d <= last; d++)
            delays[d] = (delays[d] as number) + (weight * p * (delay[d] as number)) / sum;
      }
    }
  }

  /** Probability to be final by the end of cell `at`, if the event is in cell g and the submission has part in it. */
  #final(g: number, at: number): number {
    const apart = (at + 1) / CELLS;
    if (g === CELLS) return APART * apart;
    const d = at - g;
    const p = d < 0 ? 0 : d >= DELAYS ? 1 : (this.#cumulativeDelay[d] as number);
    return (1 - APART) * p + APART * apart;
  }

  #meanCdf(): Float64Array {
    if (this.#mean) return this.#mean;
    const mean = new Float64Array(CELLS);
    const { delay } = this.#distribution;
    for (let g = 0; g < CELLS; g++) {
      const p = this.posterior[g] as number;
      if (p < 1e-5) continue;
      for (let d = 0; d < DELAYS && g + d < CELLS; d++)
        mean[g + d] = (mean[g + d] as number) + p * (delay[d] as number);
    }
    let sum = 0;
    for (let i = 0; i < CELLS; i++) {
      sum += mean[i] as number;
      mean[i] = (1 - APART) * Math.min(1, sum) + (APART * (i + 1)) / CELLS;
    }
    this.#mean = mean;
    return mean;
  }

  /** The first observations all count, later ones ever fewer: what a slot is does not need thousands. */
  #takes(): boolean {
    if (this.#skip > 0) {
      this.#skip--;
      return false;
    }
    this.#observed++;
    this.#skip = Math.floor(this.#observed / 64);
    return true;
  }

  #settle(within: number): void {
    let sum = 0;
    for (const p of this.posterior) sum += p;
    for (let g = 0; g <= CELLS; g++) this.posterior[g] = (this.posterior[g] as number) / sum;
    if (within > 0.3) this.#informed = true;
    this.#mean = null;
    this.version++;
  }
}

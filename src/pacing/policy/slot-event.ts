/** A slot is divided into so many cells. */
export const CELLS = 200;
/** Delays of single submissions after the event of their slot, in cells: up to 0.4 slots. */
export const DELAYS = 80;

/** Observations of one slot that are kept to learn from: a group says no more with thousands. */
const KEPT = 32;
/** The belief counts as another one once so much of its probability has moved. */
const MOVED = 0.003;

/** What is believed of one submission at the begin of a slot. */
export type Prospect = {
  /** Probability that it was final before this slot already, and nobody looked. */
  before: number;
  /** Probability that it becomes final in this slot, if there is an event. */
  within: number;
};

/** A poll in cell `at` of a slot; `since`: the cell in which the submission was open, -1: it was not polled in this slot. */
export type SlotObservation = { prospect: Prospect; since: number; at: number; isFinal: boolean };

/**
 * What is believed of the event of one slot, with which all submissions of a group become final: the distribution of its
 * cell, updated by Bayes' rule with each poll of a submission that could have part in it. Neighbors are evidence by this alone.
 */
export class SlotEvent {
  readonly slot: number;
  /** Over the cells, and last that there is no event. */
  readonly posterior: Float64Array;
  readonly observations: SlotObservation[] = [];
  /** Whether a submission likely to take part has been polled. */
  isInformed = false;
  readonly #delayCdf: Float64Array;
  #finals = 0;
  #moved = 0;
  #mean: Float64Array | null = null;

  constructor(slot: number, prior: { event: Float64Array; delayCdf: Float64Array; empty: number }) {
    this.slot = slot;
    this.#delayCdf = prior.delayCdf;
    this.posterior = Float64Array.from([...prior.event.map((p) => p * (1 - prior.empty)), prior.empty]);
  }

  get none(): number {
    return this.posterior[CELLS] as number;
  }

  /** Whether the event has probably been by the end of cell `at`. */
  hasHappenedBy(at: number): boolean {
    return this.#finals > 0 && this.posterior.slice(0, at + 1).reduce((sum, p) => sum + p, 0) > 0.5;
  }

  /** Returns whether the belief is another one now. */
  observe(observation: SlotObservation): boolean {
    const { prospect, since, at, isFinal } = observation;
    const updated = this.posterior.map((p, cell) => {
      const open = (1 - this.#finalBy(at, cell, prospect)) / (1 - this.#finalBy(since, cell, prospect));
      return p * Math.max(1e-6, isFinal ? 1 - open : open);
    });
    const sum = updated.reduce((a, b) => a + b, 0);
    for (const [cell, p] of updated.entries()) {
      this.#moved += Math.abs(p / sum - (this.posterior[cell] as number));
      this.posterior[cell] = p / sum;
    }
    if (isFinal) this.#finals++;
    if (prospect.within > 0.3) this.isInformed = true;
    if (this.observations.length < KEPT) this.observations.push(observation);
    if (this.#moved < MOVED) return false;
    this.#moved = 0;
    this.#mean = null;
    return true;
  }

  /** Probability by the end of each cell that a submission with this prospect is final, if it was open in cell `since`. */
  cdf({ before, within }: Prospect, since: number): Float64Array {
    this.#mean ??= this.#meanCdf();
    const known = since < 0 ? 0 : before + within * (this.#mean[since] as number);
    return this.#mean.map((p) => Math.max(0, (before + within * p - known) / Math.max(1e-6, 1 - known)));
  }

  /** Probability that one that takes part in the event is final by the end of each cell. */
  #meanCdf(): Float64Array {
    const mean = new Float64Array(CELLS);
    for (let event = 0; event < CELLS; event++) {
      const p = this.posterior[event] as number;
      if (p < 1e-5) continue;
      for (let at = event; at < CELLS; at++)
        mean[at] = (mean[at] as number) + p * (this.#delayCdf[Math.min(DELAYS - 1, at - event)] as number);
    }
    return mean;
  }

  /** Probability of being final by the end of cell `at`, if the event is in cell `event`. */
  #finalBy(at: number, event: number, { before, within }: Prospect): number {
    if (at < 0) return 0;
    const hasPart = event < CELLS && at >= event;
    return before + (hasPart ? within * (this.#delayCdf[Math.min(DELAYS - 1, at - event)] as number) : 0);
  }
}

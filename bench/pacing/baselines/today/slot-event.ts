/** Number of cells in which time within a slot is measured. */
export const CELLS = 200;
/** Delays of single submissions after the event of their slot, in cells: up to 0.4 slots. */
export const DELAYS = 80;

/** Maximum number of observations stored per slot. More members of a group add no information. */
const MAX_OBSERVATIONS = 32;
/** `observe` reports a change when this much probability has moved since the last report. */
const MOVED = 0.003;

export type Prospect = {
  before: number;
  /** Probability that it becomes final with the event of this slot, if there is one. */
  within: number;
};

/** Before any poll: event by cell, distribution of the delay, probability of no event. */
export type SlotPrior = { event: Float64Array; delayCdf: Float64Array; empty: number };

/** A poll in cell `at`. `since`: cell of the previous poll that found it open; -1 if none. */
export type SlotObservation = { prospect: Prospect; since: number; at: number; isFinal: boolean };

/**
 * The event of one slot: the chain finalizes a group of submissions, each of which shows as final
 * some delay later. Each poll updates the posterior for all members by Bayes' rule.
 */
export class SlotEvent {
  readonly slot: number;
  /** Probability of the event in each cell; the last element is the probability of no event. */
  readonly posterior: Float64Array;
  readonly observations: SlotObservation[] = [];
  /** Whether a submission that was likely to become final in this slot has been polled. */
  isInformed = false;
  readonly #delayCdf: Float64Array;
  #finals = 0;
  #moved = 0;
  #mean: Float64Array | null = null;

  constructor(slot: number, prior: SlotPrior) {
    this.slot = slot;
    this.#delayCdf = prior.delayCdf;
    this.posterior = new Float64Array(CELLS + 1).fill(prior.empty);
    this.posterior.set(prior.event.map((p) => p * (1 - prior.empty)));
  }

  get none(): number {
    return this.posterior[CELLS] as number;
  }

  hasHappenedBy(at: number): boolean {
    return (
      this.#finals > 0 && this.posterior.subarray(0, at + 1).reduce((sum, p) => sum + p, 0) > 0.5
    );
  }

  /** Updates the posterior. Returns whether it has changed enough to invalidate plans. */
  observe(observation: SlotObservation): boolean {
    const { prospect, since, at, isFinal } = observation;
    const updated = new Float64Array(CELLS + 1);
    let sum = 0;
    for (let cell = 0; cell <= CELLS; cell++) {
      const open =
        (1 - this.#finalBy(at, cell, prospect)) / (1 - this.#finalBy(since, cell, prospect));
      sum += updated[cell] =
        (this.posterior[cell] as number) * Math.max(1e-6, isFinal ? 1 - open : open);
    }
    for (let cell = 0; cell <= CELLS; cell++) {
      const p = (updated[cell] as number) / sum;
      this.#moved += Math.abs(p - (this.posterior[cell] as number));
      this.posterior[cell] = p;
    }
    if (isFinal) this.#finals++;
    if (prospect.within > 0.3) this.isInformed = true;
    if (this.observations.length < MAX_OBSERVATIONS) this.observations.push(observation);
    if (this.#moved < MOVED) return false;
    this.#moved = 0;
    this.#mean = null;
    return true;
  }

  /** Returns the probability of being final by the end of each cell, if open in cell `since`. */
  cdf({ before, within }: Prospect, since: number): Float64Array {
    this.#mean ??= this.#meanCdf();
    const passed = since < 0 ? 0 : before + within * (this.#mean[since] as number);
    return this.#mean.map((p) =>
      Math.min(1, Math.max(0, (before + within * p - passed) / Math.max(1e-6, 1 - passed))),
    );
  }

  /** The same for a submission that becomes final with the event. */
  #meanCdf(): Float64Array {
    const mean = new Float64Array(CELLS);
    for (let event = 0; event < CELLS; event++) {
      const p = this.posterior[event] as number;
      if (p < 1e-5) continue;
      for (let at = event; at < CELLS; at++)
        mean[at] =
          (mean[at] as number) + p * (this.#delayCdf[Math.min(DELAYS - 1, at - event)] as number);
    }
    return mean;
  }

  /** Returns the probability of being final by the end of cell `at`, for an event in this cell. */
  #finalBy(at: number, event: number, { before, within }: Prospect): number {
    if (at < 0) return 0;
    const hasPart = event < CELLS && at >= event;
    return (
      before + (hasPart ? within * (this.#delayCdf[Math.min(DELAYS - 1, at - event)] as number) : 0)
    );
  }
}

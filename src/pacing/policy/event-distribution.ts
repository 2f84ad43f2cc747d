import { Histogram } from '../../stats/histogram.ts';
import { CELLS, DELAYS, SlotEvent, type SlotObservation, type SlotPrior } from './slot-event.ts';

/** Number of slots stored, and the weight of each relative to the slot after it. */
const MAX_SLOTS = 40;
const FADE = 0.96;
/** Rounds of expectation and maximization after which the first estimate has converged. */
const FIRST_ROUNDS = 8;
/** Weight of the prior, in slots. */
const PRIOR_WEIGHT = 0.7;
/** Learning rate and prior of the share of slots without an event. */
const EMPTY = { rate: 0.01, initial: 0.04 };

export type EventDistributionState = { event: number[]; delay: number[]; empty: number };

/**
 * Two histograms over the cells of a slot: the time of the slot's event (see slot-event.ts), and the delay of a single
 * submission after it. The event is not observed itself, so both are estimated by expectation and maximization with
 * smoothing over the stored slots (Silverman et al., J. R. Stat. Soc. B 52, 1990).
 */
export class EventDistribution {
  #event: Float64Array;
  #delay: Float64Array;
  /** Probability of a slot without an event. */
  #empty: number;
  readonly #records: (readonly SlotObservation[])[] = [];

  constructor(state?: EventDistributionState) {
    this.#event = Float64Array.from(state?.event ?? INITIAL_EVENT);
    this.#delay = Float64Array.from(state?.delay ?? INITIAL_DELAY);
    this.#empty = state?.empty ?? EMPTY.initial;
  }

  get state(): EventDistributionState {
    return { event: [...this.#event], delay: [...this.#delay], empty: this.#empty };
  }

  get empty(): number {
    return this.#empty;
  }

  /** Returns the prior of the event of a slot. */
  slot(slot: number): SlotEvent {
    return new SlotEvent(slot, this.#prior());
  }

  /** Learns from the observations of one slot. `none`: probability that the slot had no event. */
  learn(observations: readonly SlotObservation[], none: number): void {
    this.#empty += EMPTY.rate * (none - this.#empty);
    this.#store([observations]);
    this.#expectAndMaximize();
  }

  /** Computes the first estimate from these slots. */
  learnAll(slots: readonly (readonly SlotObservation[])[]): void {
    this.#store(slots);
    for (let round = 0; round < FIRST_ROUNDS; round++) this.#expectAndMaximize();
  }

  #prior(): SlotPrior {
    return { event: this.#event, delayCdf: new Histogram(this.#delay).cdf(), empty: this.#empty };
  }

  #store(slots: readonly (readonly SlotObservation[])[]): void {
    this.#records.push(...slots);
    this.#records.splice(0, this.#records.length - MAX_SLOTS);
  }

  #expectAndMaximize(): void {
    const event = new Histogram(INITIAL_EVENT.map((p) => PRIOR_WEIGHT * p));
    const delay = new Histogram(INITIAL_DELAY.map((p) => PRIOR_WEIGHT * p));
    const prior = this.#prior();
    for (const [index, observations] of this.#records.entries()) {
      const weight = FADE ** (this.#records.length - 1 - index);
      const slot = new SlotEvent(0, prior);
      for (const observation of observations) slot.observe(observation);
      for (let cell = 0; cell < CELLS; cell++) event.add(cell, weight * (slot.posterior[cell] as number));
      this.#expectDelays(slot, delay, weight);
    }
    // The event is defined as the finality of the first member of a group. A delay that all members share belongs to the event.
    const lead = delay.cdf().findIndex((p) => p >= 0.05);
    this.#event = smoothed(event, -lead);
    this.#delay = smoothed(delay, lead);
  }

  /** Adds the delays of single submissions after the event, each spread over the interval in which it was observed. */
  #expectDelays({ posterior, observations }: SlotEvent, delay: Histogram, weight: number): void {
    for (const { since, at, isFinal, prospect } of observations) {
      if (!isFinal || prospect.before > 0.2) continue;
      for (let event = 0; event <= at; event++) {
        const p = posterior[event] as number;
        if (p < 1e-4) continue;
        const first = Math.max(0, since + 1 - event);
        delay.addBetween(first, Math.min(DELAYS - 1, at - event), weight * p, this.#delay);
      }
    }
  }
}

/** Returns the histogram shifted by `shift` cells, smoothed and normalized. */
function smoothed(histogram: Histogram, shift: number): Float64Array {
  const { weights } = histogram.smoothed(0.75, 1);
  const last = weights.length - 1;
  return normalized(weights.map((_, cell) => weights[Math.max(0, Math.min(last, cell + shift))] as number));
}

function normalized(weights: ArrayLike<number>): Float64Array {
  const { total } = new Histogram(weights);
  return Float64Array.from(weights, (weight) => weight / total);
}

/** Centered on the mean time of the events, which SlotClock places at 0.3 slots. */
const INITIAL_EVENT = normalized(
  Array.from({ length: CELLS }, (_, cell) => 0.5 + 3 * Math.exp(-0.5 * (((cell + 0.5) / CELLS - 0.28) / 0.12) ** 2)),
);
const INITIAL_DELAY = normalized(Array.from({ length: DELAYS }, (_, cell) => Math.exp(-cell / 10) + 0.01));

import { Histogram } from '../../stats/histogram.ts';
import { SLOTS } from './slots-to-wait.ts';

const CANDIDATES = [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 20, 24, 32, 48, Number.POSITIVE_INFINITY];
/** Number of departures whose times are stored. */
const MEMORY = 4_096;
/** Factor by which the weight of earlier evidence decays with each final submission. */
const KEEP = 0.97;
/** Minimum difference of the log-likelihoods (nats) for a change of the estimate. */
const MARGIN = 8;
/** Serial senders are dropped when they explain less than this much (nats) more than sending at once. */
const RETAINED = 1;
/** Likelihood of a submission that is final before, by this number of senders, it was sent. */
const IMPOSSIBLE = 0.01;

/**
 * `score`: decayed log-likelihood of the final submissions. `slots`: their distribution of the number of slots from sending
 * to finality.
 */
type Candidacy = { count: number; slots: Histogram; score: number };

/**
 * Maximum-likelihood estimate of the number of serial senders of the upstream; Infinity if all submissions are sent at
 * once. A serial sender waits for the finality of one submission before it sends the next. In a queue with c servers,
 * submission number n begins when n - c submissions have departed (become final or left the queue).
 */
export class SenderCount {
  /** Times of the newest departures, epoch ms; a ring. */
  readonly #departures = new Float64Array(MEMORY);
  #departed = 0;
  readonly #candidates: Candidacy[] = CANDIDATES.map((count) => ({
    count,
    slots: new Histogram(new Float64Array(SLOTS + 1).fill(0.05)),
    score: 0,
  }));
  #best: number;

  constructor(best = Number.POSITIVE_INFINITY) {
    this.#best = best;
  }

  get best(): number {
    return this.#best;
  }

  depart(at: number): void {
    this.#departures[this.#departed++ % MEMORY] = at;
  }

  /** Counts the departures that must have preceded the finality of submission number `order`. */
  catchUp(order: number, at: number): void {
    if (this.#best === Number.POSITIVE_INFINITY) return;
    while (this.#departed < order - this.#best) this.depart(at);
  }

  /** Returns when submission number `order` was sent, given the number of senders; null if it still waits. */
  beganAt(order: number, trackedAt: number, senders = this.#best): number | null {
    const departure = order - senders - 1;
    if (departure < 0 || departure < this.#departed - MEMORY) return trackedAt;
    if (departure >= this.#departed) return null;
    return Math.max(trackedAt, this.#departures[departure % MEMORY] as number);
  }

  /** Learns from a submission that became final in this slot. Returns whether the estimate has changed. */
  learn(order: number, trackedAt: number, slot: number, slotOf: (time: number) => number, weight: number): boolean {
    const keep = KEEP ** weight;
    for (const candidate of this.#candidates) {
      const began = this.beganAt(order, trackedAt, candidate.count);
      const k = Math.min(SLOTS, began === null ? 0 : slot - slotOf(began));
      const { slots } = candidate;
      const likelihood = k < 1 ? IMPOSSIBLE : (slots.weights[k] as number) / slots.total;
      candidate.score = keep * candidate.score + weight * Math.log(likelihood);
      slots.fade(keep, 0.02);
      if (k >= 1) slots.add(k, weight);
    }
    const scoreOf = (count: number) => this.#candidates.find((known) => known.count === count)?.score ?? -Infinity;
    const best = this.#candidates.reduce((a, b) => (b.score >= a.score ? b : a));
    const isRetained = this.#best === Infinity || scoreOf(this.#best) > scoreOf(Infinity) + RETAINED;
    if (isRetained && best.score < scoreOf(this.#best) + MARGIN) return false;
    // Serial senders are assumed only if they explain the evidence clearly better than sending at once.
    const chosen = best.score > scoreOf(Infinity) + MARGIN ? best.count : Infinity;
    const isOther = chosen !== this.#best;
    this.#best = chosen;
    return isOther;
  }
}

import { Histogram } from '../../stats/histogram.ts';
import { SLOTS } from './slots-to-wait.ts';

const CANDIDATES = [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 20, 24, 32, 48, Number.POSITIVE_INFINITY];
/** Departures whose moment is remembered. */
const MEMORY = 4_096;
/** Share of its weight that old evidence keeps with each final. */
const KEEP = 0.97;
/** How much better the newest finals must be told by another number of senders (nats). */
const MARGIN = 8;
/** Likelihood of one that is final before it began, as far as that number of senders says. */
const IMPOSSIBLE = 0.01;

/** `score`: log-likelihood of the newest finals, with `slots` as the distribution of the slots they took. */
type Candidacy = { count: number; slots: Histogram; score: number };

/**
 * How many serial senders bring submissions to the chain; Infinity: all are sent at once. A queue with c servers, served in
 * order: submission number n begins when n - c have departed. The number is the one of greatest likelihood.
 */
export class SenderCount {
  /** When each departed, epoch ms. */
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

  /** Submission number `order` is final, so it had begun: those before it must have departed. */
  catchUp(order: number, at: number): void {
    if (this.#best === Number.POSITIVE_INFINITY) return;
    while (this.#departed < order - this.#best) this.depart(at);
  }

  /** When submission number `order` began to be sent, if there are so many senders; null: not yet. */
  beganAt(order: number, trackedAt: number, senders = this.#best): number | null {
    const departure = order - senders - 1;
    if (departure < 0 || departure < this.#departed - MEMORY) return trackedAt;
    if (departure >= this.#departed) return null;
    return Math.max(trackedAt, this.#departures[departure % MEMORY] as number);
  }

  /** Learns from a submission that was final in this slot. Returns whether another number of senders is believed now. */
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
    if (best.score < scoreOf(this.#best) + MARGIN) return false;
    // Only where it is told clearly better than by all at once.
    const chosen = best.score > scoreOf(Infinity) + MARGIN ? best.count : Infinity;
    const isOther = chosen !== this.#best;
    this.#best = chosen;
    return isOther;
  }
}

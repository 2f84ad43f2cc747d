import { SLOTS } from './slot-distribution.ts';

const CANDIDATES = [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 20, 24, 32, 48];
/** Departures whose moment is remembered. */
const MEMORY = 4_096;
const KEEP = 0.97;
/** How much better the newest finals must be told by another number of senders (nats). */
const MARGIN = 8;

type Candidacy = { count: number; counts: Float64Array; score: number };

/**
 * How many serial senders bring submissions to the chain; Infinity: all are sent at once. With c senders in order, the n-th
 * submission begins when n - c have left. The number is the one with which the slots until finality are told best, by
 * likelihood.
 */
export class SenderCount {
  readonly #departures = new Float64Array(MEMORY);
  #departed = 0;
  readonly #candidates: Candidacy[] = [...CANDIDATES, Number.POSITIVE_INFINITY].map((count) => ({
    count,
    counts: new Float64Array(SLOTS + 1).fill(0.05),
    score: 0,
  }));
  #best: number;

  constructor(best = Number.POSITIVE_INFINITY) {
    this.#best = best;
  }

  get best(): number {
    return this.#best;
  }

  get departed(): number {
    return this.#departed;
  }

  get lastDepartureAt(): number {
    return this.#departed === 0
      ? Number.NEGATIVE_INFINITY
      : (this.#departures[(this.#departed - 1) % MEMORY] as number);
  }

  depart(at: number): void {
    this.#departures[this.#departed % MEMORY] = at;
    this.#departed++;
  }

  /** One that had not begun by all that was known is final: those before it must have begun, too. */
  catchUp(order: number, at: number): void {
    if (this.#best === Number.POSITIVE_INFINITY) return;
    while (this.#departed < order - this.#best) this.depart(at);
  }

  /** When the submission with this order began to be sent, if there are so many senders; null: not yet. */
  beganAt(order: number, trackedAt: number, senders = this.#best): number | null {
    const departure = order - senders - 1;
    if (departure < 0 || departure < this.#departed - MEMORY) return trackedAt;
    if (departure >= this.#departed) return null;
    return Math.max(trackedAt, this.#departures[departure % MEMORY] as number);
  }

  /** A submission was found final in this slot. Returns whether another number of senders is believed now. */
  learn(order: number, trackedAt: number, slot: number, slotOf: (time: number) => number, weight: number): boolean {
    let best: Candidacy | undefined;
    let current: Candidacy | undefined;
    for (const candidate of this.#candidates) {
      const began = this.beganAt(order, trackedAt, candidate.count);
      const k = began === null ? 0 : slot - slotOf(began);
      const { counts } = candidate;
      let sum = 0;
      for (const count of counts) sum += count;
      // Final before or as it began: that number of senders can tell nothing ahead.
      const told = k < 1 ? 0.01 : (counts[Math.min(SLOTS, k)] as number) / sum;
      candidate.score = KEEP ** weight * candidate.score + weight * Math.log(told);
      for (let i = 0; i <= SLOTS; i++) counts[i] = (counts[i] as number) * KEEP ** weight;
      if (k >= 1) counts[Math.min(SLOTS, k)] = (counts[Math.min(SLOTS, k)] as number) + weight;
      for (let i = 0; i <= SLOTS; i++) counts[i] = Math.max(0.02, counts[i] as number);
      if (!best || candidate.score >= best.score) best = candidate;
      if (candidate.count === this.#best) current = candidate;
    }
    if (!best || !current || best === current) return false;
    const all = this.#candidates.at(-1) as Candidacy;
    if (best.score < current.score + MARGIN) return false;
    // Only where it is told clearly better than by all at once.
    const chosen = best.score > all.score + MARGIN ? best : all;
    if (chosen.count === this.#best) return false;
    this.#best = chosen.count;
    return true;
  }
}

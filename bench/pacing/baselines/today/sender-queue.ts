import { Histogram } from './age-distribution.ts';
import type { Candidate } from './port.ts';
import type { Start } from './slot-model.ts';
import { SLOTS } from './slots-to-wait.ts';
import { type Cohort, WaitingLine } from './waiting-line.ts';

const CANDIDATES = [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 20, 24, 32, 48, Number.POSITIVE_INFINITY];
/** Number of departures whose times are stored. */
const MEMORY = 4_096;
/** Factor by which the weight of earlier evidence decays with each final submission. */
const KEEP = 0.97;
/** Minimum difference of the log-likelihoods (nats) for a change of the estimate. */
const MARGIN = 8;
/** Serial senders are dropped when they explain less than this much (nats) more. */
const RETAINED = 1;
/** Likelihood of a submission that is final before, by this number of senders, it was sent. */
const IMPOSSIBLE = 0.01;

/** `score`: decayed log-likelihood of the finals. `slots`: from sending to finality. */
type Candidacy = { count: number; slots: Histogram; score: number };

/**
 * Maximum-likelihood estimate of the number of serial senders, which wait for the finality of one
 * submission before the next; Infinity: all are sent at once. With c servers, number n begins after
 * n - c departures.
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

  /** Returns when submission number `order` was sent; null if it still waits. */
  beganAt(order: number, trackedAt: number, senders = this.#best): number | null {
    const departure = order - senders - 1;
    if (departure < 0 || departure < this.#departed - MEMORY) return trackedAt;
    if (departure >= this.#departed) return null;
    return Math.max(trackedAt, this.#departures[departure % MEMORY] as number);
  }

  /** Learns from a finality in this slot. Returns whether the estimate has changed. */
  learn(
    order: number,
    trackedAt: number,
    slot: number,
    slotOf: (time: number) => number,
    weight: number,
  ): boolean {
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
    const scoreOf = (count: number) =>
      this.#candidates.find((known) => known.count === count)?.score ?? -Infinity;
    const best = this.#candidates.reduce((a, b) => (b.score >= a.score ? b : a));
    const isRetained =
      this.#best === Infinity || scoreOf(this.#best) > scoreOf(Infinity) + RETAINED;
    if (isRetained && best.score < scoreOf(this.#best) + MARGIN) return false;
    // Serial senders are assumed only on clear evidence.
    const chosen = best.score > scoreOf(Infinity) + MARGIN ? best.count : Infinity;
    const isOther = chosen !== this.#best;
    this.#best = chosen;
    return isOther;
  }
}

/** A serial sender waits this long for finality, then sends the next submission. */
const TIMEOUT_MS = 120_000;
/**
 * A submission probably fails every time after failing for this time, several times while others
 * became final; after the longer time if there are no others.
 */
const FAILING = { forMs: 600_000, alone: 3, atMostMs: 1_800_000 };

type Requeued = {
  at: number;
  since: number;
  /** How often it failed while another one, queued after `comparedAt`, became final. */
  alone: number;
  /** When `alone` was last increased; at first, when it was tracked. */
  comparedAt: number;
};

/** Submissions wait for one of the upstream's senders, then for finality. Times are epoch ms. */
export class SenderQueue {
  readonly line = new WaitingLine();
  readonly count: SenderCount;
  readonly #requeued = new Map<Candidate, Requeued>();
  /** The latest time at which a submission was queued that has become final. */
  #finalQueuedAt = Number.NEGATIVE_INFINITY;

  constructor(senders: number | null = null) {
    this.count = new SenderCount(senders ?? Number.POSITIVE_INFINITY);
  }

  /** Estimated number of serial senders; null if all submissions are sent at once. */
  get senders(): number | null {
    return this.count.best === Number.POSITIVE_INFINITY ? null : this.count.best;
  }

  queuedAt(item: Candidate): number {
    return this.#requeued.get(item)?.at ?? item.trackedAt;
  }

  remove(item: Candidate, at: number): void {
    if (item.order === 0) return;
    this.line.remove(item);
    this.count.depart(at);
  }

  removeFinal(item: Candidate, at: number): void {
    this.#finalQueuedAt = Math.max(this.#finalQueuedAt, this.queuedAt(item));
    this.remove(item, at);
  }

  clearRequeue(item: Candidate): void {
    this.#requeued.delete(item);
  }

  /**
   * Moves a failed submission to the end, where the upstream sends it again. One that probably
   * fails every time is removed.
   */
  requeue(item: Candidate, at: number): void {
    const { trackedAt } = item;
    const failed = this.#requeued.get(item) ?? {
      at: trackedAt,
      since: at,
      alone: 0,
      comparedAt: trackedAt,
    };
    this.#requeued.set(item, failed);
    this.remove(item, at);
    if (this.#finalQueuedAt > failed.comparedAt) {
      failed.alone += 1;
      failed.comparedAt = at;
    }
    const failingMs = at - failed.since;
    if (
      failingMs > FAILING.atMostMs ||
      (failingMs > FAILING.forMs && failed.alone >= FAILING.alone)
    )
      return;
    failed.at = at;
    this.line.append(item);
  }

  /** Assigns the submissions that have been sent to cohorts, by their start, and yields them. */
  *begin(startOf: (beganAt: number) => Start): Generator<{ item: Candidate; cohort: Cohort }> {
    for (let item = this.line.next; item; item = this.line.next) {
      const beganAt = this.count.beganAt(item.order, this.queuedAt(item));
      if (beganAt === null) return;
      yield { item, cohort: this.line.begin(item, startOf(beganAt)) };
    }
  }

  /** Removes cohorts before `oldestSlot`; requeues or removes those whose sender timed out. */
  expire(oldestSlot: number, now: number): void {
    const { cohorts } = this.line;
    for (let cohort = cohorts[0]; cohort; cohort = this.line.cohorts[0]) {
      const isEmpty = cohort.size === 0 && this.line.cohorts.length > 1;
      if (!isEmpty && cohort.slot >= oldestSlot) break;
      for (const _ of this.line.dropOldest()) this.count.depart(now);
    }
    if (this.senders === null) return;
    for (let item = this.line.first; item && this.line.cohortOf(item); item = this.line.first) {
      const timeoutAt = (this.count.beganAt(item.order, this.queuedAt(item)) ?? now) + TIMEOUT_MS;
      if (now < timeoutAt) return;
      // A submission is requeued only once.
      if (this.#requeued.has(item)) this.remove(item, timeoutAt);
      else this.requeue(item, timeoutAt);
    }
  }
}

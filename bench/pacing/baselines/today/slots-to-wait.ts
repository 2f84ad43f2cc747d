import { Histogram } from './age-distribution.ts';

/** Slots for which the model covers a submission. Later polls follow the distribution of age. */
export const SLOTS = 24;
/** Number of phases: equal parts of a slot in which submissions begin to wait for finality. */
const PHASES = 40;
/** Counted from the slot in which the wait begins, which may be one before the first slot. */
const COLUMNS = SLOTS + 2;
export const WAIT_COUNTS = PHASES * COLUMNS;
/** The weight of an observation decays to 1/e after this number of final submissions. */
const MEMORY = 300;
/** Minimum number of phases on each side of the cut that belong to its edge. */
const EDGE = 3;
/** Weight of the evidence of other phases for a phase in the edge, by distance. */
const NEARNESS = [1, 0.3, 0.05];
/** Differences of entropy (nats) up to which cuts are equally good, and the present one stays. */
const AS_GOOD = 0.0005;
const HARDLY_BETTER = 0.01;
/**
 * The cut that is likely at first, and the cost of the least likely one (nats): finality, placed at
 * 0.3 slots, follows some seconds after a block.
 */
const LIKELY_CUT = { phase: 4, cost: 0.3 };
/** The chain has changed if this share (average) of finals was less likely than `unlikely`. */
const SURPRISE = { rate: 0.15, unlikely: 0.1, share: 0.45 };
/** Minimum weight of an observation for a new search of the cut. */
const CUT_WEIGHT = 0.5;
const LEAST_TOTAL = 1e-9;

/** By event number k: it waits for event k, or became final with it unseen. See `forward`. */
export type Wait = { waiting: Float64Array; unseen: Float64Array };

/** Probability that a slot had no event, and that an event comes after a phase. */
export type PastSlots = { none(slot: number): number; after(phase: number): number };

/**
 * The distribution of the number k of events (see slot-event.ts) from the start of a submission's
 * wait to its finality, with terms:
 *
 * - Phase: the part of a slot in which the submission began to wait. Cut: the phase from which on
 *   the wait counts from the next slot; on a chain, the time by which a submission must be sent to
 *   be part of the slot's block. It is learned as the phase that minimizes the entropy of k.
 * - Edge: the phases near the cut, where the first slot is uncertain. Zone: a phase in the edge
 *   (from 1), which has a distribution of its own; zone 0 is all other phases together.
 * - Hazard: the probability of becoming final with event k, given that the submission did not
 *   become final before.
 *
 * Slots without an event do not count for k, but are not observed directly. So the wait is a hidden
 * Markov model (Rabiner, Proc. IEEE 77, 1989). Positions are slot numbers with a fraction.
 */
export class SlotsToWait {
  readonly #counts: Histogram;
  readonly #zones = new Map<number, Float64Array>();
  #cut = 0;
  #edge = { first: -EDGE, end: EDGE };
  #surprise = 0;
  /** Probability that the chain has changed unnoticed. */
  #changeProbability = 0;

  constructor(counts: ArrayLike<number> = new Float64Array(WAIT_COUNTS)) {
    this.#counts = new Histogram(counts);
    this.#findCut();
  }

  get counts(): number[] {
    return [...this.#counts.weights];
  }

  slotOf(position: number): number {
    return Math.floor(position - this.#cut / PHASES) + 1;
  }

  zoneOf(position: number): number {
    const phase = phaseOf(position);
    return this.#isInEdge(phase) ? 1 + phase : 0;
  }

  /**
   * Forward algorithm over the slots from `start` to `until` (exclusive). Returns, by k, the
   * probability that it waits for event k, and that it became final with k after its last poll. Not
   * normalized.
   */
  forward(
    { slot: start, zone }: { slot: number; zone: number },
    openPosition: number,
    until: number,
    past: PastSlots,
  ): Wait {
    const hazards = this.hazards(zone);
    const waiting = new Float64Array(SLOTS + 1);
    const unseen = new Float64Array(SLOTS + 1);
    waiting[0] = 1;
    const openSlot = Math.floor(openPosition);
    for (let slot = start; slot < until; slot++) {
      const event = 1 - past.none(slot);
      const isUnseen =
        slot < openSlot ? 0 : slot > openSlot ? 1 : past.after(openPosition - openSlot);
      for (let k = Math.min(SLOTS, slot - start); k >= 0; k--) {
        const passed = event * (waiting[k] as number);
        const final = passed * (hazards[k] as number);
        const next = Math.min(SLOTS, k + 1);
        unseen[k] = (unseen[k] as number) + final * isUnseen;
        waiting[k] = (waiting[k] as number) - passed;
        waiting[next] = (waiting[next] as number) + passed - final;
      }
    }
    return { waiting, unseen };
  }

  setChangeProbability(probability: number): void {
    this.#changeProbability = probability;
    this.#zones.clear();
  }

  hazards(zone: number): Float64Array {
    const cached = this.#zones.get(zone);
    if (cached) return cached;
    let left = 1;
    const hazards = this.#slots(zone).map((learned, k) => {
      const p = learned + this.#changeProbability * ((COMMON.slots[k] as number) - learned);
      const hazard = Math.min(0.995, p / Math.max(1e-6, left));
      left -= p;
      return hazard;
    });
    hazards[SLOTS] = 0.05;
    this.#zones.set(zone, hazards);
    return hazards;
  }

  /** Learns that it became final with event k with probability `events[k]` (not normalized). */
  learn(position: number, events: Float64Array, weight: number): void {
    const sum = events.reduce((a, b) => a + b, 0);
    this.#counts.fade(1 - weight / MEMORY);
    if (!(sum > LEAST_TOTAL)) return;
    const slots = this.#slots(this.zoneOf(position));
    const likelihood = events.reduce((total, p, k) => total + (p / sum) * (slots[k] as number), 0);
    this.#surprise += SURPRISE.rate * ((likelihood < SURPRISE.unlikely ? 1 : 0) - this.#surprise);
    if (this.#surprise >= SURPRISE.share) {
      this.#surprise = SURPRISE.rate;
      this.#counts.fade(0.1);
    }
    const phase = phaseOf(position);
    const first = phase * COLUMNS + (phase >= this.#cut ? 1 : 0);
    for (const [k, p] of events.entries()) this.#counts.add(first + k, (weight * p) / sum);
    this.#zones.clear();
    // The first members of a group are enough to search the cut.
    if (weight >= CUT_WEIGHT) this.#findCut();
  }

  /** Returns the probability of finality with event k; the last element includes later ones. */
  #slots(zone: number): Float64Array {
    if (zone === 0)
      return this.#pool(COMMON, (phase) => (this.#isInEdge(phase) ? 0 : 1), this.#cut);
    const center = zone - 1;
    const distance = (phase: number) =>
      Math.round((center - phase) / PHASES) * PHASES + phase - center;
    const skipped = center >= this.#cut ? 1 : 0;
    // Near the cut, adjacent phases share the slot, not the number of events.
    const weightOf = (phase: number) => NEARNESS[Math.abs(distance(phase))] ?? 0;
    return this.#pool(
      IN_EDGE,
      weightOf,
      this.#cut,
      (phase) => skipped - Math.floor((center + distance(phase)) / PHASES),
    );
  }

  /** Returns the distribution of k over phases. `skippedOf`: slots of a phase before event 0. */
  #pool(
    prior: Prior,
    weightOf: (phase: number) => number,
    cut: number,
    skippedOf: (phase: number) => number = (phase) => (phase >= cut ? 1 : 0),
  ): Float64Array {
    const pooled = prior.slots.map((p) => prior.weight * p);
    const { weights } = this.#counts;
    let total = prior.weight;
    for (let phase = 0; phase < PHASES; phase++) {
      const weight = weightOf(phase);
      if (weight === 0) continue;
      const skipped = skippedOf(phase);
      for (let column = 0; column < COLUMNS; column++) {
        const count = weight * (weights[phase * COLUMNS + column] as number);
        if (count === 0) continue;
        const k = Math.min(SLOTS, Math.max(0, column - skipped));
        pooled[k] = (pooled[k] as number) + count;
        total += count;
      }
    }
    return pooled.map((count) => count / total);
  }

  #isInEdge(phase: number): boolean {
    return (phase - this.#edge.first + PHASES) % PHASES < this.#edge.end - this.#edge.first;
  }

  /** Sets the cut to the phase of least entropy, amid equally good ones, which are its edge. */
  #findCut(): void {
    this.#zones.clear();
    const entropies = Array.from({ length: PHASES }, (_, cut) =>
      entropyOf(this.#pool(COMMON, () => 1, cut)),
    );
    const costs = entropies.map((entropy, cut) => entropy + priorCostOf(cut));
    const best = costs.indexOf(Math.min(...costs));
    const isKept = (costs[this.#cut] as number) < (costs[best] as number) + HARDLY_BETTER;
    let first = isKept ? this.#cut : best;
    let last = first;
    const least = entropies[first] as number;
    const isAsGood = (cut: number) =>
      (entropies[(cut + PHASES) % PHASES] as number) < least + AS_GOOD;
    while (last - first < PHASES - 1 && isAsGood(last + 1)) last++;
    while (last - first < PHASES - 1 && isAsGood(first - 1)) first--;
    // While nothing is known, every cut is equally good, and only the prior decides.
    const isKnown = last - first < PHASES - 1;
    const cut = isKept ? this.#cut : isKnown ? Math.round((first + last) / 2) : best;
    this.#edge = { first: Math.min(first, cut - EDGE), end: Math.max(last, cut + EDGE) };
    this.#cut = (cut + PHASES) % PHASES;
  }
}

type Prior = { slots: Float64Array; weight: number };

/** Returns a geometric prior without zeros. `early`: probability of k = 0. */
function geometric(early: number): Float64Array {
  const slots = Float64Array.from(
    { length: SLOTS + 1 },
    (_, k) => (0.97 - early) * 0.45 * 0.55 ** (k - 1),
  );
  [slots[0], slots[SLOTS]] = [early, 0.03];
  return slots;
}

const COMMON: Prior = { slots: geometric(0.02), weight: 1.2 };
const IN_EDGE: Prior = { slots: geometric(0.15), weight: 0.6 };

function phaseOf(position: number): number {
  return Math.min(PHASES - 1, Math.floor((position - Math.floor(position)) * PHASES));
}

function priorCostOf(cut: number): number {
  return (LIKELY_CUT.cost * (1 - Math.cos((2 * Math.PI * (cut - LIKELY_CUT.phase)) / PHASES))) / 2;
}

function entropyOf(distribution: Float64Array): number {
  return distribution.reduce((sum, p) => sum - (p > 0 ? p * Math.log(p) : 0), 0);
}

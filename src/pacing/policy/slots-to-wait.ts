import { Histogram } from '../../stats/histogram.ts';

/** A submission is followed for so many slots; what takes longer is left to the distribution of age. */
export const SLOTS = 24;
/** Phases of a slot at which submissions may begin to wait. */
const PHASES = 40;
/** Slots counted from the one in which a submission begins to wait, which may be one more than from the next. */
const COLUMNS = SLOTS + 2;
export const WAIT_COUNTS = PHASES * COLUMNS;
/** Finals after which old evidence has faded to a third. */
const MEMORY = 300;
/** At least so many phases on each side of the cut are its edge. */
const EDGE = 3;
/** How much of its neighbors' evidence counts for a phase in the edge, by distance. */
const NEARNESS = [1, 0.3, 0.05];
/** Nothing tells two cuts apart whose entropies differ by less, or one is hardly better than the other (nats). */
const AS_GOOD = 0.0005;
const HARDLY_BETTER = 0.01;
/** Once this share of the newest finals was believed less likely than that, the chain has changed. */
const SURPRISE = { rate: 0.15, unlikely: 0.1, share: 0.45 };
/** Finals that count for so much show where the cut is. */
const CUT_WEIGHT = 0.5;
const LEAST_TOTAL = 1e-9;

/** In how many events a submission may have become final, and how likely it is to wait for each: see `forward`. */
export type Wait = { waiting: Float64Array; unseen: Float64Array };

/** What is known of the slots between: the probability that one had no event, and of an event after a phase of its slot. */
export type PastSlots = { none(slot: number): number; after(phase: number): number };

/**
 * How many slots a submission waits for the event that makes it final, counted from the cut: the phase of a slot from which
 * on one counts as waiting for the next. A histogram, of all phases together but near the cut, where each phase has its own.
 * Slots without event are waited through: a hidden Markov model (Rabiner, Proc. IEEE 77, 1989).
 */
export class SlotsToWait {
  readonly #counts: Histogram;
  readonly #zones = new Map<number, Float64Array>();
  #cut = 0;
  #edge = { first: -EDGE, end: EDGE };
  #surprise = 0;

  constructor(counts: ArrayLike<number> = new Float64Array(WAIT_COUNTS)) {
    this.#counts = new Histogram(counts);
    this.#findCut();
  }

  get counts(): number[] {
    return [...this.#counts.weights];
  }

  /** The slot from which one counts that begins to wait at this position. */
  slotOf(position: number): number {
    return Math.floor(position - this.#cut / PHASES) + 1;
  }

  /** 0: it is clear from which slot it counts. Else its phase, in the edge of the cut, from 1. */
  zoneOf(position: number): number {
    const phase = phaseOf(position);
    return this.#isInEdge(phase) ? 1 + phase : 0;
  }

  /**
   * The forward algorithm over the slots from the one in which a submission of this zone began to wait, to `until`: how likely it
   * is that it now waits for its event number k (`waiting`), and that it was final with that and nobody looked (`unseen`),
   * if it was open at `openPosition`. Not normalized.
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
      const isUnseen = slot < openSlot ? 0 : slot > openSlot ? 1 : past.after(openPosition - openSlot);
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

  /** Probability of becoming final in event k, if it was not before. */
  hazards(zone: number): Float64Array {
    const known = this.#zones.get(zone);
    if (known) return known;
    let left = 1;
    const hazards = this.#slots(zone).map((p) => {
      const hazard = Math.min(0.995, p / Math.max(1e-6, left));
      left -= p;
      return hazard;
    });
    hazards[SLOTS] = 0.05;
    this.#zones.set(zone, hazards);
    return hazards;
  }

  /**
   * Learns from a submission that began to wait at `position` and became final in its event number k with the probability
   * `events[k]`, not normalized. Returns whether the chain has probably changed.
   */
  learn(position: number, events: Float64Array, weight: number): boolean {
    const sum = events.reduce((a, b) => a + b, 0);
    this.#counts.fade(1 - weight / MEMORY);
    if (!(sum > LEAST_TOTAL)) return false;
    const slots = this.#slots(this.zoneOf(position));
    const likelihood = events.reduce((total, p, k) => total + (p / sum) * (slots[k] as number), 0);
    this.#surprise += SURPRISE.rate * ((likelihood < SURPRISE.unlikely ? 1 : 0) - this.#surprise);
    const isOther = this.#surprise >= SURPRISE.share;
    if (isOther) {
      this.#surprise = SURPRISE.rate;
      this.#counts.fade(0.1);
    }
    const phase = phaseOf(position);
    const first = phase * COLUMNS + (phase >= this.#cut ? 1 : 0);
    for (const [k, p] of events.entries()) this.#counts.add(first + k, (weight * p) / sum);
    this.#zones.clear();
    // A group says no more of the cut with all its members.
    if (weight >= CUT_WEIGHT) this.#findCut();
    return isOther;
  }

  /** Probability of becoming final in event k, for k from 0 to SLOTS; the last is for all later ones. */
  #slots(zone: number): Float64Array {
    if (zone === 0) return this.#pool(this.#cut, (phase) => (this.#isInEdge(phase) ? 0 : 1), COMMON);
    const distance = (phase: number) => Math.abs(((phase - (zone - 1) + 1.5 * PHASES) % PHASES) - PHASES / 2);
    return this.#pool(this.#cut, (phase) => NEARNESS[distance(phase)] ?? 0, IN_EDGE);
  }

  /** The distribution over all phases, each with a weight, as it is if the cut is there. */
  #pool(cut: number, weightOf: (phase: number) => number, prior: Prior): Float64Array {
    const pooled = prior.slots.map((p) => prior.weight * p);
    let total = prior.weight;
    for (let phase = 0; phase < PHASES; phase++) {
      const weight = weightOf(phase);
      if (weight === 0) continue;
      for (let column = 0; column < COLUMNS; column++) {
        const k = Math.min(SLOTS, Math.max(0, column - (phase >= cut ? 1 : 0)));
        const count = weight * (this.#counts.weights[phase * COLUMNS + column] as number);
        pooled[k] = (pooled[k] as number) + count;
        total += count;
      }
    }
    return pooled.map((count) => count / total);
  }

  #isInEdge(phase: number): boolean {
    return (phase - this.#edge.first + PHASES) % PHASES < this.#edge.end - this.#edge.first;
  }

  /** The cut with which the slots to wait have the least entropy, in the middle of those as good, which are its edge. */
  #findCut(): void {
    this.#zones.clear();
    const entropies = Array.from({ length: PHASES }, (_, cut) => entropyOf(this.#pool(cut, () => 1, COMMON)));
    const least = Math.min(...entropies);
    const isWithin = (cut: number, by: number) => (entropies[(cut + PHASES) % PHASES] as number) < least + by;
    const isKept = isWithin(this.#cut, HARDLY_BETTER);
    let first = isKept ? this.#cut : entropies.indexOf(least);
    let last = first;
    while (last - first < PHASES - 1 && isWithin(last + 1, AS_GOOD)) last++;
    while (last - first < PHASES - 1 && isWithin(first - 1, AS_GOOD)) first--;
    const cut = isKept ? this.#cut : Math.round((first + last) / 2);
    this.#edge = { first: Math.min(first, cut - EDGE), end: Math.max(last, cut + EDGE) };
    this.#cut = (cut + PHASES) % PHASES;
  }
}

type Prior = { slots: Float64Array; weight: number };

/** Geometric, where no number of slots is impossible; `early`: probability of the slot that began before. */
function geometric(early: number): Float64Array {
  const slots = Float64Array.from({ length: SLOTS + 1 }, (_, k) => (0.97 - early) * 0.45 * 0.55 ** (k - 1));
  [slots[0], slots[SLOTS]] = [early, 0.03];
  return slots;
}

const COMMON: Prior = { slots: geometric(0.02), weight: 1.2 };
const IN_EDGE: Prior = { slots: geometric(0.15), weight: 0.6 };

function phaseOf(position: number): number {
  return Math.min(PHASES - 1, Math.floor((position - Math.floor(position)) * PHASES));
}

function entropyOf(distribution: Float64Array): number {
  return distribution.reduce((sum, p) => sum - (p > 0 ? p * Math.log(p) : 0), 0);
}

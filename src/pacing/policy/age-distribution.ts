import { checkingSchedule } from './checking-schedule.ts';

/** Grid of ages: geometric, 0.1 s to about 11 days. */
const CELLS = 240;
export const AGE_CELLS = CELLS;
const FIRST_MS = 100;
const RATIO = 1.0697;
/** Weight of the initial belief, in submissions. */
const PRIOR_WEIGHT = 3;
/** Observations remembered: each new one lets the old ones fade by 1/MEMORY. */
const MEMORY = 200;
const LEARNED_PER_SCHEDULE = 0.1;
/** From so many observations on, this share of each is believed to be anywhere within so many cells. */
const SPREAD = { from: 30, share: 0.3, reach: 6 };

const EDGES = Float64Array.from({ length: CELLS + 1 }, (_, i) => (i === 0 ? 0 : FIRST_MS * RATIO ** (i - 1)));
const WIDTHS_S = Float64Array.from(
  { length: CELLS },
  (_, i) => ((EDGES[i + 1] as number) - (EDGES[i] as number)) / 1_000,
);

/**
 * The distribution of the age at which a submission becomes final, as a histogram on a geometric grid. Intervals are spread
 * over the grid in proportion to what is already believed there (the self-consistency of Turnbull, J. R. Stat. Soc. B 38,
 * 1976), and old observations fade exponentially.
 */
export class AgeDistribution {
  #weights: Float64Array;
  #observed: number;
  readonly #schedules = new Map<number, Int32Array>();
  #changes = 0;
  readonly #pricePerS: number;

  constructor(pricePerS: number, learned?: { weights: ArrayLike<number>; observed: number }) {
    this.#pricePerS = pricePerS;
    this.#weights = learned ? Float64Array.from(learned.weights) : initialBelief();
    this.#observed = learned?.observed ?? 0;
  }

  get weights(): Float64Array {
    return this.#weights;
  }

  get observed(): number {
    return this.#observed;
  }

  /** Became final at an age in (fromMs, untilMs]. */
  learn(fromMs: number, untilMs: number): void {
    const first = cellOf(Math.max(0, fromMs));
    const last = cellOf(Math.max(0, untilMs - 1e-6));
    const weights = this.#weights;
    let sum = 0;
    for (let i = first; i <= last; i++) sum += weights[i] as number;
    const keep = 1 - 1 / MEMORY;
    for (let i = 0; i < CELLS; i++) weights[i] = (weights[i] as number) * keep;
    for (let i = first; i <= last; i++)
      weights[i] = (weights[i] as number) + (sum > 0 ? (weights[i] as number) / keep / sum : 1 / (last - first + 1));
    // Cells are never impossible: a change of the chain must be seen.
    const floor = 0.02 / CELLS;
    for (let i = 0; i < CELLS; i++) weights[i] = Math.max(weights[i] as number, floor);
    this.#observed++;
    this.#changes++;
  }

  /** Old evidence loses weight: the distribution has changed. */
  forget(): void {
    let total = 0;
    for (const weight of this.#weights) total += weight;
    const prior = initialBelief();
    const keep = Math.min(1, 6 / total);
    this.#weights = this.#weights.map((weight, i) => weight * keep + (prior[i] as number));
    this.#changes += 100;
  }

  /** The age of the next poll if the submission was open at `ageMs`. */
  nextAgeMs(ageMs: number, weight = 1): number {
    const next = this.#schedule(weight);
    const cell = cellOf(Math.max(0, ageMs));
    const to = next[cell] as number;
    const at = to < 0 || to > CELLS ? (EDGES[CELLS] as number) : (EDGES[to] as number);
    // Within a cell the wait shrinks with the remaining distance.
    return Math.max(at, ageMs * 1.01 + 50);
  }

  /** As a curve over age. */
  curve(): { afterMs: number; probability: number }[] {
    const curve = [{ afterMs: 0, probability: 0 }];
    for (const [i, probability] of this.cdf().entries()) {
      curve.push({ afterMs: EDGES[i + 1] as number, probability });
      if (probability > 0.995) break;
    }
    return curve;
  }

  get medianMs(): number {
    return EDGES[this.cdf().findIndex((probability) => probability >= 0.5) + 1] as number;
  }

  /** Probability of being final by each age of `EDGES`, from the second on. */
  cdf(): Float64Array {
    return cumulative(this.#weights);
  }

  #schedule(weight: number): Int32Array {
    if (this.#changes > LEARNED_PER_SCHEDULE * this.#observed) {
      this.#changes = 0;
      this.#schedules.clear();
    }
    let schedule = this.#schedules.get(weight);
    if (!schedule) {
      const price = this.#pricePerS * weight;
      schedule = checkingSchedule({
        cdf: cumulative(this.#observed < SPREAD.from ? this.#weights : smooth(this.#weights)),
        widths: WIDTHS_S,
        from: 0,
        price,
        endLag: 0,
      });
      this.#schedules.set(weight, schedule);
    }
    return schedule;
  }
}

function cumulative(weights: Float64Array): Float64Array {
  let total = 0;
  for (const weight of weights) total += weight;
  let sum = 0;
  return weights.map((weight) => {
    sum += weight;
    return sum / total;
  });
}

/** A few hundred observations leave gaps by chance: a share of each is spread over the ages around it. */
function smooth(weights: Float64Array): Float64Array {
  const smoothed = weights.map((weight) => (1 - SPREAD.share) * weight);
  for (let i = 0; i < CELLS; i++) {
    const first = Math.max(0, i - SPREAD.reach);
    const last = Math.min(CELLS - 1, i + SPREAD.reach);
    const each = (SPREAD.share * (weights[i] as number)) / (last - first + 1);
    for (let j = first; j <= last; j++) smoothed[j] = (smoothed[j] as number) + each;
  }
  return smoothed;
}

function cellOf(ageMs: number): number {
  if (ageMs < FIRST_MS) return 0;
  return Math.min(CELLS - 1, 1 + Math.floor(Math.log(ageMs / FIRST_MS) / Math.log(RATIO)));
}

/** Any order of magnitude is as likely as any other, with half of the belief around what public chains need. */
function initialBelief(): Float64Array {
  const weights = new Float64Array(CELLS);
  let sum = 0;
  for (let i = 0; i < CELLS; i++) {
    const s = (EDGES[i + 1] as number) / 1_000;
    const usual = Math.exp(-0.5 * (Math.log(s / 33) / 0.35) ** 2) * 0.085;
    const any = s < 3_600 ? 1 / 155 : (1 / 155) * (3_600 / s) ** 0.5;
    weights[i] = 0.7 * usual + 0.3 * any;
    sum += weights[i] as number;
  }
  return weights.map((weight) => (PRIOR_WEIGHT * weight) / sum);
}

import { Histogram } from './distribution.ts';

/** Cells of a slot, and of the delay of a row after its event. */
export const CELLS = 200;
export const DELAYS = 100;
/** Slots whose polls are stored; weight of each relative to the next; polls of each. */
const STORED = { slots: 40, fade: 0.96, polls: 64 };
/** Weight of the prior, in slots. */
const PRIOR_WEIGHT = 0.3;
/** Passes of the estimate for each slot. */
const ROUNDS = 4;
/** Share of rows that are later than all that were seen. */
const LATE = 0.003;
/** Share of events that come at any time of a slot. */
const ANY_TIME = 0.03;
/** Cached results change when this much probability has moved. */
const MOVED = 0.003;

/**
 * A poll in cell `at` of a submission that was final before the slot, or is final with its event,
 * with these probabilities. `since`: cell of its newest poll before; -1: none in this slot.
 */
export type Sighting = {
  before: number;
  within: number;
  since: number;
  at: number;
  isFinal: boolean;
};

type Slot = { sightings: readonly Sighting[]; announced: number | null };

/**
 * The time of events within a slot, and the delay of a row after its event; both are learned from
 * polls by expectation and maximization, because inferred events are not observed (Silverman et
 * al., J. R. Stat. Soc. B 52, 1990).
 */
export class EventTimes {
  event: Float64Array;
  delay: Float64Array;
  delayCdf: Float64Array;
  readonly #slots: Slot[] = [];

  constructor(state?: { event: readonly number[]; delay: readonly number[] }) {
    this.event = Float64Array.from(state?.event ?? FIRST_EVENT);
    this.delay = Float64Array.from(state?.delay ?? FIRST_DELAY);
    this.delayCdf = this.#cdf();
  }

  /** Learns from the polls of a slot. `announced`: cell of the slot in which the event was. */
  learn(sightings: readonly Sighting[], announced: number | null): void {
    this.#slots.push({ sightings, announced });
    if (this.#slots.length > STORED.slots) this.#slots.shift();
    for (let round = 0; round < ROUNDS; round++) this.#estimate();
  }

  #estimate(): void {
    const event = new Histogram(FIRST_EVENT.map((p) => PRIOR_WEIGHT * p));
    const delay = new Histogram(FIRST_DELAY.map((p) => PRIOR_WEIGHT * p));
    let weight = 1;
    for (const { sightings, announced } of this.#slots.toReversed()) {
      const window = new EventWindow({ slot: 0, origin: 0, cellMs: 1, none: 0.04 }, this);
      if (announced !== null) window.announce(0);
      for (const sighting of sightings) window.observe(sighting);
      if (announced !== null) event.add(announced, weight);
      else
        for (let cell = 0; cell < CELLS; cell++)
          event.add(cell, weight * (window.posterior[cell] as number));
      for (const { before, since, at, isFinal } of sightings) {
        if (!isFinal || before > 0.2) continue;
        for (let cell = 0; cell <= at; cell++) {
          const p = weight * (window.posterior[cell] as number);
          const first = Math.max(0, since + 1 - cell);
          if (p > 1e-4 && first < DELAYS)
            delay.addBetween(first, Math.min(DELAYS - 1, at - cell), p, this.delay);
        }
      }
      weight *= STORED.fade;
    }
    // A delay that all rows share belongs to the event, unless that is announced.
    const isInferred = this.#slots.every(({ announced }) => announced === null);
    const lead = isInferred ? delay.cdf().findIndex((p) => p >= 0.05) : 0;
    this.event = shifted(event, -lead);
    this.delay = shifted(delay, lead);
    this.delayCdf = this.#cdf();
  }

  #cdf(): Float64Array {
    return new Histogram(this.delay).cdf().map((p) => (1 - LATE) * p);
  }
}

/**
 * The probability distribution of one event by cells of its slot, from `origin` on. The last
 * element of the posterior is the probability that the slot has none.
 */
export class EventWindow {
  readonly slot: number;
  readonly origin: number;
  readonly cellMs: number;
  readonly posterior = new Float64Array(CELLS + 1);
  readonly sightings: Sighting[] = [];
  /** Number up to which blocks are final with the event; null: it has not been seen. */
  number: number | null = null;
  isExact = false;
  /** Whether a submission has been polled that was likely to be final with the event. */
  isInformed = false;
  /** Announced: whether a row of its blocks was found final, and one open. */
  hasFinal = false;
  hasOpen = false;
  /** Increases when results change. */
  version = 0;
  readonly #times: EventTimes;
  #mean: Float64Array | null = null;
  #moved = 0;

  constructor(
    { slot, origin, cellMs, none }: { slot: number; origin: number; cellMs: number; none: number },
    times: EventTimes,
  ) {
    [this.slot, this.origin, this.cellMs, this.#times] = [slot, origin, cellMs, times];
    for (let cell = 0; cell < CELLS; cell++)
      this.posterior[cell] =
        (1 - none) * ((1 - ANY_TIME) * (times.event[cell] as number) + ANY_TIME / CELLS);
    this.posterior[CELLS] = none;
  }

  get none(): number {
    return this.posterior[CELLS] as number;
  }

  announce(number: number): void {
    this.posterior.fill(0);
    this.posterior[0] = 1;
    [this.isExact, this.number, this.#mean] = [true, number, null];
    this.version++;
  }

  /** Returns the last cell that is over at a time, to the nearest end; -1: none. */
  cellAt(time: number): number {
    const cell = Math.round((time - this.origin) / this.cellMs) - 1;
    return Math.max(-1, Math.min(CELLS - 1, cell));
  }

  timeOf(cell: number): number {
    return this.origin + cell * this.cellMs;
  }

  /** Probability that a row of the event is final by the end of each cell. */
  get mean(): Float64Array {
    if (this.#mean) return this.#mean;
    const mean = new Float64Array(CELLS);
    for (let event = 0; event < CELLS; event++) {
      const p = this.posterior[event] as number;
      if (p < 1e-5) continue;
      for (let cell = event; cell < CELLS; cell++)
        mean[cell] = (mean[cell] as number) + p * this.#rowBy(cell - event);
    }
    this.#mean = mean;
    return mean;
  }

  /** Probability that a row of the event is final at a time. */
  meanAt(time: number): number {
    const cell = this.cellAt(time);
    return cell < 0 ? 0 : (this.mean[cell] as number);
  }

  /** Returns the expected time (ms) since finality, if it was in (openAt, at]. */
  lagMs(openAt: number, at: number): number {
    const [since, cell] = [this.cellAt(openAt), this.cellAt(at)];
    const before = this.meanAt(openAt);
    const found = this.meanAt(at) - before;
    if (found < 1e-6) return (at - openAt) / 2;
    let lag = 0;
    for (let i = since + 1; i <= cell; i++) lag += (this.mean[i] as number) - before;
    const later = Math.max(0, at - this.timeOf(CELLS));
    return Math.min(at - openAt, (lag / found) * this.cellMs + later);
  }

  /** Returns the time by which the event has happened with this probability, if there is one. */
  quantile(share: number): number {
    let cell = 0;
    for (let sum = 0; cell < CELLS && sum < share * (1 - this.none); cell++)
      sum += this.posterior[cell] as number;
    return this.timeOf(cell);
  }

  /** Updates the event by Bayes' rule. `isSample`: it is stored, to learn from the slot. */
  observe(sighting: Sighting, isSample = true): void {
    const { within, since, at, isFinal } = sighting;
    if (isSample && this.sightings.length < STORED.polls) this.sightings.push(sighting);
    if (within > 0.3) this.isInformed = true;
    if (this.isExact) return;
    const { posterior } = this;
    const before = posterior.slice();
    let sum = 0;
    for (let event = 0; event <= CELLS; event++) {
      const open =
        (1 - this.#finalBy(at, event, sighting)) / (1 - this.#finalBy(since, event, sighting));
      posterior[event] = (posterior[event] as number) * Math.max(1e-6, isFinal ? 1 - open : open);
      sum += posterior[event] as number;
    }
    for (let event = 0; event <= CELLS; event++) {
      posterior[event] = (posterior[event] as number) / sum;
      this.#moved += Math.abs((posterior[event] as number) - (before[event] as number));
    }
    if (this.#moved < MOVED) return;
    this.#moved = 0;
    this.#mean = null;
    this.version++;
  }

  /** The event is less likely by this factor. */
  weaken(factor: number): void {
    const scale = factor / Math.max(1e-6, this.none + (1 - this.none) * factor);
    for (let cell = 0; cell < CELLS; cell++)
      this.posterior[cell] = (this.posterior[cell] as number) * scale;
    this.posterior[CELLS] = 1 - this.posterior.subarray(0, CELLS).reduce((a, b) => a + b, 0);
    this.#mean = null;
  }

  #finalBy(at: number, event: number, { before, within }: Sighting): number {
    if (at < 0) return 0;
    return Math.min(1 - 1e-6, before + (event < CELLS ? within * this.#rowBy(at - event) : 0));
  }

  #rowBy(cells: number): number {
    return cells < 0 ? 0 : (this.#times.delayCdf[Math.min(DELAYS - 1, cells)] as number);
  }
}

/** Smoothed, normalized, and `cells` later. */
function shifted(histogram: Histogram, cells: number): Float64Array {
  const { weights } = histogram.smoothed(0.75, 1);
  const last = weights.length - 1;
  return normalized(
    weights.map((_, cell) => weights[Math.max(0, Math.min(last, cell + cells))] as number),
  );
}

function normalized(weights: Float64Array): Float64Array {
  const sum = weights.reduce((a, b) => a + b, 0);
  return weights.map((weight) => weight / sum);
}

/** Around the mean time of the events, which the clock places at LEAD. */
const FIRST_EVENT = normalized(
  Float64Array.from(
    { length: CELLS },
    (_, cell) => 0.5 + 3 * Math.exp(-0.5 * (((cell + 0.5) / CELLS - 0.28) / 0.12) ** 2),
  ),
);
const FIRST_DELAY = normalized(
  Float64Array.from({ length: DELAYS }, (_, cell) => Math.exp(-cell / 10) + 0.01),
);

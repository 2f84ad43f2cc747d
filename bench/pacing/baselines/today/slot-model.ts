import { Histogram } from './age-distribution.ts';
import { nextCheck } from './checking-schedule.ts';
import type { SlotClock } from './slot-clock.ts';
import {
  CELLS,
  DELAYS,
  type Prospect,
  SlotEvent,
  type SlotObservation,
  type SlotPrior,
} from './slot-event.ts';
import { SLOTS, SlotsToWait, type Wait } from './slots-to-wait.ts';

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
 * The time of a slot's event and the delay of a submission after it, estimated by expectation and
 * maximization with smoothing (Silverman et al., J. R. Stat. Soc. B 52, 1990), because events are
 * not observed.
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

  slot(slot: number): SlotEvent {
    return new SlotEvent(slot, this.#prior());
  }

  /** Learns from the observations of one slot. `none`: probability that the slot had no event. */
  learn(observations: readonly SlotObservation[], none: number): void {
    this.#empty += EMPTY.rate * (none - this.#empty);
    this.#store([observations]);
    this.#expectAndMaximize();
  }

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
      for (let cell = 0; cell < CELLS; cell++)
        event.add(cell, weight * (slot.posterior[cell] as number));
      this.#expectDelays(slot, delay, weight);
    }
    // A delay that all members share belongs to the event.
    const lead = delay.cdf().findIndex((p) => p >= 0.05);
    this.#event = smoothed(event, -lead);
    this.#delay = smoothed(delay, lead);
  }

  /** Adds the delays after the event, each spread over the interval in which it was observed. */
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
  return normalized(
    weights.map((_, cell) => weights[Math.max(0, Math.min(last, cell + shift))] as number),
  );
}

function normalized(weights: ArrayLike<number>): Float64Array {
  const { total } = new Histogram(weights);
  return Float64Array.from(weights, (weight) => weight / total);
}

/** Centered on the mean time of the events, which SlotClock places at 0.3 slots. */
const INITIAL_EVENT = normalized(
  Array.from(
    { length: CELLS },
    (_, cell) => 0.5 + 3 * Math.exp(-0.5 * (((cell + 0.5) / CELLS - 0.28) / 0.12) ** 2),
  ),
);
const INITIAL_DELAY = normalized(
  Array.from({ length: DELAYS }, (_, cell) => Math.exp(-cell / 10) + 0.01),
);

/** The first slot of a submission's wait, and its zone (see slots-to-wait.ts). */
export type Start = { slot: number; zone: number };

/** `openAt`: newest time at which a poll found it open, epoch ms; -Infinity if never polled. */
export type Waiting = { start: Start; openAt: number };

export type SlotModelState = EventDistributionState & { counts: number[] };

/** Probability that the chain changes in a slot. */
const CHANGE_RATE = 1 / 5_000;
/** A slot in which the probability of becoming final is lower is skipped. */
const MIN_PROBABILITY = 0.002;
/** A lower probability of being final is an error of rounding. */
const LEAST_FOUND = 1e-6;
/** Assumed further lag, in slots, of a submission that was not found in its slot. */
const END_LAG = 0.9;

/**
 * Finality on a chain with slots: the slots of the wait (slots-to-wait.ts), the event of the slot
 * (slot-event.ts) and the delay after it (EventDistribution). `advance` learns from each slot.
 * Times are epoch ms.
 */
export class SlotModel {
  readonly #clock: SlotClock;
  readonly #events: EventDistribution;
  readonly #waits: SlotsToWait;
  #current: SlotEvent;
  #unobserved: SlotEvent;
  #eventCdf: Float64Array | null = null;
  /** Probability that there was no event, for each of the last slots. */
  readonly #none = new Map<number, number>();
  readonly #plans = new Map<string, number>();
  readonly #prospects = new Map<string, Prospect>();
  /**
   * Shiryaev-Roberts statistic (Theory Probab. Appl. 8, 1963) of submissions becoming final in
   * earlier slots: polls then find all of them final.
   */
  #earlier = 0;

  constructor(clock: SlotClock, state?: SlotModelState) {
    this.#clock = clock;
    this.#events = new EventDistribution(state);
    this.#waits = new SlotsToWait(state?.counts);
    // The first estimate uses the events from which the slot time was found.
    if (!state) this.#events.learnAll(clock.events.map((event) => [this.#observationOf(event)]));
    this.#current = this.#unobserved = this.#events.slot(Number.NEGATIVE_INFINITY);
  }

  get state(): SlotModelState {
    return { ...this.#events.state, counts: this.#waits.counts };
  }

  get periodMs(): number {
    return this.#clock.state?.periodMs ?? 0;
  }

  /** Probability of a slot without an event. */
  get empty(): number {
    return this.#events.empty;
  }

  /** Submissions whose wait began in an earlier slot are no longer covered. */
  get oldestSlot(): number {
    return this.#current.slot - SLOTS;
  }

  slotAt(time: number): number {
    return Math.floor(this.#clock.position(time));
  }

  /** Returns the start of the slot that contains `time`. */
  beginOf(time: number): number {
    return this.timeOf(this.slotAt(time), 0);
  }

  timeOf(slot: number, cell: number): number {
    return this.#clock.timeOf(slot + cell / CELLS);
  }

  isSearched(now: number): boolean {
    return !this.#current.hasHappenedBy(this.#cellOf(now, this.#current.slot));
  }

  startOf(time: number): Start {
    const position = this.#clock.position(time);
    return { slot: this.#waits.slotOf(position), zone: this.#waits.zoneOf(position) };
  }

  /** Advances to the current slot. Returns whether it is new; then the previous one was learned. */
  advance(now: number): boolean {
    const slot = this.slotAt(now);
    if (this.#current.slot === slot) return false;
    if (this.#current.isInformed) {
      this.#events.learn(this.#current.observations, this.#current.none);
      this.#none.set(this.#current.slot, this.#current.none);
    }
    for (const old of this.#none.keys())
      if (old < slot - SLOTS || old > slot) this.#none.delete(old);
    this.#waits.setChangeProbability(1 - 1 / (1 + CHANGE_RATE * this.#earlier));
    this.#current = this.#events.slot(slot);
    this.#unobserved = this.#events.slot(Number.NEGATIVE_INFINITY);
    this.#eventCdf = null;
    this.#discardResults();
    return true;
  }

  observeOpen(waiting: Waiting, at: number): void {
    const { slot } = this.#current;
    const since = this.#since(waiting, slot);
    const cell = this.#cellOf(at, slot);
    if (cell < 0) return;
    this.#reviseLast(waiting, null);
    this.#earlier = 0;
    this.#observe({
      prospect: this.prospect(waiting, slot),
      since,
      at: Math.max(since, cell),
      isFinal: false,
    });
  }

  /** Learns from a finality. Returns whether it first shows that the event has happened. */
  observeFinal(waiting: Waiting, foundAt: number, at: number): boolean {
    const { slot } = this.#current;
    if (this.slotAt(foundAt) !== slot) return false;
    const cell = Math.max(0, this.#cellOf(at, slot));
    const hadHappened = this.#current.hasHappenedBy(cell);
    const since = this.#since(waiting, slot);
    const prospect = this.prospect(waiting, slot);
    if (this.#current.observations.length === 0)
      this.#earlier = (1 + this.#earlier) / Math.max(0.05, this.foundBy(waiting, at));
    if (foundAt === at)
      this.#reviseLast(waiting, this.#current.cdf({ ...prospect, before: 0 }, -1)[cell] as number);
    this.#observe({ prospect, since, at: cell, isFinal: true });
    return !hadHappened && this.#current.hasHappenedBy(cell);
  }

  /** Learns a wait in slots. `isExact`: it became final in `slot`, not in an earlier one. */
  learnWait(beganAt: number, openAt: number, slot: number, isExact: boolean, weight: number): void {
    const start = this.startOf(beganAt);
    const { waiting, unseen } = this.#wait({ start, openAt }, slot);
    const hazards = this.#waits.hazards(start.zone);
    const events = waiting.map(
      (p, k) => p * (hazards[k] as number) + (isExact ? 0 : (unseen[k] as number)),
    );
    this.#waits.learn(this.#clock.position(beganAt), events, weight);
    this.#discardResults();
  }

  /** Returns the state of a submission at the start of a slot. */
  prospect(waiting: Waiting, slot: number): Prospect {
    const { start, openAt } = waiting;
    const key = `${start.slot} ${start.zone} ${openAt} ${slot}`;
    const cached = this.#prospects.get(key);
    if (cached) return cached;
    const prospect = this.#prospectOf(waiting, slot);
    this.#prospects.set(key, prospect);
    return prospect;
  }

  #prospectOf(waiting: Waiting, slot: number): Prospect {
    const hazards = this.#waits.hazards(waiting.start.zone);
    const wait = this.#wait(waiting, slot);
    const open = sum(wait.waiting);
    const before = sum(wait.unseen);
    const within = sum(wait.waiting.map((p, k) => p * (hazards[k] as number)));
    const total = Math.max(Number.MIN_VALUE, open + before);
    const isEarlier = slot < waiting.start.slot;
    return {
      before: before / total,
      within: isEarlier ? 0 : Math.max(0, Math.min(within / total, 0.999 - before / total)),
    };
  }

  /** Returns the probability of being final by the end of each cell, given the polls so far. */
  cdf(waiting: Waiting, slot: number): Float64Array {
    const event = slot === this.#current.slot ? this.#current : this.#unobserved;
    return event.cdf(this.prospect(waiting, slot), this.#since(waiting, slot));
  }

  /** The same for a submission that becomes final with the event of a slot without observations. */
  eventCdf(): Float64Array {
    this.#eventCdf ??= this.#unobserved.cdf({ before: 0, within: 1 }, -1);
    return this.#eventCdf;
  }

  foundBy(waiting: Waiting, now: number): number {
    const { slot } = this.#current;
    return this.cdf(waiting, slot)[this.#cellOf(now, slot)] ?? 0;
  }

  /** Returns the expected time (ms) since finality. `isOfSlot`: with the event of this slot. */
  lagMs(waiting: Waiting, now: number, isOfSlot: boolean): number {
    const { slot } = this.#current;
    const prospect = isOfSlot ? { before: 0, within: 1 } : this.prospect(waiting, slot);
    const since = this.#since(waiting, slot);
    const cdf = this.#current.cdf(prospect, since).subarray(0, this.#cellOf(now, slot) + 1);
    const found = cdf.at(-1) ?? 0;
    if (found < LEAST_FOUND) return 0;
    let slots = (sum(cdf) - found / 2) / CELLS;
    const afterEvent = sum(this.eventCdf()) / CELLS;
    let { before } = prospect;
    for (let past = slot - 1; before > LEAST_FOUND && past >= waiting.start.slot; past--) {
      const earlier = this.prospect(waiting, past).before;
      slots += earlier + (before - earlier) * afterEvent;
      before = earlier;
    }
    return (slots / found) * this.periodMs;
  }

  /**
   * Returns the next poll time; null: none. Prices per second of lag, until and after the event.
   */
  nextPollAt(
    waiting: Waiting,
    prices: { own: number; search: (slot: number) => number },
    now: number,
  ): number | null {
    const present = this.slotAt(now);
    for (let slot = present; slot <= Math.max(present, waiting.start.slot + SLOTS); slot++) {
      const from = slot === present ? Math.min(CELLS - 1, this.#cellOf(now, slot) + 1) : 0;
      const isFound = slot === present && this.#current.hasHappenedBy(from);
      const cell = this.#plan(waiting, slot, from, isFound ? prices.own : prices.search(slot));
      if (cell >= 0) return this.timeOf(slot, cell);
    }
    return null;
  }

  /** Returns the cell, `from` or later, in which to poll; -1 if none. Cached by state. */
  #plan(waiting: Waiting, slot: number, from: number, price: number): number {
    const { start, openAt } = waiting;
    const open = Math.max(-1, Math.floor((this.#clock.position(openAt) - start.slot) * CELLS));
    const key = `${start.zone} ${slot - start.slot} ${slot - this.#current.slot} ${open} ${from} ${price}`;
    let cell = this.#plans.get(key);
    if (cell !== undefined) return cell;
    cell = -1;
    const { before, within } = this.prospect(waiting, slot);
    if (before + within >= MIN_PROBABILITY) {
      const periodS = this.periodMs / 1_000;
      const widths = new Float64Array(CELLS).fill(periodS / CELLS);
      cell = nextCheck({
        cdf: this.cdf(waiting, slot),
        widths,
        from,
        price,
        endLag: END_LAG * periodS,
      });
    }
    this.#plans.set(key, cell);
    return cell;
  }

  /**
   * Updates the probability that the previous slot had no event. `found`: null if open, else the
   * probability of finality in the current slot.
   */
  #reviseLast(waiting: Waiting, found: number | null): void {
    const last = this.#current.slot - 1;
    const none = this.#none.get(last);
    if (none === undefined || this.slotAt(waiting.openAt) >= last) return;
    const { within } = this.prospect(waiting, last);
    const [ifNone, ifEvent] = found === null ? [1, 1 - within] : [found, within + found];
    this.#none.set(last, (none * ifNone) / Math.max(1e-9, none * ifNone + (1 - none) * ifEvent));
    this.#prospects.clear();
  }

  #discardResults(): void {
    this.#plans.clear();
    this.#prospects.clear();
  }

  #observe(observation: SlotObservation): void {
    if (this.#current.observe(observation)) this.#discardResults();
  }

  #wait({ start, openAt }: Waiting, slot: number): Wait {
    const eventCdf = this.eventCdf();
    return this.#waits.forward(start, this.#clock.position(openAt), slot, {
      none: (past) => this.#none.get(past) ?? this.#events.empty,
      after: (phase) => 1 - (eventCdf[Math.floor(phase * CELLS)] as number),
    });
  }

  /** Returns the cell of a slot in which a poll found the submission open; -1 if none did. */
  #since({ openAt }: Waiting, slot: number): number {
    return this.slotAt(openAt) === slot ? this.#cellOf(openAt, slot) : -1;
  }

  /** Returns the last cell over at `time`, to the nearest end (timers fire late); -1 if none. */
  #cellOf(time: number, slot: number): number {
    return Math.max(
      -1,
      Math.min(CELLS - 1, Math.round((this.#clock.position(time) - slot) * CELLS) - 1),
    );
  }

  #observationOf({ after, by }: { after: number; by: number }): SlotObservation {
    const slot = this.slotAt(by);
    const [since, at] = [this.#cellOf(after, slot), this.#cellOf(by, slot)];
    return { prospect: { before: 0, within: 0.95 }, since, at, isFinal: true };
  }
}

function sum(values: Float64Array): number {
  return values.reduce((total, value) => total + value, 0);
}

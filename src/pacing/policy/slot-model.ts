import { nextCheck } from './checking-schedule.ts';
import { EventDistribution, type EventDistributionState } from './event-distribution.ts';
import type { SlotClock } from './slot-clock.ts';
import { CELLS, type Prospect, type SlotEvent, type SlotObservation } from './slot-event.ts';
import { SLOTS, SlotsToWait, type Wait } from './slots-to-wait.ts';

/** The start of a submission's wait for finality: its first slot, and its zone (both see slots-to-wait.ts). */
export type Start = { slot: number; zone: number };

/** A waiting submission. `openAt`: newest time at which a poll found it open, epoch ms; -Infinity if never polled. */
export type Waiting = { start: Start; openAt: number };

export type SlotModelState = EventDistributionState & { counts: number[] };

/** Probability that the chain changes in a slot. */
const CHANGE_RATE = 1 / 5_000;
/** A slot in which the probability of becoming final is lower is skipped. */
const MIN_PROBABILITY = 0.002;
/** Assumed further lag, in slots, of a submission that became final in a slot and was not found in it. */
const END_LAG = 0.9;

/**
 * The distribution of finality time on a chain with slots, as a product of three parts: the number of slots that a
 * submission waits (slots-to-wait.ts), the event of the slot (slot-event.ts), and the delay of the submission after the
 * event (event-distribution.ts). `advance` learns from each slot when it is over. Times are epoch milliseconds.
 */
export class SlotModel {
  readonly #clock: SlotClock;
  readonly #events: EventDistribution;
  readonly #waits: SlotsToWait;
  /** The event of the current slot, and the event of a slot without observations. */
  #current: SlotEvent;
  #unobserved: SlotEvent;
  #eventCdf: Float64Array | null = null;
  /** Probability that there was no event, for each of the last slots. */
  readonly #none = new Map<number, number>();
  /** Results of `#plan` and `prospect` for the present evidence. */
  readonly #plans = new Map<string, number>();
  readonly #prospects = new Map<string, Prospect>();
  /**
   * Shiryaev-Roberts statistic (Shiryaev, Theory Probab. Appl. 8, 1963) of the hypothesis that submissions become final in
   * earlier slots than before: polls then find all of them final, at the first attempt, which teaches nothing else.
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

  /** Whether the event of the current slot is yet to be found. */
  isSearched(now: number): boolean {
    return !this.#current.hasHappenedBy(this.#cellOf(now, this.#current.slot));
  }

  startOf(time: number): Start {
    const position = this.#clock.position(time);
    return { slot: this.#waits.slotOf(position), zone: this.#waits.zoneOf(position) };
  }

  /** Advances to the current slot. Returns whether it is a new one; then the previous slot has been learned from. */
  advance(now: number): boolean {
    const slot = this.slotAt(now);
    if (this.#current.slot === slot) return false;
    if (this.#current.isInformed) {
      this.#events.learn(this.#current.observations, this.#current.none);
      this.#none.set(this.#current.slot, this.#current.none);
    }
    for (const old of this.#none.keys()) if (old < slot - SLOTS || old > slot) this.#none.delete(old);
    this.#waits.setChangeProbability(1 - 1 / (1 + CHANGE_RATE * this.#earlier));
    this.#current = this.#events.slot(slot);
    this.#unobserved = this.#events.slot(Number.NEGATIVE_INFINITY);
    this.#eventCdf = null;
    this.#discardResults();
    return true;
  }

  /** Learns from a poll that found the submission open at `at`. */
  observeOpen(waiting: Waiting, at: number): void {
    const { slot } = this.#current;
    const since = this.#since(waiting, slot);
    const cell = this.#cellOf(at, slot);
    if (cell < 0) return;
    this.#reviseLast(waiting, null);
    this.#earlier = 0;
    this.#observe({ prospect: this.prospect(waiting, slot), since, at: Math.max(since, cell), isFinal: false });
  }

  /**
   * Learns from a submission that was found final at `at`, whose group was first found at `foundAt`. Returns whether this
   * is the first evidence that the event of the slot has probably happened.
   */
  observeFinal(waiting: Waiting, foundAt: number, at: number): boolean {
    const { slot } = this.#current;
    if (this.slotAt(foundAt) !== slot) return false;
    const cell = Math.max(0, this.#cellOf(at, slot));
    const hadHappened = this.#current.hasHappenedBy(cell);
    const since = this.#since(waiting, slot);
    const prospect = this.prospect(waiting, slot);
    if (this.#current.observations.length === 0)
      this.#earlier = (1 + this.#earlier) / Math.max(0.05, this.expected(waiting, at).found);
    if (foundAt === at) this.#reviseLast(waiting, this.#current.cdf({ ...prospect, before: 0 }, -1)[cell] as number);
    this.#observe({ prospect, since, at: cell, isFinal: true });
    return !hadHappened && this.#current.hasHappenedBy(cell);
  }

  /** Learns the number of slots from `beganAt` to finality. `isExact`: it became final in `slot`, not in an earlier one. */
  learnWait(beganAt: number, openAt: number, slot: number, isExact: boolean, weight: number): void {
    const start = this.startOf(beganAt);
    const { waiting, unseen } = this.#wait({ start, openAt }, slot);
    const hazards = this.#waits.hazards(start.zone);
    const events = waiting.map((p, k) => p * (hazards[k] as number) + (isExact ? 0 : (unseen[k] as number)));
    this.#waits.learn(this.#clock.position(beganAt), events, weight);
    this.#discardResults();
  }

  /** Returns the state of a submission at the start of a slot. */
  prospect(waiting: Waiting, slot: number): Prospect {
    const { start, openAt } = waiting;
    const key = `${start.slot} ${start.zone} ${openAt} ${slot}`;
    const known = this.#prospects.get(key);
    if (known) return known;
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

  /** Returns the probability of being final by the end of each cell of a slot, given the polls so far. */
  cdf(waiting: Waiting, slot: number): Float64Array {
    const event = slot === this.#current.slot ? this.#current : this.#unobserved;
    return event.cdf(this.prospect(waiting, slot), this.#since(waiting, slot));
  }

  /** Returns that probability for a submission that becomes final with the event of a slot without observations. */
  eventCdf(): Float64Array {
    this.#eventCdf ??= this.#unobserved.cdf({ before: 0, within: 1 }, -1);
    return this.#eventCdf;
  }

  /** Returns the probability that a poll at `now` finds the submission final, and the expected lag if so (ms). */
  expected(waiting: Waiting, now: number): { found: number; lagMs: number } {
    const { slot } = this.#current;
    const cdf = this.cdf(waiting, slot).subarray(0, this.#cellOf(now, slot) + 1);
    const found = cdf.at(-1) ?? 0;
    return { found, lagMs: found > 1e-6 ? ((sum(cdf) / found - 1) * this.periodMs) / CELLS : 0 };
  }

  /**
   * Returns the next poll time; null if no slot is worth a poll. Prices are requests per second of lag: `search` until the
   * event of the slot has happened, `own` afterwards.
   */
  nextPollAt(waiting: Waiting, prices: { own: number; search: (slot: number) => number }, now: number): number | null {
    const present = this.slotAt(now);
    for (let slot = present; slot <= Math.max(present, waiting.start.slot + SLOTS); slot++) {
      const from = slot === present ? Math.min(CELLS - 1, this.#cellOf(now, slot) + 1) : 0;
      const isFound = slot === present && this.#current.hasHappenedBy(from);
      const cell = this.#plan(waiting, slot, from, isFound ? prices.own : prices.search(slot));
      if (cell >= 0) return this.timeOf(slot, cell);
    }
    return null;
  }

  /** Returns the cell of a slot, `from` or later, in which to poll; -1 if none. Cached for submissions of equal state. */
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
      cell = nextCheck({ cdf: this.cdf(waiting, slot), widths, from, price, endLag: END_LAG * periodS });
    }
    this.#plans.set(key, cell);
    return cell;
  }

  /**
   * Updates the probability that the previous slot had no event, with a submission that was not polled in it. `found`: null
   * if the submission is open, else the probability that it became final in the current slot.
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

  /**
   * Returns the last cell of a slot that is over at `time`, to the nearest end of a cell; -1 if none. A timer that fires a
   * moment late is thereby at the end of the cell for which it was set, and not within the next one.
   */
  #cellOf(time: number, slot: number): number {
    return Math.max(-1, Math.min(CELLS - 1, Math.round((this.#clock.position(time) - slot) * CELLS) - 1));
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

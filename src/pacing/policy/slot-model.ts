import { nextCheck } from './checking-schedule.ts';
import { EventDistribution, type EventDistributionState } from './event-distribution.ts';
import type { SlotClock } from './slot-clock.ts';
import { CELLS, type Prospect, type SlotEvent, type SlotObservation } from './slot-event.ts';
import { SLOTS, SlotsToWait, type Wait } from './slots-to-wait.ts';

/** Where a submission begins to wait: the slot from which it counts, and its zone. */
export type Start = { slot: number; zone: number };

/** A submission that began to wait there and was open at `openAt` (epoch ms, -Infinity: never polled). */
export type Waiting = { start: Start; openAt: number };

export type SlotModelState = EventDistributionState & { counts: number[] };

/** Probability of becoming final in a slot from which on it is worth a thought. */
const LIKELY = 0.002;
/** What is not found in a slot is found in one of the next ones: so much later, in slots. */
const END_LAG = 0.9;

/**
 * The distribution of finality time on a chain with slots: the slots a submission waits, the event of the slot, and its own
 * delay after that. Follows the slots one by one, each learned from when it is over. Times are epoch milliseconds.
 */
export class SlotModel {
  readonly #clock: SlotClock;
  readonly #events: EventDistribution;
  readonly #waits: SlotsToWait;
  /** The event of the slot of the present, and of any other that nothing is observed of. */
  #current: SlotEvent;
  #unobserved: SlotEvent;
  /** Probability of each of the last slots that it had no event. */
  readonly #none = new Map<number, number>();
  readonly #plans = new Map<string, number>();

  constructor(clock: SlotClock, state?: SlotModelState) {
    this.#clock = clock;
    this.#events = new EventDistribution(state);
    this.#waits = new SlotsToWait(state?.counts);
    // Begins with what the clock was found from.
    if (!state) this.#events.learnAll(clock.events.map((event) => [this.#observationOf(event)]));
    this.#current = this.#unobserved = this.#events.slot(Number.NEGATIVE_INFINITY);
  }

  get state(): SlotModelState {
    return { ...this.#events.state, counts: this.#waits.counts };
  }

  get periodMs(): number {
    return this.#clock.state?.periodMs ?? 0;
  }

  /** Probability of a slot without event. */
  get empty(): number {
    return this.#events.empty;
  }

  /** Whoever counts from a slot before is followed no more. */
  get oldestSlot(): number {
    return this.#current.slot - SLOTS;
  }

  slotAt(time: number): number {
    return Math.floor(this.#clock.position(time));
  }

  /** When the slot of this moment began. */
  beginOf(time: number): number {
    return this.timeOf(this.slotAt(time), 0);
  }

  timeOf(slot: number, cell: number): number {
    return this.#clock.timeOf(slot + cell / CELLS);
  }

  startOf(time: number): Start {
    const position = this.#clock.position(time);
    return { slot: this.#waits.slotOf(position), zone: this.#waits.zoneOf(position) };
  }

  /** Goes on to the slot of the present. Returns whether it is another one, so that the last one is learned from. */
  advance(now: number): boolean {
    const slot = this.slotAt(now);
    if (this.#current.slot === slot) return false;
    if (this.#current.isInformed) {
      this.#events.learn(this.#current.observations, this.#current.none);
      this.#none.set(this.#current.slot, this.#current.none);
    }
    for (const old of this.#none.keys()) if (old < slot - SLOTS || old > slot) this.#none.delete(old);
    this.#current = this.#events.slot(slot);
    this.#unobserved = this.#events.slot(Number.NEGATIVE_INFINITY);
    this.#plans.clear();
    return true;
  }

  /** It was open at `at`. */
  observeOpen(waiting: Waiting, at: number): void {
    const { slot } = this.#current;
    const since = this.#since(waiting, slot);
    const cell = this.#cellOf(at, slot);
    if (cell < 0) return;
    this.#reviseLast(waiting, null);
    this.#observe({ prospect: this.prospect(waiting, slot), since, at: Math.max(since, cell - 1), isFinal: false });
  }

  /**
   * It was found final at `at`, its group first at `foundAt`. Returns whether by this the event of the slot has probably been,
   * and by nothing before.
   */
  observeFinal(waiting: Waiting, foundAt: number, at: number): boolean {
    const { slot } = this.#current;
    if (this.slotAt(foundAt) !== slot) return false;
    const cell = this.#cellOf(at, slot);
    const hadHappened = this.#current.hasHappenedBy(cell);
    const since = this.#since(waiting, slot);
    const prospect = this.prospect(waiting, slot);
    if (foundAt === at) this.#reviseLast(waiting, this.#current.cdf({ ...prospect, before: 0 }, -1)[cell] as number);
    this.#observe({ prospect, since, at: cell, isFinal: true });
    return !hadHappened && this.#current.hasHappenedBy(cell);
  }

  /** Learns how many slots one waited that began at `beganAt`. `isExact`: it became final in this slot, not in an earlier one. */
  learnWait(beganAt: number, openAt: number, slot: number, isExact: boolean, weight: number): void {
    const start = this.startOf(beganAt);
    const { waiting, unseen } = this.#wait({ start, openAt }, slot);
    const hazards = this.#waits.hazards(start.zone);
    const events = waiting.map((p, k) => p * (hazards[k] as number) + (isExact ? 0 : (unseen[k] as number)));
    const isOther = this.#waits.learn(this.#clock.position(beganAt), events, weight);
    if (isOther) this.#events.discardOld();
    this.#plans.clear();
  }

  /** What is believed of it at the begin of a slot. */
  prospect(waiting: Waiting, slot: number): Prospect {
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

  /** Probability of being final by the end of each cell of a slot, as far as that is not known already. */
  cdf(waiting: Waiting, slot: number): Float64Array {
    const event = slot === this.#current.slot ? this.#current : this.#unobserved;
    return event.cdf(this.prospect(waiting, slot), this.#since(waiting, slot));
  }

  /** Probability that one takes part in an event by the end of each cell of a slot that nothing is observed of. */
  eventCdf(): Float64Array {
    return this.#unobserved.cdf({ before: 0, within: 1 }, -1);
  }

  /** Probability that a poll at `now` finds it final, and how long it would have been so in the mean (ms). */
  expected(waiting: Waiting, now: number): { found: number; lagMs: number } {
    const { slot } = this.#current;
    const cdf = this.cdf(waiting, slot).subarray(0, this.#cellOf(now, slot) + 1);
    const found = cdf.at(-1) ?? 0;
    return { found, lagMs: found > 1e-6 ? ((sum(cdf) / found - 1) * this.periodMs) / CELLS : 0 };
  }

  /** When to poll it next, if a second of its lag is worth `price` requests; null: no more for the sake of slots. */
  nextPollAt(waiting: Waiting, prices: { own: number; search: number }, now: number): number | null {
    const position = this.#clock.position(now);
    const present = Math.floor(position);
    for (let slot = present; slot <= Math.max(present, waiting.start.slot + SLOTS); slot++) {
      const from = slot === present ? Math.min(CELLS - 1, Math.ceil((position - present) * CELLS - 0.01)) : 0;
      const isFound = slot === present && this.#current.hasHappenedBy(from);
      const cell = this.#plan(waiting, slot, from, isFound ? prices.own : prices.search);
      if (cell >= 0) return this.timeOf(slot, cell);
    }
    return null;
  }

  /** The cell of a slot in which to poll it, at the earliest `from`; -1: in none. Computed once for all that are alike. */
  #plan(waiting: Waiting, slot: number, from: number, price: number): number {
    const { start, openAt } = waiting;
    const open = Math.max(-1, Math.floor((this.#clock.position(openAt) - start.slot) * CELLS));
    const key = `${start.zone} ${slot - start.slot} ${slot - this.#current.slot} ${open} ${from} ${price}`;
    let cell = this.#plans.get(key);
    if (cell !== undefined) return cell;
    cell = -1;
    const { before, within } = this.prospect(waiting, slot);
    if (before + within >= LIKELY) {
      const periodS = this.periodMs / 1_000;
      const widths = new Float64Array(CELLS).fill(periodS / CELLS);
      cell = nextCheck({ cdf: this.cdf(waiting, slot), widths, from, price, endLag: END_LAG * periodS });
    }
    this.#plans.set(key, cell);
    return cell;
  }

  /**
   * What one that was not polled in the last slot says of an event in that: it is open, or it is final, and became so in the
   * slot of the present with the probability `found`.
   */
  #reviseLast(waiting: Waiting, found: number | null): void {
    const last = this.#current.slot - 1;
    const none = this.#none.get(last);
    if (none === undefined || this.slotAt(waiting.openAt) >= last) return;
    const { within } = this.prospect(waiting, last);
    const [ifNone, ifEvent] = found === null ? [1, 1 - within] : [found, within + found];
    this.#none.set(last, (none * ifNone) / Math.max(1e-9, none * ifNone + (1 - none) * ifEvent));
  }

  #observe(observation: SlotObservation): void {
    if (this.#current.observe(observation)) this.#plans.clear();
  }

  #wait({ start, openAt }: Waiting, slot: number): Wait {
    const eventCdf = this.eventCdf();
    return this.#waits.forward(start, this.#clock.position(openAt), slot, {
      none: (past) => this.#none.get(past) ?? this.#events.empty,
      after: (phase) => 1 - (eventCdf[Math.floor(phase * CELLS)] as number),
    });
  }

  /** The cell of this slot in which it was open; -1: in none. */
  #since({ openAt }: Waiting, slot: number): number {
    return this.slotAt(openAt) === slot ? this.#cellOf(openAt, slot) : -1;
  }

  #cellOf(time: number, slot: number): number {
    return Math.max(-1, Math.min(CELLS - 1, Math.floor((this.#clock.position(time) - slot) * CELLS)));
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

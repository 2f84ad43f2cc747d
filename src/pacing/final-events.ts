import { type Candidate, type FinalizedHead, NEVER } from './port.ts';

/** Events stored; number of new events after which the search is repeated. */
const STORED = 48;
const SEARCH_EVERY = 8;
/** Events that confirm a slot time. */
const SETTLED = 4;
/** The slot times of public chains, and the unit of all others. */
const USUAL_MS = [20_000, 12_000, 6_000] as const;
const UNIT_MS = 100;
/** Most slots without a block for each with one; slack of the measured time of a block. */
const MOST_EMPTY = 0.7;
const SLACK = 1.03;
/** Uncertainty of the times of inferred events. */
const DOUBT_MS = 3_000;
/** Another period is adopted if its mean resultant length is higher by this. */
const BETTER = 0.15;
/** The same for a period that is not one of the usual ones. */
const RARE = 0.1;
/** A slot begins this share before the mean time of its event, so that no event is split. */
const LEAD = 0.3;
/** The phase follows when it is off by this share of a slot. */
const OFF = 0.2;

/** Blocks up to `number` became final in (after, by], epoch ms. */
export type Event = { number: number; after: number; by: number };

export type SlotClockState = { periodMs: number; originMs: number };

/** `length`: mean resultant length, 0 to 1. `at`: a time of the mean phase, epoch ms. */
type Fit = { periodMs: number; length: number; at: number; score: number };

/**
 * Slot time and phase of a chain, from its final events. A slot has at most one block, so it is not
 * longer than the time of a block. Of the remaining periods, the one in which events are most
 * concentrated counts (Mardia and Jupp, "Directional Statistics", 2000). Times are epoch ms.
 */
export class SlotClock {
  readonly #events: Event[] = [];
  #sinceSearch = 0;
  /** Null: no event is known, or events are not periodic. */
  state: SlotClockState | null;

  constructor(state: SlotClockState | null = null) {
    this.state = state;
  }

  get periodMs(): number {
    return this.state?.periodMs ?? USUAL_MS[0];
  }

  /** Returns the slot number, from the epoch, with a fraction for the phase. */
  position(time: number): number {
    const { state } = this;
    return state ? (time - state.originMs) / state.periodMs : 0;
  }

  slotAt(time: number): number {
    return Math.floor(this.position(time));
  }

  timeOf(position: number): number {
    const { state } = this;
    return state ? state.originMs + position * state.periodMs : 0;
  }

  /** Assumes the most usual slot time, with an event at this time. */
  assume(at: number): void {
    this.#adopt({ periodMs: USUAL_MS[0], at });
  }

  /** Whether several events have confirmed the slot time. */
  get isSettled(): boolean {
    return this.#events.length >= SETTLED;
  }

  /** Returns whether slot numbers and phases have changed. */
  learn(event: Event): boolean {
    const events = this.#events;
    const newest = events.at(-1);
    if (newest && event.number <= newest.number) return false;
    events.push(event);
    if (events.length > STORED) events.shift();
    const [first] = events as [Event];
    const blocks = event.number - first.number;
    if (blocks < 2) return false;
    const longestMs = (SLACK * (event.by - first.after + DOUBT_MS)) / blocks;
    const present = this.#fit(this.periodMs, longestMs);
    // Two blocks may have become final together, but then the phase is right.
    const isRight = present.length > 0.6 && (this.periodMs * (blocks - 1)) / blocks < longestMs;
    const isTooLong = this.periodMs > longestMs && !isRight;
    if (++this.#sinceSearch < SEARCH_EVERY && !isTooLong) return false;
    this.#sinceSearch = 0;
    const found = this.#search(longestMs);
    if (found && (isTooLong || found.score > present.score + BETTER)) return this.#adopt(found);
    const off = this.position(present.at) - Math.floor(this.position(present.at)) - LEAD;
    return Math.abs(off) < OFF || present.length < 0.5 ? false : this.#adopt(present);
  }

  #search(longestMs: number): Fit | null {
    const candidates: number[] = USUAL_MS.filter((periodMs) => periodMs <= longestMs);
    const isEarly = this.#events.length < SEARCH_EVERY;
    if (isEarly && candidates[0]) return this.#fit(candidates[0], longestMs);
    const shortest = Math.ceil(((1 - MOST_EMPTY) * longestMs) / UNIT_MS);
    for (let unit = Math.max(2, shortest); unit * UNIT_MS <= longestMs; unit++)
      candidates.push(unit * UNIT_MS);
    return candidates
      .map((periodMs) => this.#fit(periodMs, longestMs))
      .reduce<Fit | null>((best, fit) => (best && best.score >= fit.score ? best : fit), null);
  }

  #fit(periodMs: number, longestMs: number): Fit {
    const { length, at, count } = phaseOf(this.#events, periodMs);
    const isUsual = USUAL_MS.some((usualMs) => usualMs === periodMs);
    const emptyShare = Math.max(0, 1 - (SLACK * periodMs) / longestMs);
    const score = length - 1 / Math.sqrt(1 + count) - (isUsual ? 0 : RARE) - emptyShare / 2;
    return { periodMs, length, at, score };
  }

  #adopt({ periodMs, at }: { periodMs: number; at: number }): boolean {
    const start = at - LEAD * periodMs;
    this.state = { periodMs, originMs: start - Math.floor(start / periodMs) * periodMs };
    return true;
  }
}

function phaseOf(
  events: readonly Event[],
  periodMs: number,
): { length: number; at: number; count: number } {
  const reference = events.at(-1)?.by ?? 0;
  let [x, y, sum, squares] = [0, 0, 0, 0];
  for (const { after, by } of events) {
    // An event whose interval is as wide as the period is no evidence of the phase.
    const weight = Math.max(0.02, 1 - (by - after) / periodMs) ** 2;
    const angle = (2 * Math.PI * ((after + by) / 2 - reference)) / periodMs;
    x += weight * Math.cos(angle);
    y += weight * Math.sin(angle);
    sum += weight;
    squares += weight * weight;
  }
  const at = reference + (Math.atan2(y, x) / (2 * Math.PI)) * periodMs;
  return { length: Math.hypot(x, y) / sum, at, count: Math.min(sum ** 2 / squares, 4 * sum) };
}

/** Blocks up to `number` became final at `at`, in `slot` of the clock. `isExact`: announced. */
export type FinalEvent = { number: number; at: number; slot: number; isExact: boolean };

const STORED_EVENTS = 160;
/** Share of slots without a block: at first, limits, and by how much it follows each slot. */
const EMPTY = { initial: 0.04, most: 0.4, least: 0.005, rate: 0.02 };

/** The final events of a chain, in order. Times are epoch ms. */
export class FinalEvents {
  readonly clock: SlotClock;
  #events: FinalEvent[] = [];
  /** A node announces its newest block at once, so the time of its first head is not known. */
  #isFirstUntimed = false;
  #isClockUntimed = false;
  #empty: number;

  constructor(clock: SlotClockState | null = null, empty = EMPTY.initial) {
    this.clock = new SlotClock(clock);
    this.#empty = empty;
  }

  get newest(): FinalEvent | null {
    return this.#events.at(-1) ?? null;
  }

  /** Whether the time of an event is known. */
  get isTimed(): boolean {
    return this.#events.length > (this.#isFirstUntimed ? 1 : 0);
  }

  get empty(): number {
    return Math.min(EMPTY.most, Math.max(EMPTY.least, this.#empty));
  }

  clear(): void {
    this.#events = [];
  }

  /** Block numbers say how many slots stayed empty. `slot`: if it is not that of `at`. */
  observe({ number, at, isExact, slot }: Omit<FinalEvent, 'slot'> & { slot?: number }): void {
    const { newest, clock } = this;
    if (newest && number <= newest.number) return;
    if (!clock.state || this.#isClockUntimed) {
      clock.assume(at);
      if (newest) newest.slot = clock.slotAt(at) - Math.max(1, number - newest.number);
      this.#isClockUntimed = isExact && !newest;
    }
    if (!newest) this.#isFirstUntimed = isExact;
    const event = { number, at, isExact, slot: slot ?? clock.slotAt(at) };
    while (this.newest && this.newest.slot >= event.slot) this.#events.pop();
    const before = this.newest;
    if (before && this.isTimed) {
      const slots = event.slot - before.slot;
      const empty = Math.max(0, slots - (number - before.number)) / slots;
      this.#empty += (1 - (1 - EMPTY.rate) ** slots) * (empty - this.#empty);
    }
    this.#events.push(event);
    if (this.#events.length > STORED_EVENTS) this.#events.shift();
  }

  /** Numbers the slots of all events again, because the clock has changed. */
  relocate(): void {
    for (const event of this.#events) event.slot = this.clock.slotAt(event.at);
  }

  /** The first event that includes a block; null: none, or not known. */
  eventOf(block: number): FinalEvent | null {
    const [first] = this.#events;
    if (!first || block <= first.number) return null;
    return this.#events.find(({ number }) => number >= block) ?? null;
  }

  /** When the event before this one happened. */
  before(event: FinalEvent | null): number {
    return event ? (this.#events[this.#events.indexOf(event) - 1]?.at ?? NEVER) : NEVER;
  }

  /** The highest number that was final by the end of a slot. */
  numberBy(slot: number): number {
    return this.#events.findLast((event) => event.slot <= slot)?.number ?? NEVER;
  }

  /**
   * The position of a time: the number of the newest event, and the share of the way to the next.
   * Slots without an event do not count, as far as the next event shows them.
   */
  position(time: number): number {
    const events = this.#events;
    const at = this.clock.position(time) - LEAD;
    const index = events.findLastIndex(({ slot }) => slot <= at);
    const [event, next] = [events[index], events[index + 1]];
    if (!next) return event ? event.number + at - event.slot : 0;
    if (!event || (index === 0 && this.#isFirstUntimed))
      return Math.max(event?.number ?? NEVER, next.number - (next.slot - at));
    const blocks = next.number - event.number;
    // An empty slot comes before the only block; else they are spread.
    if (blocks === 1) return next.number - Math.min(1, next.slot - at);
    return event.number + (blocks * (at - event.slot)) / (next.slot - event.slot);
  }
}

/**
 * `testEvery`: of so many rows that are final at their first poll, one is polled when a head
 * arrives; if it is final then, the node is late. `doubts`, `provenDoubts`: blocks in succession
 * that end the trust in heads, without and with earlier ones in time.
 */
const TRUST = { testEvery: 16, doubts: 2, provenDoubts: 4 };
/** A row that is final so long after its head was probably final before; response time excluded. */
const AT_ONCE_MS = 60;
/** Rows are final within this share of a slot after a head that is in time. */
const IN_TIME = 0.4;
const STORED_HEADS = 64;

/**
 * Whether the heads of the nodes come when blocks become final. A late head finds rows final; after
 * an early one they stay open. A row that was open after its head, and final soon, ends all doubt.
 */
export class HeadTrust {
  /** Newest announced number. */
  newest = NEVER;
  /** When the newest head arrived. */
  arrivedAt = NEVER;
  /** The submission that is polled as soon as the newest head arrives. */
  tested: Candidate | null = null;
  readonly #times = new Map<number, number>();
  #sinceOpen = TRUST.testEvery;
  #late = 0;
  #early = 0;
  #missing = NEVER;
  #isProven = false;

  get isTrusted(): boolean {
    const most = this.#isProven ? TRUST.provenDoubts : TRUST.doubts;
    return this.#late < most && this.#early < most;
  }

  get isTestDue(): boolean {
    return this.#sinceOpen >= TRUST.testEvery;
  }

  /** `rows`: what polls found after the head before: rows of its block that were final, or open. */
  observeHead({ number, at }: FinalizedHead, rows: { isFinal: boolean; isOpen: boolean }): void {
    this.newest = number;
    this.#times.set(number, at);
    const [oldest] = this.#times.keys();
    if (this.#times.size > STORED_HEADS && oldest !== undefined) this.#times.delete(oldest);
    if (rows.isFinal) this.#early = 0;
    else if (rows.isOpen) this.#early++;
    this.tested = null;
  }

  begin(tested: Candidate): void {
    this.tested = tested;
    if (!this.isTrusted) this.#sinceOpen = 0;
  }

  /** A row of the newest block was found open. */
  observeOpen(): void {
    this.#late = this.#sinceOpen = 0;
  }

  observeFinal(
    item: Candidate,
    block: number,
    readAt: number,
    { periodMs, responseMs }: { periodMs: number; responseMs: number },
  ): void {
    const headAt = this.#times.get(block);
    // It was final before the head of its block.
    if (this.newest > NEVER && block > Math.max(this.newest, this.#missing)) {
      this.#missing = block;
      this.#late += block - this.newest;
    }
    if (headAt === undefined) return;
    if (item.openAt <= headAt) this.#sinceOpen++;
    else if (readAt - headAt < IN_TIME * periodMs) {
      this.#late = this.#early = this.#sinceOpen = 0;
      this.#isProven = true;
    }
    const isTest = item === this.tested && item.openAt < headAt;
    if (isTest && readAt - headAt < AT_ONCE_MS + responseMs) this.#late++;
  }
}

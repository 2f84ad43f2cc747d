import { BlockWait, SenderLine, WAIT_CELLS } from './block-wait.ts';
import { AGE_CELLS, AgeDistribution, isWeights } from './distribution.ts';
import { CELLS, DELAYS, EventTimes, EventWindow } from './event-times.ts';
import { type FinalEvent, FinalEvents, HeadTrust } from './final-events.ts';
import { type Candidate, type FinalizedHead, NEVER } from './port.ts';

/** Slots that are looked ahead. Who waits longer is polled by age. */
export const AHEAD = 26;
/** A probability that hardly leaves a doubt. */
export const CERTAIN = 0.9;
/** Slots without a head after which nodes count as silent. */
const SILENT_SLOTS = 1.6;
/** Probability that a slot has no event while nodes are silent, because finality has stalled. */
const SILENT_NONE = 0.95;
/** Rows of a block are late together: an open one is at most this much evidence. */
const DOUBT = 0.85;
/** Probability that finality stalls with a slot, and that a stall ends with one. */
const STALL = { begins: 0.001, ends: 0.15 };
/** Submissions in the line whose polls are learned from, when the event is known. */
const SAMPLED = 32;
/** Blocks beyond the usual that submissions wait for which are sent at once. */
const USUAL_BLOCKS = 1.5;
/** An event was probably not longer ago when a poll finds it. */
const RECENT_MS = 2_000;
/** Without blocks: age of one that its first poll finds final. */
const ALREADY_FINAL_MS = 1_000;

/** Probabilities: final before a slot; with its event, if it has one. */
export type Prospect = { before: number; within: number };

export type FinalityModelState = {
  ages: { weights: number[]; observed: number };
  clock: { periodMs: number; originMs: number } | null;
  times: { event: number[]; delay: number[] };
  wait: number[];
  empty: number;
  senders: number | null;
};

/**
 * When the submissions of an upstream become final: their blocks, and the final events that include
 * these. Nodes announce events, or polls show them. Times are epoch ms.
 */
export class FinalityModel {
  readonly trust = new HeadTrust();
  ages: AgeDistribution;
  line = new SenderLine();
  events = new FinalEvents();
  /** The window of the present slot, or since the newest head; null: no event is known. */
  window: EventWindow | null = null;
  /** A window without polls. */
  blank: EventWindow | null = null;
  #wait = new BlockWait();
  #times = new EventTimes();
  /** Of slots that are over. */
  readonly #past = new Map<number, EventWindow>();
  /** Slots in succession without an event. */
  #emptyRun = 0;
  lastOpenAt = NEVER;
  /** Whether finals have block numbers; else each is polled by its age. */
  hasBlocks = true;
  /** Number of delays of rows that were learned. */
  delays = 0;

  constructor(price: number, state?: FinalityModelState) {
    this.ages = new AgeDistribution(price, state?.ages);
    if (!state) return;
    this.line = new SenderLine(state.senders ?? undefined);
    this.events = new FinalEvents(state.clock, state.empty);
    this.#wait = new BlockWait(state.wait);
    this.#times = new EventTimes(state.times);
  }

  get state(): FinalityModelState {
    return {
      ages: this.ages.state,
      clock: this.events.clock.state,
      times: { event: [...this.#times.event], delay: [...this.#times.delay] },
      wait: this.#wait.weights,
      empty: this.events.empty,
      senders: this.line.isSerial ? this.line.senders : null,
    };
  }

  get periodMs(): number {
    return this.events.clock.periodMs;
  }

  /** When nodes count as silent. */
  get silentAt(): number {
    return this.trust.isTrusted ? this.trust.arrivedAt + SILENT_SLOTS * this.periodMs : NEVER;
  }

  // Events

  /** Opens the window of the present slot, unless nodes announce events. Returns whether it did. */
  advance(now: number): boolean {
    const { clock, isTimed, newest } = this.events;
    if (!isTimed || !newest || now < this.silentAt) return false;
    const slot = clock.slotAt(now);
    if (this.window && this.window.slot >= slot) return false;
    this.line.expire(now);
    const isSilent = newest.isExact && this.trust.isTrusted;
    if (isSilent && this.window?.isExact)
      for (let missed = Math.max(this.window.slot + 1, slot - AHEAD); missed < slot; missed++)
        this.#miss(missed);
    const none = Math.max(isSilent ? SILENT_NONE : 0, this.#noneAfter(this.#emptyRun));
    this.#open(slot, clock.timeOf(slot), none);
    return true;
  }

  /** Returns whether it is news: an event that is learned from. */
  observeHead(head: FinalizedHead, now: number): boolean {
    const { events, trust, window } = this;
    const { number, at } = head;
    trust.arrivedAt = now;
    if (number === trust.newest) return false;
    // The chain began anew, or the nodes before were wrong.
    if (number < trust.newest) events.clear();
    const wasTrusted = trust.isTrusted;
    const isOpen = window?.isExact === true && window.hasOpen;
    trust.observeHead(head, { isFinal: window?.hasFinal ?? false, isOpen });
    if (wasTrusted && !trust.isTrusted) this.#startAnew();
    if (!trust.isTrusted || (events.newest && number <= events.newest.number)) return false;
    this.#observeEvent({ number, after: at - 1, by: at }, true);
    this.#emptyRun = 0;
    this.#open(events.clock.slotAt(at), at, 0);
    this.window?.announce(number);
    this.line.expire(now);
    return true;
  }

  /** An event in (after, by]. `slot`: that of the clock, if it is known. */
  #observeEvent(
    event: { number: number; after: number; by: number },
    isExact: boolean,
    slot?: number,
  ): void {
    const { events } = this;
    const at = isExact ? event.by : Math.max((event.after + event.by) / 2, event.by - RECENT_MS);
    events.observe({ number: event.number, at, isExact, ...(slot !== undefined && { slot }) });
    if (events.clock.learn(event)) this.#renumber();
  }

  /** Slots have changed. */
  #renumber(): void {
    this.events.relocate();
    this.#wait.forget();
    this.#forgetSlots();
  }

  /** Forgets what nodes have announced that are not trusted any more. */
  #startAnew(): void {
    this.events = new FinalEvents();
    this.#wait.forget();
    this.#forgetSlots();
  }

  #forgetSlots(): void {
    this.#times = new EventTimes();
    this.#past.clear();
    this.window = null;
  }

  #open(slot: number, origin: number, none: number): void {
    if (this.window) this.#close(this.window);
    const cellMs = this.periodMs / CELLS;
    this.window = new EventWindow({ slot, origin, cellMs, none }, this.#times);
    this.blank = this.#blank(slot, this.#noneAfter(0));
  }

  #close(window: EventWindow): void {
    const { slot, origin, cellMs, none, isExact, isInformed, sightings } = window;
    if (isInformed) {
      this.#past.set(slot, window);
      if (!isExact) this.#emptyRun = none > 0.5 ? this.#emptyRun + 1 : 0;
      const cell = Math.floor((origin - this.events.clock.timeOf(slot)) / cellMs);
      const announced = isExact ? Math.max(0, Math.min(CELLS - 1, cell)) : null;
      this.#times.learn(sightings, announced);
    }
    for (const old of this.#past.keys()) if (old < slot - AHEAD) this.#past.delete(old);
  }

  #miss(slot: number): void {
    this.#past.set(slot, this.#blank(slot, SILENT_NONE));
    this.#emptyRun++;
  }

  /** Probability of a slot without an event after this number of such slots. */
  #noneAfter(empties: number): number {
    const stall = this.#stallAfter(empties);
    return stall * (1 - STALL.ends) + (1 - stall) * this.events.empty;
  }

  #stallAfter(empties: number): number {
    let stall = STALL.begins;
    for (let i = 0; i < empties; i++) {
      const lasts = stall * (1 - STALL.ends);
      stall = lasts / (lasts + (1 - stall) * this.events.empty);
      stall = stall * (1 - STALL.ends) + (1 - stall) * STALL.begins;
    }
    return stall;
  }

  // Probabilities

  /** Given what polls have shown. */
  prospect(item: Candidate, slot: number): Prospect {
    const sentAt = this.line.sentAt(item);
    if (sentAt === null) return { before: 0, within: 0 };
    const x = this.events.position(sentAt);
    const by = this.#finalBy(x, slot, true);
    let before = this.#finalBy(x, slot - 1, false);
    let excluded = 0;
    if (item.openAt > NEVER) {
      const openSlot = Math.min(this.#slotOf(item.openAt), slot);
      excluded = this.#finalBy(x, openSlot - 1, false);
      if (openSlot === slot) before = excluded;
      else {
        const there = this.#finalBy(x, openSlot, true) - excluded;
        excluded += there * this.#windowOf(openSlot).meanAt(item.openAt);
      }
    }
    const rest = Math.max(1e-6, 1 - excluded);
    const past = Math.min(1, Math.max(0, before - excluded) / rest);
    return { before: past, within: Math.min(1 - past, Math.max(0, by - before) / rest) };
  }

  /** P(the block of one at x is final by the end of a slot). `hasEvent`: the slot has an event. */
  #finalBy(x: number, slot: number, hasEvent: boolean): number {
    const { newest, empty } = this.events;
    if (!newest) return 0;
    if (slot < newest.slot) return this.#wait.by(x, this.events.numberBy(slot));
    if (slot === newest.slot) return this.#wait.by(x, newest.number);
    // Slots since the newest event, or since it was sent, may have been empty.
    const sent = newest.slot + Math.max(0, Math.floor(x - newest.number));
    const first = Math.max(sent, slot - 2 * AHEAD);
    let empties = [1];
    for (let past = first + 1; past <= slot; past++) {
      const known = past === this.window?.slot ? this.window.none : this.#past.get(past)?.none;
      const none = past === slot && hasEvent ? 0 : (known ?? empty);
      const next = new Array<number>(empties.length + 1).fill(0);
      for (const [count, p] of empties.entries()) {
        next[count] = (next[count] as number) + p * (1 - none);
        next[count + 1] = (next[count + 1] as number) + p * none;
      }
      empties = next;
    }
    const number = newest.number + slot - newest.slot;
    const sum = empties.reduce(
      (total, p, count) => (p > 1e-4 ? total + p * this.#wait.by(x, number - count) : total),
      0,
    );
    return Math.min(1, sum);
  }

  /** The slot in whose window a time is. */
  #slotOf(time: number): number {
    const { window, events } = this;
    if (!window) return 0;
    const slot = events.clock.slotAt(time);
    if (time < window.origin) return Math.min(window.slot - 1, slot);
    return window.isExact ? window.slot : Math.max(window.slot, slot);
  }

  /** The window of a slot; one without polls if it was not learned from. */
  #windowOf(slot: number): EventWindow {
    const window = this.window as EventWindow;
    if (slot === window.slot) return window;
    const known = this.#past.get(slot) ?? this.#blank(slot, this.#noneAfter(0));
    this.#past.set(slot, known);
    return known;
  }

  #blank(slot: number, none: number): EventWindow {
    const origin = this.events.clock.timeOf(slot);
    return new EventWindow({ slot, origin, cellMs: this.periodMs / CELLS, none }, this.#times);
  }

  // What polls show

  /** Learns from a poll sent at `sentAt`. `hasFailed`: the upstream sends it again. */
  observeOpen(item: Candidate, sentAt: number, hasFailed: boolean): void {
    const { window } = this;
    this.lastOpenAt = Math.max(this.lastOpenAt, sentAt);
    const isSent = item.order > 0 && this.line.sentAt(item) !== null;
    if (window && !hasFailed && isSent) this.#sightOpen(item, window, sentAt);
    item.openAt = Math.max(item.openAt, sentAt);
    if (hasFailed && item.order > 0) this.line.requeue(item, sentAt);
  }

  #sightOpen(item: Candidate, window: EventWindow, sentAt: number): void {
    const x = this.events.position(this.line.sentAt(item) as number);
    const at = window.cellAt(sentAt);
    const prospect = this.prospect(item, window.slot);
    this.#reviseLast(item, x, window.slot - 1);
    if (window.isExact && prospect.within > CERTAIN) {
      window.hasOpen = true;
      this.trust.observeOpen();
    }
    if (at < 0) return;
    const since = item.openAt < window.origin ? -1 : window.cellAt(item.openAt);
    const sighting = { ...prospect, since, at: Math.max(at, since), isFinal: false };
    window.observe(sighting, this.#isSample(item));
    if (window.number === null) return;
    // Either the row is late, or its block is a later one.
    const seen = DOUBT * (window.mean[at] as number);
    this.#wait.observeBoundary(x, window.number, false, seen);
  }

  /** It was open after a slot: the less likely it is that this slot had an event. */
  #reviseLast(item: Candidate, x: number, slot: number): void {
    const last = this.#past.get(slot);
    const isKnown = (this.events.newest as FinalEvent).slot >= slot;
    if (!last || isKnown || this.#slotOf(item.openAt) >= slot) return;
    const within = this.#finalBy(x, slot, true) - this.#finalBy(x, slot - 1, false);
    last.weaken(1 - within);
  }

  /** Learns from a finality. Returns whether it shows a new event. */
  observeFinal(
    item: Candidate,
    block: number | null,
    { readAt, responseMs }: { readAt: number; responseMs: number },
  ): boolean {
    const { line, trust } = this;
    this.hasBlocks = block !== null;
    const queuedAt = line.queuedAt(item);
    const openAt = Math.min(readAt, Math.max(item.openAt, queuedAt));
    if (item.order === 0 || block === null) {
      // One that its first poll finds final was probably final when it was tracked.
      const isFirst = item.openAt === NEVER && readAt - queuedAt < ALREADY_FINAL_MS;
      this.ages.learn(openAt - queuedAt, isFirst ? 0 : readAt - queuedAt);
      line.remove(item, readAt);
      return false;
    }
    const wasTrusted = trust.isTrusted;
    trust.observeFinal(item, block, readAt, { periodMs: this.periodMs, responseMs });
    if (this.window?.isExact && block === this.window.number) this.window.hasFinal = true;
    if (wasTrusted && !trust.isTrusted) this.#startAnew();
    const { newest } = this.events;
    const isNews = !newest || block > newest.number;
    if (isNews) this.#infer(item, block, openAt, readAt);
    const event = this.events.eventOf(block);
    const after = Math.min(readAt, Math.max(openAt, this.events.before(event)));
    this.ages.learn(after - queuedAt, readAt - queuedAt);
    this.#learnBlock(item, block, event, isNews, readAt);
    line.remove(item, readAt);
    return isNews;
  }

  #learnBlock(
    item: Candidate,
    block: number,
    event: FinalEvent | null,
    isNews: boolean,
    readAt: number,
  ): void {
    const { window, line, events } = this;
    const sentAt = line.sentAt(item);
    if (!window || sentAt === null) return;
    const x = events.position(sentAt);
    const own = event?.slot === window.slot ? window : this.#past.get(event?.slot ?? NEVER);
    if (own && own.number !== null && !isNews)
      this.#sight(own, { before: 0, within: 1 }, item, readAt);
    if (block === window.number) this.#wait.observeBoundary(x, block, true, 1);
    if (!line.isAgain(item)) this.#wait.learn(x, block);
    const waited = block - events.position(line.queuedAt(item));
    const isLong = waited > this.#wait.median + USUAL_BLOCKS;
    const blocksFrom = (time: number) => Math.ceil(block - events.position(time));
    if (line.learn(item, block, blocksFrom, isLong, event?.at ?? readAt)) this.#wait.forget();
  }

  #sight(window: EventWindow, prospect: Prospect, item: Candidate, readAt: number): void {
    const at = window.cellAt(readAt);
    if (at < 0) return;
    const since = item.openAt < window.origin ? -1 : window.cellAt(item.openAt);
    const sighting = { ...prospect, since: Math.min(since, at), at, isFinal: true };
    window.observe(sighting, this.#isSample(item));
    this.delays++;
  }

  /** While the event is sought, all polls are stored; then those of a sample of its rows. */
  #isSample(item: Candidate): boolean {
    const stride = Math.max(1, Math.round(this.line.size / SAMPLED));
    return this.window?.number === null || item.order % stride === 0;
  }

  /** A poll found a block that was not known to be final: an event has happened. */
  #infer(item: Candidate, block: number, openAt: number, readAt: number): void {
    const { events, window } = this;
    const { newest, clock } = events;
    if (!window || !newest || !events.isTimed) {
      const after = Math.min(readAt - 1, Math.max(openAt, this.lastOpenAt, newest?.at ?? NEVER));
      this.#observeEvent({ number: block, after, by: readAt }, false);
      this.#reopen(item, block, readAt);
      return;
    }
    if (window.number !== null && window.slot === newest.slot) {
      // More blocks became final with the same event, unless slots are shorter.
      window.number = block;
      events.observe({ ...newest, number: block });
      if (!clock.learn({ number: block, after: openAt, by: readAt })) return;
      this.#renumber();
      this.#reopen(item, block, readAt);
      return;
    }
    const prospect = this.prospect(item, window.slot);
    const seen = prospect.within * (window.mean[Math.max(0, window.cellAt(readAt))] as number);
    if (item.openAt < window.origin && seen <= prospect.before) {
      const at = Math.min(readAt, window.origin);
      events.observe({ number: block, at, isExact: false, slot: window.slot - 1 });
      return;
    }
    this.#emptyRun = 0;
    this.#find(window, item, block, prospect, readAt);
    const by = Math.min(readAt, window.quantile(0.9));
    const after = Math.min(by - 1, window.quantile(0.1));
    this.#observeEvent({ number: block, after, by }, false, window.slot);
  }

  #reopen(item: Candidate, block: number, readAt: number): void {
    const { clock } = this.events;
    this.#open(clock.slotAt(readAt), clock.timeOf(clock.slotAt(readAt)), 0);
    this.#find(this.window as EventWindow, item, block, { before: 0, within: 1 }, readAt);
  }

  #find(
    window: EventWindow,
    item: Candidate,
    block: number,
    prospect: Prospect,
    readAt: number,
  ): void {
    window.number = block;
    window.isInformed = true;
    this.#sight(window, prospect, item, readAt);
  }

  /** Returns the expected time since finality of one found at `at`; null: no event is known. */
  lagOf(item: Candidate, blockNumber: number | null, at: number): number | null {
    if (blockNumber === null || !this.window) return null;
    const openAt = Math.min(at, Math.max(item.openAt, this.line.queuedAt(item)));
    const event = this.events.eventOf(blockNumber);
    return this.#windowOf(event?.slot ?? this.window.slot).lagMs(openAt, at);
  }
}

/** Whether a stored state is valid. */
export function isState({ ages, clock, times, wait, empty, senders }: FinalityModelState): boolean {
  const isIn = (value: number, most: number, least = 0) =>
    Number.isFinite(value) && value >= least && value <= most;
  return (
    isWeights(ages.weights, AGE_CELLS) &&
    Number.isSafeInteger(ages.observed) &&
    (clock === null || (isIn(clock.periodMs, 3_600_000, 200) && isIn(clock.originMs, 3_600_000))) &&
    isWeights(times.event, CELLS) &&
    isWeights(times.delay, DELAYS) &&
    isWeights(wait, WAIT_CELLS) &&
    isIn(empty, 1) &&
    (senders === null || (Number.isSafeInteger(senders) && isIn(senders, 1_000, 1)))
  );
}

import { checkingSchedule, nextCheck, rounded } from './distribution.ts';
import { CELLS, type EventWindow } from './event-times.ts';
import {
  AHEAD,
  CERTAIN,
  FinalityModel,
  type FinalityModelState,
  isState,
  type Prospect,
} from './model.ts';
import {
  type Candidate,
  ceilingMs,
  type FinalizedHead,
  NEVER,
  type PacingDescription,
  type PacingPolicy,
  type PolicyFactory,
  type PollResult,
} from './port.ts';

const NET = { maxIntervalMs: 60_000 };
/** Most submissions that one decision considers: a poll must not cost more the longer the line. */
const CONSIDERED = 10_000;
/** A lower probability of being final is not worth a poll. */
const LEAST = 0.02;
/** A submission with less is passed over; after so many, all that follow are. */
const PASSED = { least: 0.001, most: 400 };
/** From this probability on, a submission waits for the response of the scout. */
const UNCERTAIN = 0.03;
/** Most submissions that depend on the scout of a boundary: it is one of many. */
const BOUNDARY_SIZE = 3;
/** Number of delays from which they are known well enough not to poll one by one. */
const KNOWN_DELAYS = 12;
/** The part of a submission that is not the oldest, before an event is known. */
const UNFORESEEN = 1 / 16;
/** Of the present response time, the weight of the newest. */
const RESPONSE = { initialMs: 150, weight: 0.1, patience: 2 };
/** Further lag, in slots, of one that is not found in its slot. */
const END_LAG = 0.9;

/** `lagPrice`: requests that a second of lag is worth. */
export type EventPacingSettings = { lagPrice: number };

export function eventPacing({ lagPrice }: EventPacingSettings): PolicyFactory {
  return (deps) => new EventPacing(lagPrice, deps);
}

/**
 * Polls by final events: at some moment, all blocks up to a number become final. See README.md. The
 * scout of an event is polled on behalf of all that become final with it.
 */
class EventPacing implements PacingPolicy {
  readonly #price: number;
  readonly #reschedule: (item: Candidate, dueAt: number) => void;
  readonly #random: () => number;
  #model: FinalityModel;
  #scout: Candidate | null = null;
  #scoutSize = 1;
  #inFlight: { item: Candidate | null; sentAt: number } = { item: null, sentAt: NEVER };
  #responseMs = RESPONSE.initialMs;
  /** The submission of the present call: it is in no queue, so it must not be rescheduled. */
  #current: Candidate | null = null;
  readonly #plans = new Map<string, number>();
  #planned: EventWindow | null = null;
  #plannedVersion = 0;

  constructor(price: number, { reschedule, random }: Parameters<PolicyFactory>[0]) {
    [this.#price, this.#reschedule, this.#random] = [price, reschedule, random];
    this.#model = new FinalityModel(price);
  }

  register(item: Candidate, { polledAt }: { polledAt: number | null }, now: number): number {
    this.#current = item;
    const { line, periodMs } = this.#model;
    if (polledAt !== null) item.openAt = polledAt;
    this.#advance(now);
    if (now - item.trackedAt < AHEAD * periodMs || line.isSerial) line.append(item);
    this.#begin(now);
    return this.#dueAt(item, now);
  }

  unregister(item: Candidate, now: number): void {
    this.#current = item;
    const { line, window } = this.#model;
    line.remove(item, now);
    line.forget(item);
    if (this.#inFlight.item === item) this.#inFlight.item = null;
    this.#begin(now);
    if (this.#scout === item || !window) this.#appoint(now);
  }

  observeHead(head: FinalizedHead, now: number): void {
    this.#current = null;
    this.#advance(now);
    const isNews = this.#model.observeHead(head, now);
    if (this.#model.trust.isTestDue) this.#test(now);
    if (isNews) this.#assign(now);
    else if (!this.#model.window) this.#appoint(now);
  }

  learn(item: Candidate, result: PollResult, now: number): number {
    this.#current = item;
    this.#advance(now);
    if (this.#inFlight.item === item) this.#inFlight.item = null;
    switch (result.kind) {
      case 'finalized':
        this.#responded(result);
        this.#final(item, valid(result.blockNumber), result, now);
        return now;
      case 'error':
      case 'pending':
      case 'not_found':
        this.#responded(result);
        this.#open(item, result, now);
        return this.#dueAt(item, now);
      default:
        return this.#retryAt(item, now);
    }
  }

  #responded({ durationMs }: PollResult): void {
    this.#responseMs += RESPONSE.weight * (durationMs - this.#responseMs);
  }

  #open(item: Candidate, { kind, at, durationMs }: PollResult, now: number): void {
    this.#model.observeOpen(item, at - durationMs, kind === 'error');
    this.#begin(now);
    const isSought = this.#model.window?.number === null;
    if (!isSought || !this.#scout || this.#scout === item) this.#appoint(now);
  }

  #final(item: Candidate, block: number | null, { at, durationMs }: PollResult, now: number): void {
    const { line } = this.#model;
    const reading = { readAt: at - durationMs / 2, responseMs: this.#responseMs };
    const isNews = this.#model.observeFinal(item, block, reading);
    this.#begin(now);
    const isUncertain = this.#scout === item || this.#model.delays < KNOWN_DELAYS || line.isSerial;
    if (isNews || isUncertain) this.#assign(now);
  }

  /** Returns when to repeat: after some seconds, or a tenth of the time without evidence. */
  #retryAt({ trackedAt, openAt }: Candidate, now: number): number {
    const silentMs = now - Math.max(trackedAt, openAt);
    const delayMs = Math.max(1_000 + 4_000 * this.#random(), silentMs / 10);
    return now + Math.min(delayMs, ceilingMs(NET, silentMs));
  }

  confirm(item: Candidate, now: number): number {
    this.#current = item;
    this.#advance(now);
    const dueAt = this.#dueAt(item, now);
    if (dueAt > now || now >= this.#netAt(item, now)) return dueAt;
    // While the event is sought, or delays are unknown, one poll at a time.
    const { window, delays } = this.#model;
    const isKnown = window && window.number !== null && delays >= KNOWN_DELAYS;
    if (isKnown && item !== this.#scout) return dueAt;
    if (window && this.#model.prospect(item, window.slot).before > CERTAIN) return dueAt;
    const responseAt = this.#inFlight.sentAt + RESPONSE.patience * this.#responseMs;
    if (this.#inFlight.item && now < responseAt) return responseAt;
    this.#inFlight = { item, sentAt: now };
    return dueAt;
  }

  gain(item: Candidate, now: number): number {
    const { window } = this.#model;
    if (item.order === 0 || !window) return LEAST;
    const { before, within } = this.#model.prospect(item, window.slot);
    return before + within * (window.mean[Math.max(0, window.cellAt(now))] as number);
  }

  isOverdue(item: Candidate, now: number): boolean {
    return now >= this.#netAt(item, now);
  }

  lagOf(item: Candidate, found: { blockNumber: number | null; at: number }): number | null {
    return this.#model.lagOf(item, valid(found.blockNumber), found.at);
  }

  snapshot(): string {
    return JSON.stringify({ version: VERSION, ...this.#model.state }, (_key, value) =>
      typeof value === 'number' && !Number.isInteger(value) ? Number(value.toPrecision(5)) : value,
    );
  }

  restore(text: string): void {
    const state = readState(text);
    if (state) this.#model = new FinalityModel(this.#price, state);
  }

  describe(now: number): PacingDescription {
    this.#current = null;
    this.#advance(now);
    const { window, events, ages, silentAt, periodMs } = this.#model;
    const curve = window ? this.#curve(now) : ages.curve();
    const cdf = curve.map(({ probability }) => probability);
    const widths = curve.map(({ afterMs }, i) => (afterMs - (curve[i - 1]?.afterMs ?? 0)) / 1_000);
    const next = checkingSchedule({ cdf, widths, from: 0, price: this.#price, endLag: 0 });
    const pollsMs: number[] = [];
    for (let i = next[0] ?? -1; i > 0; i = next[i] ?? -1) pollsMs.push(curve[i - 1]?.afterMs ?? 0);
    const isHeads = window !== null && now < silentAt;
    return {
      mode: isHeads ? 'heads' : window ? 'slots' : 'age',
      slot: window && { periodMs, nextEventAt: this.#nextEventAt(now), emptyShare: events.empty },
      observed: ages.observed,
      lagPrice: this.#price,
      curve,
      pollsMs,
    };
  }

  // Slots

  /** Follows the present slot. */
  #advance(now: number): void {
    if (!this.#model.advance(now)) return;
    this.#dropOld(now);
    this.#begin(now);
    this.#appoint(now);
  }

  /** Who waits for too long is polled by age. */
  #dropOld(now: number): void {
    const { line, periodMs } = this.#model;
    if (line.isSerial) return;
    for (let item = line.first; item; item = line.first) {
      if (now - line.queuedAt(item) < AHEAD * periodMs) return;
      line.remove(item, now);
      this.#pollEarlier(item, now);
    }
  }

  /** Plans the polls of submissions that have been sent. */
  #begin(now: number): void {
    for (const item of this.#model.line.begin()) this.#pollEarlier(item, now);
  }

  // Decisions

  /** Yields those that may be final with the present event, in order. */
  *#likely(window: EventWindow): Generator<{ item: Candidate } & Prospect> {
    let [likely, passed] = [0, 0];
    for (const item of this.#model.line) {
      const { before, within } = this.#model.prospect(item, window.slot);
      if (before + within < PASSED.least) passed++;
      else if (++likely <= CONSIDERED) yield { item, before, within };
      if (likely > CONSIDERED || passed > PASSED.most) return;
    }
  }

  #isBoundary({ within }: Prospect): boolean {
    return within > UNCERTAIN && within < CERTAIN;
  }

  /** Appoints the scout and has it polled in time. */
  #appoint(now: number): void {
    const { window, line } = this.#model;
    this.#scout = null;
    if (!window) {
      if (line.first) this.#pollEarlier(line.first, now);
      return;
    }
    const isSought = window.number === null;
    let [most, size] = [0, 0];
    for (const { item, before, within } of this.#likely(window)) {
      const isPolled = item.openAt >= window.origin;
      let gain = 0;
      if (isSought) {
        size += within;
        // The most probable one; of those, one that was not polled before.
        const rank = isPolled ? 0.9 : 1;
        if (within > LEAST)
          gain = within * (1 - before) * rank * (item === this.#current ? 0.95 : 1);
      } else if (this.#isBoundary({ before, within }) && !isPolled) {
        size++;
        gain = within * (1 - within);
      }
      if (gain > most && item !== this.#inFlight.item) [this.#scout, most] = [item, gain];
    }
    this.#scoutSize = Math.max(1, isSought ? size : Math.min(BOUNDARY_SIZE, size));
    if (this.#scout) this.#pollEarlier(this.#scout, now);
  }

  /** After news: all that are probably final are polled. */
  #assign(now: number): void {
    this.#appoint(now);
    const { window } = this.#model;
    if (!window) return;
    for (const { item, before, within } of this.#likely(window))
      if (before + within >= LEAST) this.#pollEarlier(item, now);
  }

  /** Polls one at once that is certainly final: it shows whether heads are late. */
  #test(now: number): void {
    const { window, trust } = this.#model;
    if (!window) return;
    for (const { item, within } of this.#likely(window)) {
      if (within < 0.5) continue;
      trust.begin(item);
      this.#pollEarlier(item, now);
      return;
    }
  }

  #pollEarlier(item: Candidate, now: number): void {
    if (item === this.#current || item === this.#inFlight.item) return;
    const dueAt = this.#dueAt(item, now);
    if (dueAt < item.dueAt - 1) this.#reschedule(item, dueAt);
  }

  #netAt({ trackedAt, openAt }: Candidate, now: number): number {
    return Math.max(trackedAt, openAt) + ceilingMs(NET, now - trackedAt);
  }

  #dueAt(item: Candidate, now: number): number {
    const [ownAt, netAt] = [this.#ownAt(item, now), this.#netAt(item, now)];
    return Math.max(now, ownAt < netAt ? ownAt : netAt);
  }

  #ownAt(item: Candidate, now: number): number {
    const { window, line, trust, silentAt, events, hasBlocks } = this.#model;
    if (item.order === 0 || !(window || hasBlocks)) return this.#ageAt(item, 1);
    if (item === trust.tested && item.openAt < trust.arrivedAt) return now;
    if (!window || !events.isTimed) return this.#firstAt(item);
    if (now < silentAt) return Math.min(silentAt, this.#inWindow(item, window, now) ?? silentAt);
    if (line.sentAt(item) === null) return Number.POSITIVE_INFINITY;
    // Slots may be shorter than assumed.
    const isOldest = !events.clock.isSettled && item === line.first;
    const firstAt = isOldest ? this.#firstAt(item) : Number.POSITIVE_INFINITY;
    const first = Math.max(window.slot, Math.floor(events.clock.position(now)));
    for (let slot = first; slot < first + AHEAD; slot++) {
      const at =
        slot === window.slot ? this.#inWindow(item, window, now) : this.#inSlot(item, slot);
      if (at !== null) return Math.min(at, firstAt);
    }
    return Math.min(firstAt, this.#ageAt(item, 1));
  }

  /** Before an event is known, the oldest is polled on behalf of all. */
  #firstAt(item: Candidate): number {
    const { line } = this.#model;
    return this.#ageAt(item, item === line.first ? Math.max(1, line.size / 2) : UNFORESEEN);
  }

  #ageAt(item: Candidate, dependents: number): number {
    const { ages, line } = this.#model;
    const queuedAt = line.queuedAt(item);
    return queuedAt + ages.nextAgeMs(Math.max(0, item.openAt - queuedAt), dependents);
  }

  #inWindow(item: Candidate, window: EventWindow, now: number): number | null {
    const prospect = this.#model.prospect(item, window.slot);
    const from = window.cellAt(now) + 1;
    if (prospect.before + prospect.within < LEAST || from >= CELLS) return null;
    const isScout = this.#scout === item;
    const isSought = window.number === null;
    // A scout seeks the event for all: an open poll of another one counts as its own.
    const openAt =
      isScout && isSought ? Math.max(item.openAt, this.#model.lastOpenAt) : item.openAt;
    const since = openAt < window.origin ? -1 : window.cellAt(openAt);
    const cell = this.#plan(window, prospect, since, from, isScout ? this.#scoutSize : 1);
    if (cell < 0) return null;
    const at = window.timeOf(cell);
    const isWaiting =
      !isSought && !isScout && this.#isBoundary(prospect) && item.openAt < window.origin;
    if (!isWaiting || !this.#scout) return at;
    // The scout responds first, unless it hangs.
    const { item: sent, sentAt } = this.#inFlight;
    const scoutAt = sent === this.#scout ? sentAt : this.#scout.dueAt;
    return Math.max(at, scoutAt + RESPONSE.patience * this.#responseMs);
  }

  #inSlot(item: Candidate, slot: number): number | null {
    const { blank, events } = this.#model;
    const prospect = this.#model.prospect(item, slot);
    if (!blank || prospect.before + prospect.within < LEAST) return null;
    const cell = this.#plan(blank, prospect, -1, 0, 1);
    return cell < 0 ? null : events.clock.timeOf(slot + cell / CELLS);
  }

  /** Returns the cell of the next poll; -1: none in this slot. */
  #plan(
    window: EventWindow,
    { before, within }: Prospect,
    since: number,
    from: number,
    dependents: number,
  ): number {
    const present = this.#model.window as EventWindow;
    if (present !== this.#planned || present.version !== this.#plannedVersion) this.#plans.clear();
    [this.#planned, this.#plannedVersion] = [present, present.version];
    const [b, w] = [Math.round(before * 50) / 50, Math.max(LEAST, Math.round(within * 50) / 50)];
    const weight = rounded(dependents);
    const key = `${window === present} ${b} ${w} ${since} ${from} ${weight}`;
    let cell = this.#plans.get(key);
    if (cell !== undefined) return cell;
    const known = since < 0 ? 0 : b + w * (window.mean[since] as number);
    const left = Math.max(1e-6, 1 - known);
    const cdf = window.mean.map((p) => Math.min(1, Math.max(0, (b + w * p - known) / left)));
    const widths = new Float64Array(CELLS).fill(window.cellMs / 1_000);
    const endLag = (END_LAG * CELLS * window.cellMs) / 1_000;
    cell = nextCheck({ cdf, widths, from, price: this.#price * weight, endLag });
    this.#plans.set(key, cell);
    return cell;
  }

  // For operators

  #nextEventAt(now: number): number {
    const { blank, events } = this.#model;
    const at = Math.floor(events.clock.position(now));
    const inSlot = blank ? blank.quantile(0.5) - blank.origin : 0;
    return (
      [at, at + 1].map((slot) => events.clock.timeOf(slot) + inSlot).find((t) => t > now) ?? now
    );
  }

  /** The probabilities of a submission that is sent now. */
  #curve(now: number): PacingDescription['curve'] {
    const { blank, events } = this.#model;
    const item = { trackedAt: now, dueAt: now, order: Number.MAX_SAFE_INTEGER, openAt: NEVER };
    const curve = [{ afterMs: 0, probability: 0 }];
    let last = 0;
    for (
      let slot = events.clock.slotAt(now), end = slot + AHEAD;
      slot < end && last < 0.998;
      slot++
    ) {
      const { before, within } = this.#model.prospect(item, slot);
      for (let cell = 4; blank && cell < CELLS; cell += 5) {
        const afterMs = events.clock.timeOf(slot + (cell + 1) / CELLS) - now;
        if (afterMs <= 0) continue;
        last = Math.max(last, Math.min(1, before + within * (blank.mean[cell] as number)));
        curve.push({ afterMs, probability: last });
      }
    }
    return curve;
  }
}

/** Block numbers have 32 bits. */
function valid(block: number | null): number | null {
  return block !== null && Number.isInteger(block) && block >= 0 && block < 2 ** 32 ? block : null;
}

const VERSION = 1;

/** Returns undefined for text that `snapshot` did not write. */
function readState(text: string): FinalityModelState | undefined {
  try {
    const { version, ...state } = JSON.parse(text);
    return version === VERSION && isState(state) ? state : undefined;
  } catch {
    return undefined;
  }
}

/** Number of finality events stored; number of new events after which the search is repeated. */
export const CLOCK_EVENTS = 64;
const SEARCH_EVERY = 8;
/** Numbers of newest events by which a known period and its phase are verified. */
const NEWEST = 12;
const PHASE_EVENTS = 24;
/** Slot times are configured, so only multiples of this are periods; least and largest multiple. */
const UNIT = { ms: 100, least: 2, most: 900 };
/** Range of periods, in median ages of finals: few wait for less than a quarter of a slot. */
const RANGE = { shortest: 1 / 24, longest: 4 };
/** The most likely slot times: those of public chains. Whole seconds are the next. */
const USUAL_SLOTS_MS = [20_000, 12_000, 6_000];
const COST = { usual: 5, second: 14, other: 25 };
/**
 * A usual slot time is adopted at this Bayes factor over this many slots. `window`: share of the
 * slot in which groups become final; `other`: share of events outside of it.
 */
const BAYES = { factor: 20, slots: 1.5, window: 0.15, other: 0.2, phases: 60 };
/** Another period is adopted after this many events, if its evidence exceeds its cost. */
const OTHER_EVENTS = 12;
/** Mean resultant length of events that have a period. */
const LEAST_LENGTH = 0.6;
/**
 * Effective numbers of newest events that show another period, and none. Intervals longer than a
 * slot are no evidence.
 */
const LEAST_COUNT = { other: 3, lost: 8 };
/** A slot begins this share before the mean time of finality, so that no group is split. */
const LEAD = 0.3;

/** The finality of a group, in (after, by], epoch ms. */
export type FinalityEvent = { readonly after: number; readonly by: number };

export type SlotClockState = { periodMs: number; originMs: number };

/**
 * `length`: mean resultant length, 0 to 1; `count`: effective number of events; `evidence`:
 * log-likelihood ratio (nats); `at`: a time of the mean phase, epoch ms.
 */
type Fit = { periodMs: number; length: number; count: number; evidence: number; at: number };

/**
 * Estimates slot time and phase of a chain from a periodogram of finality events (Mardia and Jupp,
 * "Directional Statistics", 2000). Null until a period is significant. Times are epoch ms.
 */
export class SlotClock {
  readonly #events: FinalityEvent[];
  #state: SlotClockState | null;
  #sinceSearch = 0;

  /** `events`: the events from which `state` was learned. */
  constructor(state: SlotClockState | null = null, events: readonly FinalityEvent[] = []) {
    this.#state = state && { periodMs: state.periodMs, originMs: state.originMs };
    this.#events = [...events];
  }

  get events(): readonly FinalityEvent[] {
    return this.#events;
  }

  get state(): SlotClockState | null {
    return this.#state;
  }

  /** Returns the slot number, from the epoch, with a fraction for the phase. */
  position(time: number): number {
    const state = this.#state;
    return state ? (time - state.originMs) / state.periodMs : 0;
  }

  timeOf(position: number): number {
    const state = this.#state;
    return state ? state.originMs + position * state.periodMs : 0;
  }

  /**
   * Learns from an event. `ageMs`: median age of final submissions. Returns whether earlier slot
   * numbers and phases are invalid.
   */
  learn(event: FinalityEvent, ageMs: number, isSerial = false): boolean {
    this.#events.push(event);
    this.#truncate(CLOCK_EVENTS);
    this.#sinceSearch++;
    const periodMs = this.#state?.periodMs;
    if (periodMs && periodMs > RANGE.longest * ageMs) {
      this.#truncate(0);
      return this.#adopt(null);
    }
    if ((periodMs || this.#events.length === CLOCK_EVENTS) && this.#sinceSearch < SEARCH_EVERY)
      return false;
    this.#sinceSearch = 0;
    const found = search(this.#events, ageMs, isSerial);
    if (!periodMs) return this.#adopt(found);
    return this.#replace(periodMs, ageMs, isSerial) || this.#follow(periodMs, found);
  }

  #replace(periodMs: number, ageMs: number, isSerial: boolean): boolean {
    const newest = this.#events.slice(-NEWEST);
    const { length, count } = fitOf(newest, periodMs);
    if (newest.length < SEARCH_EVERY || length >= 0.55 || count < LEAST_COUNT.other) return false;
    const found = search(newest, ageMs, isSerial);
    const isBetter = found !== null && found.length > length + 0.25;
    const lately = fitOf(this.#events.slice(-PHASE_EVENTS), periodMs);
    const isLost = lately.count >= LEAST_COUNT.lost && lately.length < 0.25;
    if (!isBetter && !isLost) return false;
    this.#truncate(NEWEST);
    return this.#adopt(isBetter ? found : null);
  }

  #follow(periodMs: number, found: Fit | null): boolean {
    // Events of a short time fit every longer period.
    if (spanOf(this.#events) < 3 * periodMs) return false;
    if (found && periodMs % found.periodMs !== 0) return this.#adopt(found);
    const fit = fitOf(this.#events.slice(-PHASE_EVENTS), periodMs);
    const position = this.position(fit.at);
    return Math.abs(position - Math.floor(position) - LEAD) < 0.2 ? false : this.#adopt(fit);
  }

  #adopt(clock: Fit | null): boolean {
    const isOther = clock !== null || this.#state !== null;
    this.#state = null;
    if (clock) {
      const { periodMs, at } = fitOf(this.#events.slice(-PHASE_EVENTS), clock.periodMs);
      this.#state = { periodMs, originMs: modulo(at - LEAD * periodMs, periodMs) };
    }
    return isOther;
  }

  #truncate(count: number): void {
    this.#events.splice(0, this.#events.length - count);
  }
}

function search(events: readonly FinalityEvent[], ageMs: number, isSerial: boolean): Fit | null {
  const spanMs = spanOf(events);
  const usual = USUAL_SLOTS_MS.filter(
    (periodMs) =>
      periodMs <= RANGE.longest * ageMs &&
      spanMs > BAYES.slots * periodMs &&
      bayesFactor(events, periodMs) > BAYES.factor,
  )
    .map((periodMs) => fitOf(events, periodMs))
    .filter(({ length }) => length > LEAST_LENGTH);
  // A serial sender uses every second slot at most, so twice the slot time fits as well.
  if (isSerial && usual.length > 0) return mostLikely(usual);
  return mostLikely([...usual, ...otherFits(events, ageMs, spanMs)]);
}

function otherFits(events: readonly FinalityEvent[], ageMs: number, spanMs: number): Fit[] {
  if (events.length < OTHER_EVENTS) return [];
  const fits: Fit[] = [];
  const longestMs = Math.min(RANGE.longest * ageMs, spanMs / 3, UNIT.most * UNIT.ms);
  for (let multiple = UNIT.least; multiple * UNIT.ms <= longestMs; multiple++) {
    const periodMs = multiple * UNIT.ms;
    if (USUAL_SLOTS_MS.includes(periodMs) || periodMs < RANGE.shortest * ageMs) continue;
    const fit = fitOf(events, periodMs);
    if (fit.length > LEAST_LENGTH && fit.evidence > costOf(periodMs)) fits.push(fit);
  }
  return fits;
}

function mostLikely(fits: readonly Fit[]): Fit | null {
  const scoreOf = ({ periodMs, evidence }: Fit) => evidence - costOf(periodMs);
  return fits.reduce<Fit | null>(
    (best, fit) => (best && scoreOf(best) >= scoreOf(fit) ? best : fit),
    null,
  );
}

/** Returns how many times as likely events are with a period, over its phases, as without. */
function bayesFactor(events: readonly FinalityEvent[], periodMs: number): number {
  const narrow = events.filter(({ after, by }) => by - after < periodMs);
  let sum = 0;
  for (let phase = 0; phase < BAYES.phases; phase++) {
    const startMs = (phase / BAYES.phases) * periodMs;
    sum += narrow.reduce((product, event) => {
      const share = shareInWindow(event, startMs, periodMs);
      return product * (BAYES.other + ((1 - BAYES.other) * share) / BAYES.window);
    }, 1);
  }
  return sum / BAYES.phases;
}

/** Returns the share of an interval inside the window that begins at `startMs` of each period. */
function shareInWindow({ after, by }: FinalityEvent, startMs: number, periodMs: number): number {
  const from = modulo(after - startMs, periodMs);
  const widthMs = Math.max(1, by - after);
  const windowMs = BAYES.window * periodMs;
  const first = Math.min(from + widthMs, windowMs) - from;
  const second = Math.min(from + widthMs - periodMs, windowMs);
  return (Math.max(0, first) + Math.max(0, second)) / widthMs;
}

function fitOf(events: readonly FinalityEvent[], periodMs: number): Fit {
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
  const length = Math.min(0.999, Math.hypot(x, y) / sum);
  // The effective sample size; intervals as wide as the period are hardly evidence.
  const count = Math.min(sum ** 2 / squares, 4 * sum);
  // The von Mises likelihood at its maximum: n r² for small r, n log(1 / spread) near 1.
  const evidence = count * 0.5 * (length ** 2 - Math.log(1 - length ** 2));
  return { periodMs, length, count, evidence, at };
}

function costOf(periodMs: number): number {
  if (USUAL_SLOTS_MS.includes(periodMs)) return COST.usual;
  return periodMs % 1_000 === 0 ? COST.second : COST.other;
}

function spanOf(events: readonly FinalityEvent[]): number {
  const times = events.map(({ by }) => by);
  return Math.max(...times) - Math.min(...times);
}

function modulo(value: number, divisor: number): number {
  return ((value % divisor) + divisor) % divisor;
}

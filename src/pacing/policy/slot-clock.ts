/** Number of finality events stored; minimum for a search; number of new events after which the search is repeated. */
export const CLOCK_EVENTS = 64;
const MIN_EVENTS = 6;
const SEARCH_EVERY = 8;
/** Numbers of newest events by which a known period and its phase are verified. */
const NEWEST = 12;
const PHASE_EVENTS = 24;
/** Slot times of public chains (s), tried first. */
const USUAL_SLOTS_S = [20, 12, 6];
const SHORTEST_MS = 1_000;
const LONGEST_MS = 90_000;
const MAX_FREQUENCIES = 20_000;
/** Units in which chains configure slot times (ms), and the loss of fit that a period rounded to the unit may have. */
const ROUND = [
  { unitMs: 1_000, worse: 0.05 },
  { unitMs: 100, worse: 0.01 },
];
/** A slot begins this share of a slot before the mean time of finality, so that no group is split between two slots. */
const LEAD = 0.3;

/** The finality of a group, in the interval from `after` (exclusive) to `by` (inclusive), epoch ms. */
export type FinalityEvent = { readonly after: number; readonly by: number };

export type SlotClockState = { periodMs: number; originMs: number };

/**
 * The fit of events to a period. `length`: mean resultant length, 0 to 1; `effective`: effective number of events; `at`: a
 * time of the mean phase, epoch ms.
 */
type Fit = { periodMs: number; length: number; effective: number; at: number };

/**
 * Estimates the slot time and phase of a chain: the period with which groups of submissions become final, from a
 * periodogram of the finality events (mean resultant length and Rayleigh test: Mardia and Jupp, "Directional Statistics",
 * 2000). The state is null until a significant period is found. Times are epoch milliseconds.
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

  /** Returns the slot number at a time, with a fraction for the phase. Slots are numbered from the epoch. */
  position(time: number): number {
    const state = this.#state;
    return state ? (time - state.originMs) / state.periodMs : 0;
  }

  timeOf(position: number): number {
    const state = this.#state;
    return state ? state.originMs + position * state.periodMs : 0;
  }

  /**
   * Learns from an event. Periods above `longestMs` are excluded. Returns whether the clock has changed, so that earlier
   * slot numbers and phases are invalid.
   */
  learn(event: FinalityEvent, longestMs = LONGEST_MS): boolean {
    this.#events.push(event);
    this.#truncate(CLOCK_EVENTS);
    this.#sinceSearch++;
    const state = this.#state;
    if (state && state.periodMs > longestMs) {
      this.#truncate(0);
      return this.#adopt(null);
    }
    if ((state || this.#events.length === CLOCK_EVENTS) && this.#sinceSearch < SEARCH_EVERY) return false;
    this.#sinceSearch = 0;
    if (!state) return this.#adopt(search(this.#events, longestMs));
    return this.#replace(state.periodMs, longestMs) || this.#follow(state);
  }

  /** Replaces or drops the period if the newest events do not fit it. Returns whether it did. */
  #replace(periodMs: number, longestMs: number): boolean {
    const newest = this.#events.slice(-NEWEST);
    const { length } = fitOf(newest, periodMs);
    if (newest.length < SEARCH_EVERY || length >= 0.55) return false;
    const found = search(newest, longestMs);
    const isOther = found !== null && Math.abs(found.periodMs - periodMs) > 1e-3 * periodMs;
    const isBetter = isOther && fitOf(newest, found.periodMs).length > length + 0.25;
    const isLost =
      this.#events.length >= PHASE_EVENTS && fitOf(this.#events.slice(-PHASE_EVENTS), periodMs).length < 0.25;
    if (!isBetter && !isLost) return false;
    this.#truncate(NEWEST);
    this.#adopt(isBetter ? found : null);
    return true;
  }

  /** Adjusts the period. Returns whether the clock has changed, because the phase has drifted too far. */
  #follow({ periodMs, originMs }: SlotClockState): boolean {
    const best = refine(this.#events, periodMs);
    // The slot of the newest event keeps its number and its start.
    const slot = Math.floor(this.position(this.#events.at(-1)?.by ?? originMs));
    this.#state = { periodMs: best.periodMs, originMs: this.timeOf(slot) - slot * best.periodMs };
    const position = this.position(best.at);
    if (Math.abs(position - Math.floor(position) - LEAD) < 0.2) return false;
    return this.#adopt(best);
  }

  #adopt(clock: Fit | null): boolean {
    const isOther = clock !== null || this.#state !== null;
    this.#state = clock && {
      periodMs: clock.periodMs,
      originMs: modulo(clock.at - LEAD * clock.periodMs, clock.periodMs),
    };
    return isOther;
  }

  #truncate(count: number): void {
    this.#events.splice(0, this.#events.length - count);
  }
}

/** Returns the period of the events; null if none is significant. */
function search(events: readonly FinalityEvent[], longestMs: number): Fit | null {
  if (events.length < MIN_EVENTS) return null;
  for (const periodMs of USUAL_SLOTS_S.map((s) => 1_000 * s)) {
    const { length, effective } = fitOf(events, periodMs);
    if (periodMs <= longestMs && effective * length ** 2 > 3.5 && length > 0.6) return refine(events, periodMs);
  }
  const spanMs = spanOf(events);
  if (events.length < 2 * MIN_EVENTS || spanMs < 4 * SHORTEST_MS) return null;
  const step = 1 / (3 * spanMs);
  const least = 1 / Math.min(longestMs, spanMs / 3);
  const count = Math.min(MAX_FREQUENCIES, Math.ceil((1 / SHORTEST_MS - least) / step));
  let best: Fit | null = null;
  for (let i = 0; i < count; i++) {
    const tried = fitOf(events, 1 / (least + i * step));
    // Multiples of the true frequency fit nearly as well, so the lowest frequency is preferred.
    if (tried.length > (best?.length ?? 0) + 0.08) best = tried;
  }
  if (!best || best.length < 0.6 || best.effective * best.length ** 2 < Math.log(count) + 4) return null;
  return refine(events, best.periodMs);
}

function fitOf(events: readonly FinalityEvent[], periodMs: number): Fit {
  const reference = events.at(-1)?.by ?? 0;
  let [x, y, sum, squares] = [0, 0, 0, 0];
  for (const { after, by } of events) {
    // An interval as wide as the period contains no information about the phase.
    const weight = Math.max(0.02, 1 - (by - after) / periodMs) ** 2;
    const angle = (2 * Math.PI * ((after + by) / 2 - reference)) / periodMs;
    x += weight * Math.cos(angle);
    y += weight * Math.sin(angle);
    sum += weight;
    squares += weight ** 2;
  }
  const at = reference + (Math.atan2(y, x) / (2 * Math.PI)) * periodMs;
  return { periodMs, length: Math.hypot(x, y) / sum, effective: sum ** 2 / squares, at };
}

/** Returns the best fit near a period, rounded to a unit of configured slot times if the events allow it. */
function refine(events: readonly FinalityEvent[], periodMs: number): Fit {
  const phase = events.slice(-PHASE_EVENTS);
  const spanMs = spanOf(events);
  if (spanMs < 3 * periodMs) return fitOf(phase, periodMs);
  const reach = (0.25 * periodMs * periodMs) / spanMs;
  const near = Array.from({ length: 41 }, (_, i) => fitOf(events, periodMs + reach * (i / 20 - 1)));
  const best = near.reduce((a, b) => (b.length > a.length ? b : a));
  for (const { unitMs, worse } of ROUND) {
    const rounded = Math.round(best.periodMs / unitMs) * unitMs;
    if (rounded <= 0 || Math.abs(rounded - best.periodMs) >= reach) continue;
    if (fitOf(events, rounded).length > best.length - worse) return fitOf(phase, rounded);
  }
  return fitOf(phase, best.periodMs);
}

function spanOf(events: readonly FinalityEvent[]): number {
  const times = events.map(({ by }) => by);
  return Math.max(...times) - Math.min(...times);
}

function modulo(value: number, divisor: number): number {
  return ((value % divisor) + divisor) % divisor;
}

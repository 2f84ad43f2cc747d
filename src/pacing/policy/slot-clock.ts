/** Number of finality events stored; minimum for a search; number of new events after which the search is repeated. */
export const CLOCK_EVENTS = 64;
const MIN_EVENTS = 6;
const SEARCH_EVERY = 8;
/** Numbers of newest events by which a known period and its phase are verified. */
const NEWEST = 12;
const PHASE_EVENTS = 24;
/** Slot times of public chains. */
const USUAL_SLOTS_MS = [20_000, 12_000, 6_000];
/**
 * Negative logarithm of the prior probability of a slot time (nats): slot times are configured in round numbers, and the
 * usual ones are the most likely. A period with less evidence is not believed.
 */
const PRIOR_COST = { usual: 5, second: 8, tenth: 14, other: 20 };
/** Factors by which a period may be too short, if few slots have had an event. */
const MULTIPLES = [2, 3, 4, 5];
/**
 * Effective numbers of the newest events that can show that there is another period, and none. A submission that its first
 * poll finds final has an interval longer than a slot, which shows nothing.
 */
const LEAST_COUNT = { other: 3, lost: 8 };
/** Mean resultant length of events that have a period. */
const LEAST_LENGTH = 0.6;
/** Range of the periods that are searched (ms), and as shares of the median age of final submissions. */
const RANGE = { shortestMs: 200, longestMs: 90_000, shortestShare: 1 / 24, longestShare: 4 };
const MAX_FREQUENCIES = 20_000;
/** A slot begins this share of a slot before the mean time of finality, so that no group is split between two slots. */
const LEAD = 0.3;

/** The finality of a group, in the interval from `after` (exclusive) to `by` (inclusive), epoch ms. */
export type FinalityEvent = { readonly after: number; readonly by: number };

type Range = { shortestMs: number; longestMs: number };

export type SlotClockState = { periodMs: number; originMs: number };

/**
 * The fit of events to a period. `length`: mean resultant length, 0 to 1; `count`: effective number of events; `evidence`:
 * log-likelihood ratio (nats) of events with this period to events without one; `at`: a time of the mean phase, epoch ms.
 */
type Fit = { periodMs: number; length: number; count: number; evidence: number; at: number };

/**
 * Estimates the slot time and phase of a chain: the period with which groups of submissions become final, from a
 * periodogram of the finality events (mean resultant length and von Mises likelihood: Mardia and Jupp, "Directional
 * Statistics", 2000). The state is null until a significant period is found. Times are epoch milliseconds.
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
   * Learns from an event. `ageMs`: median age of final submissions; they wait half a slot at least, and few wait for many.
   * `isSerial`: serial senders submit them. Returns whether the clock has changed, so that earlier slot numbers and phases
   * are invalid.
   */
  learn(event: FinalityEvent, ageMs: number, isSerial = false): boolean {
    const range: Range = {
      shortestMs: Math.max(RANGE.shortestMs, RANGE.shortestShare * ageMs),
      longestMs: Math.min(RANGE.longestMs, RANGE.longestShare * ageMs),
    };
    this.#events.push(event);
    this.#truncate(CLOCK_EVENTS);
    this.#sinceSearch++;
    const state = this.#state;
    if (state && (state.periodMs > range.longestMs || state.periodMs < RANGE.shortestMs)) {
      this.#truncate(0);
      return this.#adopt(null);
    }
    if ((state || this.#events.length === CLOCK_EVENTS) && this.#sinceSearch < SEARCH_EVERY) return false;
    this.#sinceSearch = 0;
    if (!state) return this.#adopt(search(this.#events, range));
    return this.#replace(state.periodMs, range) || this.#follow(state, range, isSerial);
  }

  /** Replaces or drops the period if the newest events do not fit it. Returns whether it did. */
  #replace(periodMs: number, range: Range): boolean {
    const newest = this.#events.slice(-NEWEST);
    const { length, count } = fitOf(newest, periodMs);
    if (newest.length < SEARCH_EVERY || length >= 0.55 || count < LEAST_COUNT.other) return false;
    const found = search(newest, range);
    const isBetter = found !== null && fitOf(newest, found.periodMs).length > length + 0.25;
    const lately = fitOf(this.#events.slice(-PHASE_EVENTS), periodMs);
    const isLost = lately.count >= LEAST_COUNT.lost && lately.length < 0.25;
    if (!isBetter && !isLost) return false;
    this.#truncate(NEWEST);
    this.#adopt(isBetter ? found : null);
    return true;
  }

  /** Adjusts the period. Returns whether the clock has changed, because the period or the phase has moved too far. */
  #follow({ periodMs, originMs }: SlotClockState, { longestMs }: Range, isSerial: boolean): boolean {
    // Events of a short time, such as those of submissions that were final when they were tracked, fit every longer period.
    if (spanOf(this.#events) < 3 * periodMs) return false;
    // A serial sender sends in every second slot at most, so twice the slot time fits the events of a busy hour as well.
    const multiples = isSerial ? [] : MULTIPLES.map((factor) => factor * periodMs);
    const others = [...multiples, ...USUAL_SLOTS_MS];
    const near = [periodMs, ...others.filter((other) => other <= longestMs)].map((other) =>
      refine(this.#events, other),
    );
    const best = near.filter((fit) => isSerial && isUsual(fit)).reduce(moreCredible, null) ?? near.reduce(moreCredible);
    if (Math.abs(best.periodMs - periodMs) > 0.01 * periodMs) return this.#adopt(best);
    // The slot of the newest event keeps its number and its start.
    const slot = Math.floor(this.position(this.#events.at(-1)?.by ?? originMs));
    const { at } = fitOf(this.#events.slice(-PHASE_EVENTS), best.periodMs);
    this.#state = { periodMs: best.periodMs, originMs: this.timeOf(slot) - slot * best.periodMs };
    const position = this.position(at);
    if (Math.abs(position - Math.floor(position) - LEAD) < 0.2) return false;
    return this.#adopt(best);
  }

  #adopt(clock: Fit | null): boolean {
    const isOther = clock !== null || this.#state !== null;
    if (clock) {
      const { periodMs, at } = fitOf(this.#events.slice(-PHASE_EVENTS), clock.periodMs);
      this.#state = { periodMs, originMs: modulo(at - LEAD * periodMs, periodMs) };
    } else {
      this.#state = null;
    }
    return isOther;
  }

  #truncate(count: number): void {
    this.#events.splice(0, this.#events.length - count);
  }
}

/** Returns the period of the events; null if none is significant. */
function search(events: readonly FinalityEvent[], { shortestMs, longestMs }: Range): Fit | null {
  if (events.length < MIN_EVENTS) return null;
  const usual = USUAL_SLOTS_MS.filter((periodMs) => periodMs <= longestMs).map((periodMs) => fitOf(events, periodMs));
  const credible = usual.filter(isUsual);
  if (credible.length > 0 || events.length < 2 * MIN_EVENTS) return credible.reduce(moreCredible, null);
  const spanMs = spanOf(events);
  const least = 1 / Math.min(longestMs, spanMs / 3);
  const step = 1 / (3 * spanMs);
  const count = Math.min(MAX_FREQUENCIES, Math.ceil((1 / shortestMs - least) / step));
  if (!(count > 0)) return null;
  const best = fitOf(events, 1 / bestFrequency(events, { least, step, count }));
  // The more frequencies are tried, the better the best of them fits by chance.
  const isCredible = best.length >= LEAST_LENGTH && best.evidence >= Math.log(count) + 4;
  return isCredible ? refine(events, best.periodMs) : null;
}

/**
 * Returns the frequency (per ms) with the most evidence. Turns the phase of each event from one frequency to the next, which
 * takes a tenth of the time of its sine and cosine at each.
 */
function bestFrequency(
  events: readonly FinalityEvent[],
  { least, step, count }: { least: number; step: number; count: number },
): number {
  const reference = events.at(-1)?.by ?? 0;
  const sums = Array.from({ length: 4 }, () => new Float64Array(count));
  const [xs, ys, weights, squares] = sums as [Float64Array, Float64Array, Float64Array, Float64Array];
  for (const { after, by } of events) {
    const angle = 2 * Math.PI * ((after + by) / 2 - reference);
    const [turnX, turnY] = [Math.cos(angle * step), Math.sin(angle * step)];
    let x = Math.cos(angle * least);
    let y = Math.sin(angle * least);
    for (let i = 0; i < count; i++) {
      const weight = weightOf((by - after) * (least + i * step));
      xs[i] = (xs[i] as number) + weight * x;
      ys[i] = (ys[i] as number) + weight * y;
      weights[i] = (weights[i] as number) + weight;
      squares[i] = (squares[i] as number) + weight * weight;
      const turned = x * turnX - y * turnY;
      y = x * turnY + y * turnX;
      x = turned;
    }
  }
  const evidence = xs.map(
    (x, i) => strengthOf(x, ys[i] as number, weights[i] as number, squares[i] as number).evidence,
  );
  return least + step * evidence.indexOf(evidence.reduce((a, b) => Math.max(a, b)));
}

function fitOf(events: readonly FinalityEvent[], periodMs: number): Fit {
  const reference = events.at(-1)?.by ?? 0;
  let [x, y, sum, squares] = [0, 0, 0, 0];
  for (const { after, by } of events) {
    const weight = weightOf((by - after) / periodMs);
    const angle = (2 * Math.PI * ((after + by) / 2 - reference)) / periodMs;
    x += weight * Math.cos(angle);
    y += weight * Math.sin(angle);
    sum += weight;
    squares += weight * weight;
  }
  const at = reference + (Math.atan2(y, x) / (2 * Math.PI)) * periodMs;
  return { periodMs, ...strengthOf(x, y, sum, squares), at };
}

/** Weight of an event. `share`: width of its interval in periods; one as wide as the period says nothing about the phase. */
function weightOf(share: number): number {
  const narrowness = Math.max(0.02, 1 - share);
  return narrowness * narrowness;
}

/** Returns the mean resultant length and the evidence of events with these weighted sums. */
function strengthOf(x: number, y: number, sum: number, squares: number): Pick<Fit, 'length' | 'count' | 'evidence'> {
  const length = Math.min(0.999, Math.hypot(x, y) / sum);
  // Approximates the von Mises likelihood at its maximum: n r² for small r, and n log(1 / spread) for r near 1.
  // The effective sample size; events whose intervals are all nearly as wide as the period are hardly evidence.
  const count = Math.min(sum ** 2 / squares, 4 * sum);
  const evidence = count * 0.5 * (length ** 2 - Math.log(1 - length ** 2));
  return { length, count, evidence };
}

/** Returns the most credible fit near a period. */
function refine(events: readonly FinalityEvent[], periodMs: number): Fit {
  const reach = (0.25 * periodMs * periodMs) / Math.max(spanOf(events), 3 * periodMs);
  const near = Array.from({ length: 41 }, (_, i) => fitOf(events, periodMs + reach * (i / 20 - 1)));
  const best = near.reduce((a, b) => (b.evidence > a.evidence ? b : a));
  const round = [1_000, 100].map((unitMs) => Math.round(best.periodMs / unitMs) * unitMs);
  return [periodMs, ...round]
    .filter((other) => other > 0 && Math.abs(other - best.periodMs) <= 2 * reach)
    .map((other) => fitOf(events, other))
    .reduce(moreCredible, best);
}

/** Whether the fit is significant evidence of a usual slot time. */
function isUsual({ periodMs, length, evidence }: Fit): boolean {
  return USUAL_SLOTS_MS.includes(periodMs) && evidence > PRIOR_COST.usual && length > LEAST_LENGTH;
}

function moreCredible(one: Fit | null, other: Fit): Fit {
  return !one || other.evidence - priorCostOf(other.periodMs) > one.evidence - priorCostOf(one.periodMs) ? other : one;
}

function priorCostOf(periodMs: number): number {
  if (USUAL_SLOTS_MS.includes(periodMs)) return PRIOR_COST.usual;
  return periodMs % 1_000 === 0 ? PRIOR_COST.second : periodMs % 100 === 0 ? PRIOR_COST.tenth : PRIOR_COST.other;
}

function spanOf(events: readonly FinalityEvent[]): number {
  const times = events.map(({ by }) => by);
  return Math.max(...times) - Math.min(...times);
}

function modulo(value: number, divisor: number): number {
  return ((value % divisor) + divisor) % divisor;
}

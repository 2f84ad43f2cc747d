/** Finality events remembered, and how many of them a period is told from at least. */
export const MEMORY = 64;
const LEAST = 6;
/** Slot times of public chains, tried before any other (s). */
const USUAL_SLOTS_S = [20, 12, 6];
const SHORTEST_MS = 1_000;
const LONGEST_MS = 90_000;
/** Units in which slot times are configured (ms), and how much worse a period in them may fit. */
const ROUND = [
  [1_000, 0.05],
  [500, 0.02],
  [100, 0.01],
] as const;
/** The slot begins this share of it before the mean moment of finality, so that no group is cut in two. */
const LEAD = 0.3;

/** One finality event: after `after`, by `by`, epoch ms. */
export type FinalityEvent = { readonly after: number; readonly by: number };

export type SlotClockState = { periodMs: number; originMs: number };

/**
 * Finds the period and phase with which submissions become final, from a periodogram of the finality events (mean resultant
 * length and Rayleigh test: Mardia and Jupp, "Directional Statistics", 2000). Where nothing is periodic there is no clock.
 */
export class SlotClock {
  readonly #events: FinalityEvent[];
  #state: SlotClockState | null;
  #sinceSearch = 0;

  /** `events`: those from which the state was learned. */
  constructor(state: SlotClockState | null = null, events: readonly FinalityEvent[] = []) {
    this.#state = state;
    this.#events = [...events];
  }

  get events(): readonly FinalityEvent[] {
    return this.#events;
  }

  get state(): SlotClockState | null {
    return this.#state;
  }

  /** Number of the slot at this moment, with its fraction. Slots are numbered from the epoch on. */
  position(time: number): number {
    const state = this.#state;
    return state ? (time - state.originMs) / state.periodMs : 0;
  }

  timeOf(position: number): number {
    const state = this.#state;
    return state ? state.originMs + position * state.periodMs : 0;
  }

  /** `longestMs`: no period can be longer. Returns whether the clock has become another one, so that slot numbers and phases known before mean nothing. */
  learn(event: FinalityEvent, longestMs = LONGEST_MS): boolean {
    this.#events.push(event);
    if (this.#events.length > MEMORY) this.#events.shift();
    this.#sinceSearch++;
    const state = this.#state;
    if (!state) {
      // A search is long: where nothing has been periodic for a while, not every event begins one.
      if (this.#events.length < LEAST || (this.#events.length === MEMORY && this.#sinceSearch < 8)) return false;
      this.#sinceSearch = 0;
      const found = this.#search(this.#events, longestMs);
      if (found) this.#adopt(found);
      return found !== null;
    }
    if (state.periodMs > longestMs) {
      this.#events.length = 0;
      this.#state = null;
      return true;
    }
    if (this.#sinceSearch < 8) return false;
    this.#sinceSearch = 0;
    const recent = this.#events.slice(-12);
    const { length } = resultant(recent, state.periodMs);
    if (recent.length >= 8 && length < 0.55) {
      // Perhaps not the clock any more: look what it is now, by what came last.
      const found = this.#search(recent, longestMs);
      const isOther = found !== null && Math.abs(found.periodMs - state.periodMs) > 1e-3 * state.periodMs;
      if (isOther && resultant(recent, found.periodMs).length > length + 0.25) {
        this.#events.splice(0, this.#events.length - recent.length);
        this.#adopt(found);
        return true;
      }
      if (resultant(this.#events.slice(-24), state.periodMs).length < 0.25 && this.#events.length >= 24) {
        this.#events.splice(0, this.#events.length - recent.length);
        this.#state = null;
        return true;
      }
    }
    return this.#follow(state);
  }

  /** Adjusts period and phase to what was seen lately. */
  #follow(state: SlotClockState): boolean {
    const refined = refine(this.#events, state.periodMs);
    const mean = resultant(this.#events.slice(-24), refined);
    const pivot = this.#events.at(-1)?.by ?? state.originMs;
    // Slot numbers must go on: the slot of the newest event keeps its number and its begin.
    const slot = Math.floor((pivot - state.originMs) / state.periodMs);
    const begin = state.originMs + slot * state.periodMs;
    this.#state = { periodMs: refined, originMs: begin - slot * refined };
    const phase = modulo(mean.at - this.#state.originMs, refined) / refined;
    if (Math.abs(phase - LEAD) < 0.2) return false;
    this.#adopt({ periodMs: refined, at: mean.at });
    return true;
  }

  #adopt({ periodMs, at }: { periodMs: number; at: number }): void {
    this.#state = { periodMs, originMs: modulo(at - LEAD * periodMs, periodMs) };
  }

  #search(events: readonly FinalityEvent[], longestMs: number): { periodMs: number; at: number } | null {
    const n = events.length;
    for (const slotS of USUAL_SLOTS_S) {
      const { length, effective } = resultant(events, slotS * 1_000);
      if (slotS * 1_000 > longestMs) continue;
      if (effective * length ** 2 > 3.5 && length > 0.6) return this.#settle(events, slotS * 1_000);
    }
    if (n < 12) return null;
    const first = Math.min(...events.map(({ by }) => by));
    const spanMs = Math.max(...events.map(({ by }) => by)) - first;
    if (spanMs < 4 * SHORTEST_MS) return null;
    const step = 1 / (3 * spanMs);
    let best = { length: 0, effective: 0, periodMs: 0 };
    let tried = 0;
    for (
      let frequency = 1 / Math.min(LONGEST_MS, longestMs, spanMs / 3);
      frequency <= 1 / SHORTEST_MS;
      frequency += step
    ) {
      tried++;
      const { length, effective } = resultant(events, 1 / frequency);
      // A multiple of the true frequency fits nearly as well: the slowest that does is meant.
      if (length > best.length + 0.08) best = { length, effective, periodMs: 1 / frequency };
      if (tried > 20_000) break;
    }
    if (best.effective * best.length ** 2 < Math.log(tried) + 4 || best.length < 0.6) return null;
    return this.#settle(events, best.periodMs);
  }

  #settle(events: readonly FinalityEvent[], periodMs: number): { periodMs: number; at: number } {
    const refined = refine(events, periodMs);
    return { periodMs: refined, at: resultant(events.slice(-24), refined).at };
  }
}

/** Mean direction of the events on a circle of this period: 0 (even) to 1 (all at one phase), and a moment of the mean phase. */
function resultant(
  events: readonly FinalityEvent[],
  periodMs: number,
): { length: number; at: number; effective: number } {
  const reference = events.at(-1)?.by ?? 0;
  let x = 0;
  let y = 0;
  let sum = 0;
  let squares = 0;
  for (const { after, by } of events) {
    // An interval as wide as the period says nothing about the phase.
    const width = Math.min(1, (by - after) / periodMs);
    const weight = Math.max(0.02, 1 - width) ** 2;
    const angle = (2 * Math.PI * ((after + by) / 2 - reference)) / periodMs;
    x += weight * Math.cos(angle);
    y += weight * Math.sin(angle);
    sum += weight;
    squares += weight ** 2;
  }
  return {
    length: Math.hypot(x, y) / sum,
    effective: sum ** 2 / squares,
    at: reference + (Math.atan2(y, x) / (2 * Math.PI)) * periodMs,
  };
}

/** The period near this one that fits best, rounded to what a chain would be configured with where the events allow it. */
function refine(events: readonly FinalityEvent[], periodMs: number): number {
  const first = Math.min(...events.map(({ by }) => by));
  const spanMs = Math.max(...events.map(({ by }) => by)) - first;
  if (spanMs < 3 * periodMs) return periodMs;
  const reach = (0.25 * periodMs * periodMs) / spanMs;
  let best = periodMs;
  let longest = -1;
  for (let i = -20; i <= 20; i++) {
    const candidate = periodMs + (reach * i) / 20;
    const { length } = resultant(events, candidate);
    if (length > longest) [best, longest] = [candidate, length];
  }
  for (const [unit, worse] of ROUND) {
    const rounded = Math.round(best / unit) * unit;
    if (rounded > 0 && Math.abs(rounded - best) < reach && resultant(events, rounded).length > longest - worse)
      return rounded;
  }
  return best;
}

function modulo(value: number, divisor: number): number {
  return ((value % divisor) + divisor) % divisor;
}

import type { PauseRecord } from '../submissions/upstream.ts';

/**
 * The total time in which an upstream could not be polled: outages (the circuit breaker was open),
 * pauses (the upstream sent Retry-After), and steps of the clock (the machine slept). Every time
 * limit moves by this total. Overlapping outages and pauses count once: the start of an outage ends
 * the pause, whose rest counts again after the outage.
 */
export class OutageClock {
  #pastMs = 0;
  #outSince: number | null = null;
  #pause: { since: number; until: number } | null = null;

  /**
   * Continues from the record of an earlier process. A time in the future was written by a clock
   * that was ahead.
   */
  restore(record: PauseRecord & { outSince: number | null }, now: number): void {
    const { outageMs, outSince, pausedSince, pausedUntil } = record;
    this.#pastMs = outageMs;
    this.#outSince = outSince === null ? null : Math.min(outSince, now);
    if (pausedSince !== null && pausedUntil !== null)
      this.#pause = { since: Math.min(pausedSince, now), until: pausedUntil };
  }

  totalMs(now: number): number {
    const outMs = this.#outSince === null ? 0 : Math.max(0, now - this.#outSince);
    return this.#pastMs + outMs + this.#pausedMs(now);
  }

  /** Has no effect during an outage. */
  outageBegins(at: number): void {
    if (this.#outSince !== null) return;
    this.#pastMs += this.#pausedMs(at);
    this.#pause = null;
    this.#outSince = at;
  }

  outageEnds(at: number): void {
    if (this.#outSince === null) return;
    this.#pastMs += Math.max(0, at - this.#outSince);
    this.#outSince = null;
  }

  /** Sets the end of the pause. Returns whether the pause changed. */
  pauses(until: number, now: number): boolean {
    if (this.#pause && this.#pause.until <= now) {
      this.#pastMs += this.#pausedMs(now);
      this.#pause = null;
    }
    if (this.#outSince !== null || until <= now || this.#pause?.until === until) return false;
    this.#pause = { since: this.#pause?.since ?? now, until };
    return true;
  }

  /** Adds a step of the clock: the machine slept, or its clock was set forward. */
  skips(from: number, to: number): void {
    if (this.#outSince !== null || (this.#pause && this.#pause.until >= to)) return;
    const pausedUntil = this.#pause?.until ?? from;
    this.#pastMs += this.#pausedMs(to) + to - Math.max(from, pausedUntil);
    this.#pause = null;
  }

  get outSince(): number | null {
    return this.#outSince;
  }

  get record(): PauseRecord {
    const { since = null, until = null } = this.#pause ?? {};
    return { outageMs: this.#pastMs, pausedSince: since, pausedUntil: until };
  }

  #pausedMs(now: number): number {
    return this.#pause ? Math.max(0, Math.min(now, this.#pause.until) - this.#pause.since) : 0;
  }
}

/** Counts the entries of the window (now - windowMs, now] exactly. */
export class SlidingWindow {
  readonly #windowMs: number;
  #times: number[] = [];

  constructor(windowMs: number) {
    this.#windowMs = windowMs;
  }

  add(nowMs: number): void {
    this.#times.push(nowMs);
  }

  count(nowMs: number): number {
    while ((this.#times[0] ?? nowMs) <= nowMs - this.#windowMs) this.#times.shift();
    return this.#times.length;
  }

  /** Returns the milliseconds until the oldest entry leaves the window, or 0 if the window is empty. */
  untilOldestLeavesMs(nowMs: number): number {
    return this.count(nowMs) === 0 ? 0 : (this.#times[0] ?? 0) + this.#windowMs - nowMs;
  }
}

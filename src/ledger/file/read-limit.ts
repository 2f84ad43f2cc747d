/** A page of rows in memory takes less. */
const MAX_PAGE_MS = 15;
/** A row in memory takes 5 to 20 microseconds. */
const SLOW_ROW_MS = 0.1;
/** Fewer slow rows have another cause: the process had no core, or collected garbage. */
const MIN_SLOW_ROWS = 10;
const MIN_SLOW_SHARE = 1 / 50;

/**
 * Ends a page whose rows the system reads from the disk: each takes a hundred times as long as a row in memory, and the event loop waits. Rows
 * that were read stay in memory, so the following pages are longer.
 */
export class ReadLimit {
  readonly #startedAt = performance.now();
  #rowAt = this.#startedAt;
  #rows = 0;
  #slowRows = 0;

  /** Must be called after each row. Returns whether the page must end. */
  isReached(): boolean {
    const now = performance.now();
    this.#rows += 1;
    if (now - this.#rowAt > SLOW_ROW_MS) this.#slowRows += 1;
    this.#rowAt = now;
    const isSlow = this.#slowRows >= Math.max(MIN_SLOW_ROWS, this.#rows * MIN_SLOW_SHARE);
    return isSlow && now - this.#startedAt > MAX_PAGE_MS;
  }
}

/**
 * Time for slow rows. A page may use it up several times: it gathers rows, walks an index, and
 * reads what it found.
 */
const MAX_SLOW_MS = 5;
/** A row in memory takes 5 to 20 microseconds. */
const SLOW_ROW_MS = 0.1;
/** Fewer slow rows have another cause: the process had no core, or collected garbage. */
const MIN_SLOW_ROWS = 10;
const MIN_SLOW_SHARE = 1 / 50;
/**
 * Slow rows count in groups of this many, so that many rows in memory before them do not defer the
 * end.
 */
const GROUP_ROWS = 500;

/**
 * Ends a part of a page whose rows the system reads from the disk: each takes a hundred times as
 * long as a row in memory, and the event loop waits. Rows in memory end nothing. Rows that were
 * read stay in memory, so the following pages are longer.
 */
export class ReadLimit {
  #rowAt = performance.now();
  #rows = 0;
  #slowRows = 0;
  #slowMs = 0;

  /** Must be called after each row. Returns whether the page must end. */
  isReached(): boolean {
    const now = performance.now();
    const tookMs = now - this.#rowAt;
    this.#rowAt = now;
    if (this.#rows === GROUP_ROWS) this.#rows = this.#slowRows = this.#slowMs = 0;
    this.#rows += 1;
    if (tookMs > SLOW_ROW_MS) {
      this.#slowRows += 1;
      this.#slowMs += tookMs;
    }
    return (
      this.#slowMs > MAX_SLOW_MS &&
      this.#slowRows >= Math.max(MIN_SLOW_ROWS, this.#rows * MIN_SLOW_SHARE)
    );
  }
}
